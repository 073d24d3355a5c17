/* SPDX-License-Identifier: MIT */
#include "subject/census.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/io.h"
#include "proc/helper.h"
#include "proc/process.h"
#include "proc/stat.h"

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

/* ---- one process ---- */

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

/* Returns the number behind "\nkey:", or 0. */
static uint64_t number_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void parse_status(const char *text, struct profile_usage *ret)
{
	ret->uid = (uint32_t)number_of(text, "\nUid:");
	ret->anonymous_bytes = number_of(text, "\nRssAnon:") << 10;
	ret->file_bytes = number_of(text, "\nRssFile:") << 10;
	ret->shared_bytes = number_of(text, "\nRssShmem:") << 10;
}

/* Spaces stand for the ends of arguments. */
static uint32_t command_of(struct profile *profile, struct buf *arguments)
{
	while (arguments->len && !arguments->data[arguments->len - 1])
		arguments->len--;
	for (size_t i = 0; i < arguments->len; i++)
		if (!arguments->data[i])
			arguments->data[i] = ' ';
	return intern_bytes(&profile->strings, arguments->data,
			    arguments->len < COMMAND_SHOWN ? arguments->len : COMMAND_SHOWN);
}

/*
 * The kernel takes the command from the process's memory, and waits for a process in exec before it reports I/O: the
 * helper reads both.
 */
static void read_rest(struct profile *profile, int proc_fd, struct profile_usage *usage)
{
	BUF(text);

	(void)io_read_file(proc_fd, "status", STATUS_MAX, &text); /* on an error, use what was read */
	parse_status(text.data, usage);
	buf_clear(&text);
	if (!helper_read((pid_t)usage->pid, proc_fd, "io", IO_MAX, &text)) {
		usage->read_bytes = number_of(text.data, "\nread_bytes:");
		usage->written_bytes = number_of(text.data, "\nwrite_bytes:");
	}
	buf_clear(&text);
	(void)helper_read((pid_t)usage->pid, proc_fd, "cmdline", COMMAND_MAX, &text);
	usage->command = command_of(profile, &text);
}

/* ---- a look at all ---- */

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
	IO_FD(proc_fd) = proc_open(pid, "");
	struct proc_stat stat;

	if (proc_fd < 0 || proc_stat_read(&stat, proc_fd, "stat"))
		return;
	take_stat(census->profile, &stat, &usage);
	now = (struct census_seen){.cpu_ns = usage.user_ns + usage.system_ns, .time_ns = usage.time_ns};
	before = remember(census, usage.pid, stat.fields[STAT_START], &now);
	usage.load_ppm = before ? load_of(before, &now) : 0;
	usage.started_ms = census->boot_ms + stat.fields[STAT_START] * MS_PER_TICK;
	if (before && is_recorded(census, &usage)) {
		read_rest(census->profile, proc_fd, &usage);
		loader_counters[DUET_LOADER_NOT_LOOKED_AT] += profile_add_usage(census->profile, &usage) < 0;
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

static void begin_look(struct census *census, uint64_t now_ns)
{
	census->folder = opendir("/proc");
	census->began_ns = census->next_ns > now_ns ? now_ns : census->next_ns; /* so that delays do not add up */
	if (!census->folder)
		census->next_ns = now_ns + census->interval_ns;
}

void census_step(struct census *census, uint64_t now_ns)
{
	uint64_t end_ns = now_ns + SLICE_NS, at_ns = now_ns, cpu_ns = clock_cpu_ns();
	pid_t pid = 0;

	if (!census->profile || now_ns < census->next_ns ||
	    (census->profile->until_ns && now_ns >= census->profile->until_ns))
		return;
	if (!census->folder)
		begin_look(census, now_ns);
	for (; census->folder && at_ns < end_ns && (pid = process_next(census->folder)); at_ns = clock_monotonic_ns())
		look_at(census, pid);
	if (census->folder && !pid)
		end_look(census);
	else if (census->folder)
		census->next_ns = at_ns + REST_TIMES * (clock_cpu_ns() - cpu_ns);
}

int census_wait_ms(const struct census *census, uint64_t now_ns, int wait_ms)
{
	uint64_t left_ms = census->next_ns > now_ns ? (census->next_ns - now_ns) / NS_PER_MS + 1 : 1;

	return census->profile && left_ms < (uint64_t)wait_ms ? (int)left_ms : wait_ms;
}

/* ---- begin and end ---- */

void census_open(struct census *census, struct profile *profile, uint64_t interval_ns)
{
	uint64_t first_ns = interval_ns / 2 < FIRST_NS ? interval_ns / 2 : FIRST_NS;

	*census = (struct census){.profile = interval_ns ? profile : NULL, .interval_ns = interval_ns};
	if (!interval_ns)
		return;
	census->next_ns = clock_monotonic_ns() + first_ns;
	census->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	census->boot_ms = (clock_realtime_ns() - clock_boottime_ns()) / NS_PER_MS;
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
