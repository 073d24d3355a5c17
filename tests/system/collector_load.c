/* SPDX-License-Identifier: MIT */
/*
 * Bounds the cost of loading the BPF programs. Most of it is the kernel's verifier, which reports how many instructions
 * it has processed. That count does not depend on the load of the machine. Skips, with the reason, where BPF is not
 * allowed.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "collect/collector.h"
#include "event/options.h"
#include "system/collector_or_skip.h"

/*
 * For each program that walks. One or two microseconds each. A loop costs its number of turns times the number of paths
 * through it: see bpf/unwind.bpf.h.
 */
#define MOST_VERIFIED 50000

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * NS_PER_SEC + (uint64_t)time.tv_nsec;
}

/* Returns the count of one of our programs, or 0 if the descriptor is not one. */
static uint32_t verified_by(int fd)
{
	struct bpf_prog_info info = {0};
	uint32_t bytes = sizeof(info);
	char path[32], target[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, target, sizeof(target) - 1) < 0 || strcmp(target, "anon_inode:bpf-prog") ||
	    bpf_obj_get_info_by_fd(fd, &info, &bytes))
		return 0;
	print_message("%-16s %6u instructions verified\n", info.name, info.verified_insns);
	return info.verified_insns;
}

static uint32_t verified_by_all(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	uint32_t sum = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder)))
		sum += verified_by(atoi(entry->d_name));
	closedir(folder);
	return sum;
}

static void load(const struct collector_options *options, uint32_t walks)
{
	uint64_t before_ns = cpu_ns();
	struct collector *collector = collector_or_skip(options);
	uint32_t verified;

	print_message("%.0f ms of CPU time\n", (double)(cpu_ns() - before_ns) / NS_PER_MS);
	verified = verified_by_all();
	collector_close(collector);
	if (!verified) {
		print_message("skipped: before Linux 5.16 nobody tells\n");
		skip();
	}
	assert_in_range(verified, 1, walks * MOST_VERIFIED);
}

static struct collector_options options_for(const struct event_list *events)
{
	static const struct options asked = {.bpf.signals = DUET_SIGNALS_NEEDED};

	return (struct collector_options){.asked = &asked, .events = events, .user_depth = DUET_MAX_WALK};
}

static struct event_list only(const char *event)
{
	return (struct event_list){{{.event = event_by_name(event), .interval = 10 * NS_PER_MS}}, 1};
}

static void load_for_one_process(const char *event, uint32_t walks)
{
	const struct event_list events = only(event);
	struct collector_options options = options_for(&events);
	const pid_t self = getpid();

	options.targets = &self;
	options.target_count = 1;
	load(&options, walks);
}

/* Like `duet record -p`. */
static void one_process_is_verified_soon(void **state)
{
	load_for_one_process("cpu", 1);
}

/* Like `duet record -p -e wall`. */
static void wall_is_verified_soon(void **state)
{
	load_for_one_process("wall", 2);
}

/* Like `duet record --host`, in a cgroup and with a name. */
static void a_host_is_verified_soon(void **state)
{
	const struct event_list cpu = only("cpu");
	struct collector_options options = options_for(&cpu);

	options.cgroup_id = 1;
	options.comm = "java";
	load(&options, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_process_is_verified_soon),
		cmocka_unit_test(wall_is_verified_soon),
		cmocka_unit_test(a_host_is_verified_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
