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
 * The same supervisor forks parsers, below.
 *
 * A payer whose process blocked a helper is refused for a minute. All such waits together take at most a 20th of the
 * loader's time.
 */
#pragma once

#include <stdbool.h>
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
	uint64_t origin; /* for a parser: who may change the bytes; 0: not known */
};

/* A process that does tasks. */
struct helper_worker {
	int socket; /* -1: there is none */
	pid_t pid;
	bool is_parser;
	uint64_t cpu_ns; /* what it has reported */
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
void helper_answer_init(struct helper_answer *answer);
void helper_answer_release(struct helper_answer *answer);
int helper_text(const struct helper_task *task, struct buf *text); /* the same, and appends the answer's text */

/* Appends at most `max` bytes of /proc/PID/`name`, where proc_fd is /proc/PID. Returns as io_read_file(). */
int helper_read(const struct charge *charge, int proc_fd, const char *name, size_t max, struct buf *text);

/*
 * Parses bytes that may come from a stranger. `work` runs in a process of its own, which has nothing but the task's
 * descriptor: base/box.h. It opens nothing. It does further tasks only for bytes of the same origin, so that what takes
 * it over spoils nothing of others. The caller checks the answer as it would check the bytes. If the parser fails, the
 * result is -EPROTO, which is counted: do not try these bytes again.
 */
struct parser {
	struct helper_worker worker; /* without a socket: `work` has run in this process, and returned `result` */
	struct helper_answer answer;
	int result;
	pid_t pid; /* of the task */
	uint64_t origin;
	uint64_t begun_ns;
};

int parser_begin(struct parser *parser, const struct helper_task *task); /* returns 0 or -errno */
/* Waits for the answer until until_ns; then returns -EAGAIN. Else returns as helper_run(), and the parser has ended. */
int parser_await(struct parser *parser, uint64_t until_ns, struct helper_answer *answer);
void parser_end(struct parser *parser); /* when the answer is not wanted any more; for {0} and after it, too */
int parser_run(const struct helper_task *task, struct helper_answer *answer); /* begins and awaits at once */
pid_t parser_lost_for(void); /* returns, once, the process for which the first parser that failed worked; or 0 */

uint64_t helper_cpu_ns(void); /* CPU time that helpers used */
