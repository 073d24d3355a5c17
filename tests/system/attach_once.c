/* SPDX-License-Identifier: MIT */
/*
 * attach_once PID [TIMEOUT_MS [CYCLES]]: attaches to one JVM and says how it went,
 * "ok" or the sentence; with CYCLES that often, one right after the other. With TIMEOUT_MS negative
 * the attach is aborted after that many ms. For tests/system/attach_jvm.sh.
 */
#include <duet_agent.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/attach.h"
#include "attach/children.h"
#include "base/clock.h"
#include "proc/process.h"

static bool expect_hello(int fd)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	struct duet_message_hello hello;

	return poll(&readable, 1, 5000) > 0 &&
	       recv(fd, &hello, sizeof(hello), 0) == sizeof(hello) && hello.head.type == DUET_MESSAGE_HELLO;
}

/* Waits as the loader does: a child that was stopped never answers. */
static bool is_in_time(const struct attach *attach)
{
	struct pollfd done = {.fd = attach->fd, .events = POLLIN};
	uint64_t now_ns = clock_monotonic_ns();

	return poll(&done, 1, (int)((attach->deadline_ns - now_ns) / NS_PER_MS) + 1) > 0;
}

static bool attach_cycle(const struct attach_target *target)
{
	struct attach_control control;
	struct attach_result result;
	struct attach attach;
	bool hello;

	if (attach_control_new(&control, target->pid) < 0 || attach_start(&attach, target, &control) < 0)
		return false;
	if (!is_in_time(&attach)) {
		printf("the child does not end\n");
		attach_abort(&attach);
		children_wait();
		return false;
	}
	attach_finish(&attach, &result);
	if (result.error) {
		printf("%s\n", result.why);
		if (children_left(target->uid))
			printf("%zu attaches are left\n", children_left(target->uid));
		return false;
	}
	hello = expect_hello(result.socket);
	close(result.socket);
	if (!hello)
		printf("no HELLO\n");
	return hello;
}

static int abort_after(struct attach_target *target, int ms)
{
	const struct attach_control control = {"duet-abort", "00000000000000000000000000000000"};
	struct attach attach;

	target->timeout_ns = 0;
	if (attach_start(&attach, target, &control) < 0)
		return 1;
	usleep(ms * 1000);
	attach_abort(&attach);
	children_wait();
	printf("aborted\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct process_table table;
	struct attach_target target = {0};
	const struct process *process;
	int cycles = argc > 3 ? atoi(argv[3]) : 1, timeout_ms = argc > 2 ? atoi(argv[2]) : 0;

	if (argc < 2)
		return 2;
	target.pid = atoi(argv[1]);
	process_table_init(&table);
	process = process_get(&table, target.pid, 0);
	if (process) {
		target.ns_pid = process->ns_pid;
		target.start_ticks = process->start_ticks;
		target.uid = process->uid;
		target.gid = process->gid;
	}
	process_table_release(&table);
	if (timeout_ms < 0)
		return abort_after(&target, -timeout_ms);
	target.timeout_ns = timeout_ms * NS_PER_MS;
	for (int i = 0; i < cycles; i++)
		if (!attach_cycle(&target))
			return 1;
	printf("ok\n");
	return 0;
}
