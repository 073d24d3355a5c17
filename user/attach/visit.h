/* SPDX-License-Identifier: MIT */
/*
 * One visit to a target process, made by the child that attach.c forks: the
 * target's /proc directory, root and working directory as descriptors, opened
 * while the child still has the loader's rights. Descriptors name this very
 * process; a reused pid cannot slip in behind them.
 */
#ifndef ATTACH_VISIT_H
#define ATTACH_VISIT_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/attach.h"

/* What the child inherits beside stdio: */
#define VISIT_RESULT_FD 3 /* its word to the loader */
#define VISIT_LIFE_FD 4 /* a pipe that tells the loader of its end, and of the end of what it starts */

struct visit {
	const struct attach_target *target;
	int proc; /* /proc/PID */
	int root; /* its root directory, O_PATH */
	int cwd; /* its working directory, O_PATH; -1 when it was removed */
	int stat, status; /* of /proc/PID: a /proc that hides processes shows them no more to the target's user */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	char why[sizeof(((struct attach_result *)0)->why)];
};

/* 0, or -errno with the sentence in `why`. Release also after a failure. */
int visit_open(struct visit *visit, const struct attach_target *target, uint64_t deadline_ns);
void visit_release(struct visit *visit);

/* -errno with its sentence unless this is still the process meant, and it runs. */
int visit_check(struct visit *visit);
/* 0, or -errno with its sentence unless the target maps HotSpot's libjvm.so. */
int visit_check_hotspot(struct visit *visit);
/* 1 when the target catches SIGQUIT, 0 when the signal would kill it, -errno. */
int visit_catches_quit(const struct visit *visit);
/* SIGQUIT for the target and nobody else, only when it is caught. 0, or -errno with its sentence. */
int visit_send_quit(struct visit *visit);

/*
 * Sleeps about `ns`. 0, or with its sentence -ETIMEDOUT at the deadline, -ECANCELED
 * after visit_cancel(), or visit_check()'s error.
 */
int visit_pause(struct visit *visit, uint64_t ns);
/* As visit_pause(), but wakes up when `fd` is ready for `events`. */
int visit_wait(struct visit *visit, int fd, short events);
/* From a signal handler: every wait of this process ends with -ECANCELED. */
void visit_cancel(int signo);

/* Words the failure, returns `error`. */
__attribute__((format(printf, 3, 4))) int visit_fail(struct visit *visit, int error, const char *format, ...);

#endif
