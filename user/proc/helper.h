/* SPDX-License-Identifier: MIT */
/*
 * A helper process that opens and reads the files of targets. The owner of a file, a mount or a process can make such
 * a read hang for ever, so that not even SIGKILL ends it: by a FUSE server that does not answer, or by a thread that
 * waits for a page while it holds the lock of its memory map. So the loader looks up no path of a target, reads none of
 * its files that others may hold, and nothing of /proc that takes that lock. The helper does. The loader waits for it
 * for a second, or for six while the helper is ready to run. A helper that does not answer is killed and replaced.
 *
 *	loader -> keeper    "another helper": the keeper is forked while the loader is small, and is never held up
 *	loader -> helper    a task: a descriptor, a path, a number
 *	helper -> loader    an answer: a text, or a descriptor
 *
 * Those whose processes held up a helper are barred for a minute, and all of them together get no more than a 20th of
 * the loader's time.
 */
#ifndef PROC_HELPER_H
#define PROC_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"

struct helper_answer {
	struct buf text;
	int fd; /* -1: none; the receiver's */
	struct stat st;
};

struct helper_task {
	/* Runs in the helper. Fills the answer; 0 or -errno. */
	int (*work)(const struct helper_task *task, struct helper_answer *answer);
	pid_t pid; /* the target, whose user is barred when there is no answer */
	int fd; /* opened in a way that does not block (O_PATH), or -1; the caller's */
	const char *path; /* or "" */
	uint64_t number;
};

/* Early, while the process is small. Until then, and in forks of the caller, tasks are done by their callers. */
void helper_start(void);
/* The keeper and the helper end. */
void helper_end(void);

/* `answer`, which is to be released in any case. What `work` returned; -ETIMEDOUT, or -EBUSY when barred. */
int helper_run(const struct helper_task *task, struct helper_answer *answer);
void helper_answer_release(struct helper_answer *answer);

/* Appends at most `max` bytes of /proc/PID/`name`; proc_fd is /proc/PID. As io_read_file(). */
int helper_read(pid_t pid, int proc_fd, const char *name, size_t max, struct buf *text);

uint64_t helper_cpu_ns(void); /* that helpers took */
uint64_t helper_unanswered(void); /* tasks that were given up, or not begun since their user is barred */

#endif
