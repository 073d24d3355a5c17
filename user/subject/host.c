/* SPDX-License-Identifier: MIT */
#include "subject/host.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
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

#define FILE_MAX (64u << 10) /* bytes that are read: on a large host, cpuinfo repeats the same lines for each CPU */
#define STAT_FIELDS 8 /* of /proc/stat's first line: user nice system idle iowait irq softirq steal; guest is in user */
enum { STAT_IDLE = 3, STAT_IOWAIT = 4 };

/* ---- files of lines "key<separator>value" ---- */

static void read_text(const char *path, struct buf *text)
{
	buf_clear(text);
	(void)io_read_file(AT_FDCWD, path, FILE_MAX, text); /* on an error, use what was read */
}

/* Returns the value of the first line with the key, without quotes; "" if there is none. Valid until the next call. */
static const char *value_of(const struct buf *text, const char *key, char separator, struct buf *value)
{
	size_t key_len = strlen(key);

	buf_clear(value);
	for (const char *line = text->data; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *at = line + key_len;
		size_t len;

		if (strncmp(line, key, key_len))
			continue;
		at += strspn(at, " \t");
		if (*at != separator)
			continue;
		at += 1 + strspn(at + 1, " \t\"");
		len = strcspn(at, "\n");
		buf_add(value, at, len && at[len - 1] == '"' ? len - 1 : len);
		break;
	}
	return value->data;
}

/* ---- constant facts ---- */

static void describe_names(struct profile *profile)
{
	struct profile_host *about = &profile->host;
	struct intern *strings = &profile->strings;
	struct utsname names = {0};

	uname(&names);
	about->version = intern_str(strings, DUET_VERSION);
	about->name = intern_str(strings, names.nodename);
	about->kernel_release = intern_str(strings, names.release);
	about->kernel_version = intern_str(strings, names.version);
	about->machine = intern_str(strings, names.machine);
	about->processors = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	about->loader = (uint32_t)getpid();
}

static void describe_system(struct profile *profile, struct buf *text, struct buf *value)
{
	struct profile_host *about = &profile->host;
	struct intern *strings = &profile->strings;

	read_text("/etc/os-release", text);
	about->os_name = intern_str(strings, value_of(text, "NAME", '=', value));
	about->os_release = intern_str(strings, value_of(text, "VERSION_ID", '=', value));
	about->os_codename = intern_str(strings, value_of(text, "VERSION_CODENAME", '=', value));
	read_text("/proc/cpuinfo", text);
	about->cpu_model = intern_str(strings, value_of(text, "model name", ':', value));
	about->cpu_flags = intern_str(strings, value_of(text, "flags", ':', value));
	if (!about->cpu_flags) /* aarch64 */
		about->cpu_flags = intern_str(strings, value_of(text, "Features", ':', value));
}

static void describe_cloud(struct profile *profile)
{
	struct profile_host *about = &profile->host;
	struct intern *strings = &profile->strings;
	struct cloud cloud;

	cloud_read(&cloud, "");
	about->cloud = intern_str(strings, cloud.provider.data);
	about->cloud_region = intern_str(strings, cloud.region.data);
	about->cloud_zone = intern_str(strings, cloud.zone.data);
	about->cloud_type = intern_str(strings, cloud.type.data);
	cloud_release(&cloud);
}

/* ---- facts that change ---- */

static void describe_memory(struct profile_host *about, struct buf *text, struct buf *value)
{
	uint64_t all, available;

	read_text("/proc/meminfo", text);
	all = strtoull(value_of(text, "MemTotal", ':', value), NULL, 10) << 10;
	available = strtoull(value_of(text, "MemAvailable", ':', value), NULL, 10) << 10;
	about->memory_bytes = all;
	if (all && available <= all)
		about->memory_percent = 100.0 * (double)(all - available) / (double)all;
}

static void read_ticks(struct buf *text, uint64_t *ret_busy, uint64_t *ret_all)
{
	char *at;

	read_text("/proc/stat", text);
	*ret_busy = *ret_all = 0;
	at = text->data + strcspn(text->data, " ");
	for (int i = 0; i < STAT_FIELDS; i++) {
		uint64_t ticks = strtoull(at, &at, 10);

		*ret_all += ticks;
		*ret_busy += i == STAT_IDLE || i == STAT_IOWAIT ? 0 : ticks;
	}
}

void host_read_cpu(uint64_t *ret_busy_ns, uint64_t *ret_all_ns)
{
	BUF(text);

	read_ticks(&text, ret_busy_ns, ret_all_ns);
	*ret_busy_ns *= NS_PER_SEC / 100; /* USER_HZ is 100 */
	*ret_all_ns *= NS_PER_SEC / 100;
}

static void describe_load(struct host *host, struct profile_host *about, struct buf *text)
{
	uint64_t busy, all;

	read_ticks(text, &busy, &all);
	if (all > host->all_ticks && busy >= host->busy_ticks)
		about->cpu_percent = 100.0 * (double)(busy - host->busy_ticks) / (double)(all - host->all_ticks);
	host->busy_ticks = busy;
	host->all_ticks = all;
}

void host_open(struct host *host)
{
	BUF(text);

	host->spawned_boot_ns = clock_boottime_ns();
	host->spawned_realtime_ns = clock_realtime_ns();
	read_ticks(&text, &host->busy_ticks, &host->all_ticks);
}

void host_describe_machine(const struct host *host, struct profile *profile)
{
	BUF(text);
	BUF(value);

	describe_names(profile);
	describe_system(profile, &text, &value);
	describe_cloud(profile);
	describe_memory(&profile->host, &text, &value);
	profile->host.spawned_realtime_ns = host->spawned_realtime_ns;
	profile->host.spawned_boot_ns = host->spawned_boot_ns;
}

void host_describe(struct host *host, struct profile *profile)
{
	BUF(text);

	host_describe_machine(host, profile);
	describe_load(host, &profile->host, &text);
}
