/* SPDX-License-Identifier: MIT */
/*
 * One visit of a target process, by the child that attach.c forks. It holds descriptors of the target's /proc
 * directory, root and working directory, opened while the child still has the loader's rights. A descriptor always
 * means this one process, even if its pid is reused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach/attach.h"
#include "proc/cgroup.h"

/* Descriptors that the child inherits besides stdio: */
#define VISIT_RESULT_FD 3 /* socket for its result */
#define VISIT_LIFE_FD 4 /* pipe; the loader reads its end of file when the child and all it started have ended */

struct visit {
	const struct attach_target *target;
	int proc; /* /proc/PID */
	int root; /* its root directory, O_PATH */
	int cwd; /* its working directory, O_PATH; -1 when it could not be opened */
	int stat, status; /* /proc/PID/stat and status, opened early: with hidepid the target's user cannot open them */
	struct cgroup_freezer freezer; /* opened early, too: the target may see other cgroups */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	char why[sizeof(((struct attach_result *)0)->why)];
};

/* Returns 0, or -errno with the reason in visit->why. Call visit_release() also after a failure. */
int visit_open(struct visit *visit, const struct attach_target *target, uint64_t deadline_ns);
void visit_release(struct visit *visit);

/* Returns 0 if this is still the same process and it can run now, else -errno with the reason in visit->why. */
int visit_check(struct visit *visit);
/* Returns 0 if the target is a HotSpot JVM that can load our agent, else -errno with the reason in visit->why. */
int visit_check_hotspot(struct visit *visit);
/* Returns 1 when the target catches SIGQUIT, 0 when the signal would kill it, or -errno. */
int visit_catches_quit(const struct visit *visit);
/* True while no thread of the target has taken the SIGQUIT that visit_send_quit() has sent. */
bool visit_quit_is_pending(const struct visit *visit);
/* Sends SIGQUIT to this process if it catches the signal. Returns 0, or -errno with the reason in visit->why. */
int visit_send_quit(struct visit *visit);

/*
 * Sleeps for about `ns`. Returns 0, or -errno with the reason in visit->why: -ETIMEDOUT at the deadline, -ECANCELED
 * after visit_cancel(), or the error of visit_check().
 */
int visit_pause(struct visit *visit, uint64_t ns);
/* Like visit_pause(), but waits until `fd` is ready for `events`. */
int visit_wait(struct visit *visit, int fd, short events);
/* A signal handler, async-signal-safe: every later wait in this process fails with -ECANCELED. */
void visit_cancel(int signo);

/* Formats the reason into visit->why and returns `error`. */
__attribute__((format(printf, 3, 4))) int visit_fail(struct visit *visit, int error, const char *format, ...);
