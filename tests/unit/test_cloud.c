/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "subject/host.h"

static char root[] = "/tmp/duet-cloud.XXXXXX";

static void write_file(const char *path, const char *text)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(whole, 0700);
		*at = '/';
	}
	file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void expect(const char *provider, const char *region, const char *zone, const char *type)
{
	struct cloud cloud;

	cloud_read(&cloud, root);
	assert_string_equal(cloud.provider, provider);
	assert_string_equal(cloud.region, region);
	assert_string_equal(cloud.zone, zone);
	assert_string_equal(cloud.type, type);
}

#define DMI "/sys/class/dmi/id/"
#define CLOUD_INIT "/run/cloud-init/instance-data.json"

static void amazon(void **state)
{
	write_file(DMI "sys_vendor", "Amazon EC2\n");
	write_file(DMI "product_name", "m5.large\n");
	expect("aws", "", "", "m5.large");
	write_file(CLOUD_INIT, "{\"v1\": {\"region\": \"eu-west-1\", \"availability_zone\": \"eu-west-1a\"}}");
	expect("aws", "eu-west-1", "eu-west-1a", "m5.large");
}

static void amazon_on_xen(void **state)
{
	write_file(DMI "sys_vendor", "Xen\n");
	write_file(DMI "product_name", "HVM domU\n");
	write_file(DMI "bios_version", "4.11.amazon\n");
	expect("aws", "", "", "");
}

static void google(void **state)
{
	write_file(DMI "product_name", "Google Compute Engine\n");
	write_file(CLOUD_INIT, "{\"v1\": {\"region\": null, \"availability_zone\": \"europe-west4-a\"}}");
	expect("gcp", "", "europe-west4-a", "");
}

static void azure(void **state)
{
	write_file(DMI "sys_vendor", "Microsoft Corporation\n");
	expect("", "", "", ""); /* Hyper-V at home */
	write_file(DMI "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77\n");
	write_file(CLOUD_INIT, "no json");
	expect("azure", "", "", "");
}

static void none(void **state)
{
	expect("", "", "", "");
	write_file(DMI "product_name", "a.b");
	write_file(DMI "bios_version", "zon");
	write_file(CLOUD_INIT, "{\"v1\": {\"region\": \"here\"}}");
	expect("", "", "", "");
}

static int make_root(void **state)
{
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(amazon, make_root, remove_root),
		cmocka_unit_test_setup_teardown(amazon_on_xen, make_root, remove_root),
		cmocka_unit_test_setup_teardown(google, make_root, remove_root),
		cmocka_unit_test_setup_teardown(azure, make_root, remove_root),
		cmocka_unit_test_setup_teardown(none, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
