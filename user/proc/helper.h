/* SPDX-License-Identifier: MIT */
/*
 * A helper process that opens and reads the files of targets. The owner of a file, a mount or a process can make such a
 * read hang for ever, so that not even SIGKILL ends it: with a FUSE server that does not answer, or with a thread that
 * waits for a page while it holds the mmap lock of its process. So the loader itself looks up no path of a target,
 * reads no file of a target that another process could block, and reads nothing in /proc that takes the mmap lock. The
 * helper does all of this. The loader waits one second for it, or six while the helper is runnable. A helper that does
 * not answer is killed and replaced.
 *
 * The loader asks the supervisor for another helper. The supervisor is forked while the loader is small, and never
 * blocks. The loader sends the helper a task: a descriptor, a path, a number. The helper answers with a text or a
 * descriptor.
 *
 * A payer whose process blocked a helper is refused for a minute. All such waits together take at most a 20th of the
 * loader's time.
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "proc/allowance.h"

struct helper_answer {
	struct buf text;
	int fd; /* a descriptor owned by the receiver, or -1 */
	struct stat st;
};

struct helper_task {
	/* Runs in the helper and fills the answer. Returns 0 or -errno. */
	int (*work)(const struct helper_task *task, struct helper_answer *answer);
	const struct charge *charge; /* for whom; the payer is refused if the task is not answered */
	int fd; /* opened in a way that cannot block (O_PATH), or -1; owned by the caller */
	const char *path; /* may be "" */
	uint64_t number;
};

/* Call early, while the process is small. Before it, and in forks, helper_run() runs tasks in the caller. */
void helper_start(void);
/* Ends the supervisor and the helper. */
void helper_end(void);

/*
 * Runs a task and fills `answer`, which the caller must release in any case. Returns what `work` returned, -ETIMEDOUT
 * when there was no answer, -EBUSY when the user is refused, or another -errno.
 */
int helper_run(const struct helper_task *task, struct helper_answer *answer);
void helper_answer_release(struct helper_answer *answer);
int helper_text(const struct helper_task *task, struct buf *text); /* the same, and appends the answer's text */

/* Appends at most `max` bytes of /proc/PID/`name`, where proc_fd is /proc/PID. Returns as io_read_file(). */
int helper_read(const struct charge *charge, int proc_fd, const char *name, size_t max, struct buf *text);

uint64_t helper_cpu_ns(void); /* CPU time that helpers used */
