/* SPDX-License-Identifier: MIT */
/*
 * What a JVM's arguments and counters say of it. Both are the process's to write: a parser reads them (proc/helper.h),
 * and the loader gets short texts and numbers.
 */
#pragma once

#include "base/buf.h"
#include "proc/helper.h"
#include "proc/process.h"

/* In the parser. */
struct words {
	struct buf arguments; /* of /proc/PID/cmdline, each with a NUL after it; empty if it cannot be read */
	struct buf counters; /* attach/hsperfdata.h; empty if there are none */
};

int words_read(struct words *words, const struct helper_task *task); /* returns 0 or -errno; release them after 0 */
void words_release(struct words *words);

/*
 * Runs `work` in a parser: it begins with words_read(), and `number` is its task's. The helper gets the bytes: the
 * kernel takes arguments from the process's memory, where the process may have anything. Returns as parser_run().
 */
int words_parse(const struct charge *charge, const struct process *process,
		int (*work)(const struct helper_task *task, struct helper_answer *answer), uint64_t number,
		struct helper_answer *answer);

/* What is not known is "". */
struct about {
	struct buf name; /* "java: app.jar" */
	struct buf executed_as; /* its first argument, if that is an absolute path */
	struct buf version; /* "17.0.15" */
	struct buf flags; /* as vm_flags_print() */
	struct buf spark_name, spark_properties, spark_id; /* as struct spark */
	uint64_t is_spark;
};

/* `is_young`: a JVM without counters may still create them, so it has no flags yet. Release `ret` in any case. */
int about_read(struct about *ret, const struct charge *charge, const struct process *process, bool is_young);
void about_release(struct about *about);
