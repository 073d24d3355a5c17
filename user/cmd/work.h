/* SPDX-License-Identifier: MIT */
/*
 * Work on recordings, which may come from anybody, is done in a child in a box (base/box.h). What it opens it asks its
 * parent for, which opens nothing but what the command line has named.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/opt.h"

struct inputs;

/* What the work may ask for, and the work. */
struct work {
	const struct inputs *inputs;
	const char *output; /* NULL: none; "-": stdout */
	gid_t group; /* of the output: IO_NO_GROUP for none */
	const struct opt_strings *sources, *codes; /* of annotate; NULL: none */
	bool repeats; /* the output has the stack of each sample, and takes more time for each byte that is read */
	int file; /* a descriptor that stays open; 0: none */
	int (*run)(void *context); /* returns the exit code, or -errno after reporting the error */
	void *context;
};

/* Returns the exit code. What was not written as a whole is not there. */
int work_run(const struct work *work);

/* ---- for the functions that open ---- */

enum work_kind {
	WORK_MESSAGE, /* of level `number` */
	WORK_NO_MEMORY,
	WORK_TEMPORARY,
	WORK_INPUT,
	WORK_OUTPUT,
	WORK_OUTPUT_END,
	WORK_SOURCE,
	WORK_CODE,
	WORK_DISASSEMBLY,
	WORK_DISASSEMBLY_END,
	WORK_KINDS
};

#define WORK_TEXT_BYTES 8192

/* The meaning of the numbers and of the text is that of the kind. */
struct work_question {
	uint32_t kind, number;
	uint64_t values[4];
	char text[WORK_TEXT_BYTES];
};

/* The parent's part, which knows of the child only what is asked. Returns a descriptor for the child, 0 or -errno. */
typedef int work_answerer(const struct work *work, const struct work_question *question);
work_answerer inputs_answer, outputs_answer, outputs_answer_end, source_answer, disassembly_answer_code,
	disassembly_answer, disassembly_answer_end;
/* Discards the outputs, or gives those that were ended their names. Returns 0, or -errno after reporting the error. */
int outputs_finish(bool keep);

bool work_is_boxed(void); /* true in the child */
struct work_question work_question(enum work_kind kind, uint32_t number);
int work_ask(const struct work_question *question); /* in the child; returns the answer */
/* If this is the error, reports that the limit of memory is reached, once. Returns true if it was reported. */
bool work_report_memory(int err);
