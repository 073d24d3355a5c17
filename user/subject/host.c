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
#include "base/counters.h"
#include "base/io.h"
#include "base/redact.h"
#include "proc/helper.h"
#include "proc/process.h"
#include "proc/room.h"

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
	strcpy(cloud->provider, "aws");
	type = firmware(root, "product_name", line);
	if (strchr(type, '.') && !strchr(type, ' ')) /* on Xen: "HVM domU" */
		snprintf(cloud->type, sizeof(cloud->type), "%s", type);
}

static void read_firmware(struct cloud *cloud, const char *root)
{
	BUF(line);

	read_amazon(cloud, root, &line);
	if (!strcmp(firmware(root, "product_name", &line), "Google Compute Engine"))
		strcpy(cloud->provider, "gcp");
	if (!strcmp(firmware(root, "chassis_asset_tag", &line), AZURE_TAG))
		strcpy(cloud->provider, "azure");
}

static void copy_member(const json_t *object, const char *key, char out[CLOUD_BYTES])
{
	const char *text = json_string_value(json_object_get(object, key));

	snprintf(out, CLOUD_BYTES, "%s", text ? text : "");
}

/* The keys are the same in every cloud. cloud-init writes "v1" since 18.4. Unknown values are null. */
static void read_cloud_init(struct cloud *cloud, const char *root)
{
	BUF(text);
	json_t *data = NULL, *v1;

	if (!read_file(root, CLOUD_INIT, CLOUD_INIT_MAX, &text))
		data = json_loadb(text.data, text.len, 0, NULL);
	v1 = json_object_get(data, "v1");
	copy_member(v1, "region", cloud->region);
	copy_member(v1, "availability_zone", cloud->zone);
	json_decref(data);
}

void cloud_read(struct cloud *cloud, const char *root)
{
	*cloud = (struct cloud){0};
	read_firmware(cloud, root);
	if (cloud->provider[0])
		read_cloud_init(cloud, root);
}

