/* SPDX-License-Identifier: MIT */
#include "subject/cloud.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"

#define FIRMWARE "/sys/class/dmi/id/"
#define FIRMWARE_MAX 256 /* bytes of a file; each file is one line */
#define CLOUD_INIT "/run/cloud-init/instance-data.json" /* the variant without sensitive data */
#define CLOUD_INIT_MAX (1u << 20)
/* the same on every virtual machine of Azure; cloud-init checks for it, too */
#define AZURE_TAG "7783-7084-3265-9085-8269-3286-77"

static int read_file(const char *root, const char *path, size_t max, struct buf *text)
{
	char whole[4096];

	if (snprintf(whole, sizeof(whole), "%s%s", root, path) >= (int)sizeof(whole))
		return -1;
	buf_clear(text);
	return io_read_file(AT_FDCWD, whole, max, text);
}

/* Returns the first line of the firmware's file, or "". Valid until the next call. */
static const char *firmware(const char *root, const char *name, struct buf *line)
{
	char path[64];

	snprintf(path, sizeof(path), FIRMWARE "%s", name);
	if (read_file(root, path, FIRMWARE_MAX, line) < 0)
		buf_clear(line);
	buf_cut(line, strcspn(line->data, "\n"));
	return line->data;
}

static void read_amazon(struct cloud *cloud, const char *root, struct buf *line)
{
	const char *version = firmware(root, "bios_version", line), *type;
	size_t len = strlen(version), suffix_len = strlen("amazon");
	bool is_xen = len >= suffix_len && !strcmp(version + len - suffix_len, "amazon"); /* "4.11.amazon" */

	if (!is_xen && strcmp(firmware(root, "sys_vendor", line), "Amazon EC2") != 0)
		return;
	buf_add_str(&cloud->provider, "aws");
	type = firmware(root, "product_name", line);
	if (strchr(type, '.') && !strchr(type, ' ')) /* on Xen: "HVM domU" */
		buf_add_str(&cloud->type, type);
}

static void read_firmware(struct cloud *cloud, const char *root)
{
	BUF(line);

	read_amazon(cloud, root, &line);
	if (!strcmp(firmware(root, "product_name", &line), "Google Compute Engine"))
		buf_add_str(&cloud->provider, "gcp");
	if (!strcmp(firmware(root, "chassis_asset_tag", &line), AZURE_TAG))
		buf_add_str(&cloud->provider, "azure");
}

static void add_member(const json_t *object, const char *key, struct buf *out)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (text)
		buf_add_str(out, text);
}

/* The keys are the same in every cloud. cloud-init writes "v1" since 18.4. Unknown values are null. */
static void read_cloud_init(struct cloud *cloud, const char *root)
{
	BUF(text);
	json_t *data = NULL, *v1;

	if (!read_file(root, CLOUD_INIT, CLOUD_INIT_MAX, &text))
		data = json_loadb(text.data, text.len, 0, NULL);
	v1 = json_object_get(data, "v1");
	add_member(v1, "region", &cloud->region);
	add_member(v1, "availability_zone", &cloud->zone);
	json_decref(data);
}

void cloud_read(struct cloud *cloud, const char *root)
{
	buf_init(&cloud->provider);
	buf_init(&cloud->region);
	buf_init(&cloud->zone);
	buf_init(&cloud->type);
	read_firmware(cloud, root);
	if (cloud->provider.len)
		read_cloud_init(cloud, root);
}

void cloud_release(struct cloud *cloud)
{
	buf_release(&cloud->provider);
	buf_release(&cloud->region);
	buf_release(&cloud->zone);
	buf_release(&cloud->type);
}
