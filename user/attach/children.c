/* SPDX-License-Identifier: MIT */
#include "attach/children.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"

#define SOON_STEPS 100
#define STEP_NS NS_PER_MS
#define KILLED_GRACE_NS (200 * NS_PER_MS)

struct leftover {
	pid_t child; /* 0: the child has ended, but something that it started has not */
	int life;
	uid_t uid;
	uint64_t kill_ns;
};

static struct vec(struct leftover) leftovers;

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SEC + (uint64_t)time->tv_usec * NS_PER_US;
}

/* Returns true also when there is no such child any more. */
static bool collect(pid_t child, int *ret_status, uint64_t *ret_cpu_ns)
{
	struct rusage usage = {0};
	pid_t ended = wait4(child, ret_status, WNOHANG, &usage);

	*ret_cpu_ns = timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
	return ended == child || (ended < 0 && errno == ECHILD);
}

static void step(void)
{
	const struct timespec pause = {.tv_nsec = STEP_NS};

	nanosleep(&pause, NULL);
}

bool children_collect_soon(pid_t child, int *ret_status, uint64_t *ret_cpu_ns)
{
	for (int i = 0; i < SOON_STEPS; i++) {
		if (collect(child, ret_status, ret_cpu_ns))
			return true;
		step();
	}
	return false;
}

/* Returns true if no process holds the writing end any more. */
static bool has_ended(int life)
{
	char none;

	return read(life, &none, sizeof(none)) == 0;
}

/* Returns true when the child and everything it started have ended. */
static bool collect_all(struct leftover *leftover)
{
	uint64_t cpu_ns;
	int status;

	if (leftover->child && collect(leftover->child, &status, &cpu_ns))
		leftover->child = 0;
	if (leftover->child || !has_ended(leftover->life))
		return false;
	close(leftover->life);
	return true;
}

void children_leave(pid_t child, int life, uid_t uid, uint64_t kill_ns)
{
	struct leftover leftover = {.child = child, .life = life, .uid = uid, .kill_ns = kill_ns};

	if (collect_all(&leftover) || vec_push(&leftovers, leftover) == 0)
		return;
	close(life); /* out of memory: the child stays a zombie until the loader ends */
	if (leftover.child)
		kill(leftover.child, SIGKILL);
}

void children_collect(uint64_t now_ns)
{
	size_t left = 0;

	for (size_t i = 0; i < leftovers.len; i++) {
		struct leftover *leftover = &leftovers.items[i];

		if (collect_all(leftover))
			continue;
		if (leftover->child && now_ns >= leftover->kill_ns)
			kill(leftover->child, SIGKILL);
		leftovers.items[left++] = *leftover;
	}
	leftovers.len = left;
}

size_t children_left(uid_t uid)
{
	size_t count = 0;

	for (size_t i = 0; i < leftovers.len; i++)
		count += leftovers.items[i].uid == uid;
	return count;
}

void children_wait(void)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < leftovers.len; i++)
		if (leftovers.items[i].kill_ns > last_ns)
			last_ns = leftovers.items[i].kill_ns;
	for (uint64_t now_ns = 0; leftovers.len && now_ns < last_ns + KILLED_GRACE_NS; step()) {
		now_ns = clock_monotonic_ns();
		children_collect(now_ns);
	}
	vec_release(&leftovers);
}