#define FILE_MAX (64u << 10) /* bytes that are read: on a large host, cpuinfo repeats the same lines for each CPU */
#define CPU_TIMES 8 /* of /proc/stat's first line: user nice system idle iowait irq softirq steal; guest is in user */
enum { STAT_IDLE = 3, STAT_IOWAIT = 4 };

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
	about->cloud = intern_str(strings, cloud.provider);
	about->cloud_region = intern_str(strings, cloud.region);
	about->cloud_zone = intern_str(strings, cloud.zone);
	about->cloud_type = intern_str(strings, cloud.type);
}

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
	for (int i = 0; i < CPU_TIMES; i++) {
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

void host_open(struct host *host)
{
	struct clock_pair now = clock_pair(clock_realtime_ns, clock_boottime_ns);
	BUF(text);

	host->spawned_boot_ns = now.other;
	host->spawned_realtime_ns = now.one;
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
	uint64_t busy, all;
	BUF(text);

	host_describe_machine(host, profile);
	read_ticks(&text, &busy, &all);
	if (all > host->all_ticks && busy >= host->busy_ticks)
		profile->host.cpu_percent =
			100.0 * (double)(busy - host->busy_ticks) / (double)(all - host->all_ticks);
	host->busy_ticks = busy;
	host->all_ticks = all;
}

#define MS_PER_TICK (NS_PER_TICK / NS_PER_MS)
#define FIRST_NS (NS_PER_SEC / 2) /* so that N intervals have N - 1 looks with a load, as with async-profiler */
#define SLICE_NS (5 * NS_PER_MS)
#define REST_TIMES 4 /* a slice is followed by a rest of so many times its CPU time */
#define PROCESSES_MAX 65536 /* of one look */
#define LEAST_PPM 50000 /* 5 % of a CPU */
#define MEMORY_PARTS 20 /* 5 % of the memory */
#define STATUS_MAX 65536 /* of status: the list of groups may be long */
#define IO_MAX 4096
#define COMMAND_MAX (128u << 10)
#define COMMAND_SHOWN 2047 /* bytes; as much as async-profiler shows */

static void take_stat(struct profile *profile, const struct proc_stat *stat, struct profile_usage *ret)
{
	const uint64_t *fields = stat->fields;

	ret->name = intern_str(&profile->strings, stat->comm);
	ret->state = (unsigned char)stat->state;
	ret->parent = (uint32_t)fields[STAT_PARENT];
	ret->minor_faults = fields[STAT_MINOR_FAULTS];
	ret->major_faults = fields[STAT_MAJOR_FAULTS];
	ret->user_ns = fields[STAT_USER] * NS_PER_TICK;
	ret->system_ns = fields[STAT_SYSTEM] * NS_PER_TICK;
	ret->threads = (uint32_t)fields[STAT_THREADS];
	ret->size_bytes = fields[STAT_SIZE];
	ret->resident_bytes = fields[STAT_RESIDENT] * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint32_t command_of(struct profile *profile, struct buf *arguments)
{
	BUF(command);

	while (arguments->len && !arguments->data[arguments->len - 1])
		arguments->len--;
	redact_arguments(arguments->data, arguments->len, &command);
	return intern_bytes(&profile->strings, command.data, command.len < COMMAND_SHOWN ? command.len : COMMAND_SHOWN);
}

/* The kernel takes the command from the process's memory, and waits for exec before I/O: the helper reads both. */
static void read_asked(struct profile *profile, const struct charge *charge, int proc_fd, struct profile_usage *usage)
{
	BUF(text);

	if (!helper_read(charge, proc_fd, "io", IO_MAX, &text)) {
		usage->read_bytes = io_number_of(text.data, "\nread_bytes:");
		usage->written_bytes = io_number_of(text.data, "\nwrite_bytes:");
	}
	buf_clear(&text);
	(void)helper_read(charge, proc_fd, "cmdline", COMMAND_MAX, &text);
	usage->command = command_of(profile, &text);
}

/* Returns who pays for the process. */
static struct payer read_rest(struct profile *profile, int proc_fd, struct profile_usage *usage)
{
	struct charge begun = {.pid = (pid_t)usage->pid, .living = (pid_t)usage->pid}, charge;
	BUF(text);

	(void)io_read_file(proc_fd, "status", STATUS_MAX, &text); /* on an error, use what was read */
	usage->uid = (uint32_t)io_number_of(text.data, "\nUid:");
	usage->anonymous_bytes = io_number_of(text.data, "\nRssAnon:") << 10;
	usage->file_bytes = io_number_of(text.data, "\nRssFile:") << 10;
	usage->shared_bytes = io_number_of(text.data, "\nRssShmem:") << 10;
	begun.payer = allowance_payer(proc_fd, usage->uid);
	if (charge_go_on(&charge, &begun)) {
		read_asked(profile, &charge, proc_fd, usage);
		(void)charge_end(&charge);
	}
	return begun.payer;
}

/* Returns what was seen of the process before, or NULL; remembers what it is now. */
static const struct census_seen *remember(struct census *census, uint32_t pid, uint64_t start_ticks,
					  const struct census_seen *now)
{
	uint64_t key = start_ticks << 22 | pid, index; /* pids have at most 22 bits */

	if (census->now.seen.len >= PROCESSES_MAX || map_put(&census->now.ids, key, census->now.seen.len) < 0 ||
	    vec_push(&census->now.seen, *now) < 0)
		loader_counters[DUET_LOADER_NOT_LOOKED_AT]++;
	if (!map_get(&census->before.ids, key, &index) || index >= census->before.seen.len)
		return NULL;
	return &census->before.seen.items[index];
}

static uint64_t load_of(const struct census_seen *before, const struct census_seen *now)
{
	if (now->cpu_ns <= before->cpu_ns || now->time_ns <= before->time_ns)
		return 0;
	return (uint64_t)((double)(now->cpu_ns - before->cpu_ns) * 1e6 / (double)(now->time_ns - before->time_ns));
}

static bool is_recorded(const struct census *census, const struct profile_usage *usage)
{
	return usage->load_ppm >= LEAST_PPM || (census->memory_bytes &&
						usage->resident_bytes >= census->memory_bytes / MEMORY_PARTS);
}

static void look_at(struct census *census, int pid)
{
	struct profile_usage usage = {.pid = (uint32_t)pid, .time_ns = clock_monotonic_ns()};
	const struct census_seen *before;
	struct census_seen now;
	struct payer payer;
	IO_FD(proc_fd) = proc_open(CHARGE_OWN(pid), "");
	struct proc_stat stat;

	if (proc_fd < 0 || proc_stat_read(&stat, proc_fd, "stat"))
		return;
	take_stat(census->profile, &stat, &usage);
	now = (struct census_seen){.cpu_ns = usage.user_ns + usage.system_ns, .time_ns = usage.time_ns};
	before = remember(census, usage.pid, stat.fields[STAT_START], &now);
	usage.load_ppm = before ? load_of(before, &now) : 0;
	usage.started_ms = census->boot_ms + stat.fields[STAT_START] * MS_PER_TICK;
	if (before && is_recorded(census, &usage)) {
		payer = read_rest(census->profile, proc_fd, &usage);
		loader_counters[DUET_LOADER_NOT_LOOKED_AT] +=
			!room_take(ROOM_USAGES, &payer, 1) || profile_add_usage(census->profile, &usage) < 0;
	}
}

static void look_release(struct census_look *look)
{
	map_release(&look->ids);
	vec_release(&look->seen);
	*look = (struct census_look){0};
}

static void end_look(struct census *census)
{
	uint64_t now_ns = clock_monotonic_ns();

	closedir(census->folder);
	census->folder = NULL;
	look_release(&census->before);
	census->before = census->now;
	census->now = (struct census_look){0};
	census->next_ns = census->began_ns + census->interval_ns;
	if (census->next_ns < now_ns)
		census->next_ns = now_ns;
}

void census_step(struct census *census, uint64_t now_ns)
{
	uint64_t end_ns = now_ns + SLICE_NS, at_ns = now_ns, cpu_ns = charge_all_ns();
	pid_t pid = 0;

	if (!census->profile || now_ns < census->next_ns ||
	    (census->profile->until_ns && now_ns >= census->profile->until_ns))
		return;
	if (!census->folder) {
		census->folder = opendir("/proc");
		census->began_ns = census->next_ns; /* so that delays do not add up */
		if (!census->folder)
			census->next_ns = now_ns + census->interval_ns;
	}
	for (; census->folder && at_ns < end_ns && (pid = process_next(census->folder)); at_ns = clock_monotonic_ns())
		look_at(census, pid);
	if (census->folder && !pid)
		end_look(census);
	else if (census->folder)
		census->next_ns = at_ns + REST_TIMES * (charge_all_ns() - cpu_ns);
}

int census_wait_ms(const struct census *census, uint64_t now_ns, int wait_ms)
{
	uint64_t left_ms = census->next_ns > now_ns ? (census->next_ns - now_ns) / NS_PER_MS + 1 : 1;

	return census->profile && left_ms < (uint64_t)wait_ms ? (int)left_ms : wait_ms;
}

void census_open(struct census *census, struct profile *profile, uint64_t interval_ns)
{
	uint64_t first_ns = interval_ns / 2 < FIRST_NS ? interval_ns / 2 : FIRST_NS;
	struct clock_pair now = clock_pair(clock_realtime_ns, clock_boottime_ns);

	room_set_size(ROOM_USAGES, PROFILE_USAGES_MAX);
	*census = (struct census){.profile = interval_ns ? profile : NULL, .interval_ns = interval_ns};
	if (!interval_ns)
		return;
	census->next_ns = clock_monotonic_ns() + first_ns;
	census->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	census->boot_ms = (now.one - now.other) / NS_PER_MS;
	profile->host.usages_ns = interval_ns;
}

void census_release(struct census *census)
{
	if (census->folder)
		closedir(census->folder);
	look_release(&census->before);
	look_release(&census->now);
	*census = (struct census){0};
}
