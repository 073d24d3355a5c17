/* SPDX-License-Identifier: MIT */
/* Inside proc/ only: the process that forks helpers and parsers for the loader, and what these exchange with it. */
#pragma once

#include "proc/helper.h"

/* What an honest file stays far below: see ELF_READER_MAX_BYTES, and the work that unwind/cfi.c allows. */
#define PARSER_BYTES (1ull << 30)
#define PARSER_CPU_NS (10 * NS_PER_SEC)

/* What the loader asks of the supervisor. It answers the first two with the worker's socket and pid. */
struct order {
	enum { ORDER_OPENER, ORDER_PARSER, ORDER_END } kind;
	pid_t pid; /* ORDER_END: of a parser */
};

/* A task, sent to the helper. The path follows. */
struct request {
	/* The helper is a fork, so the address is valid there. */
	int (*work)(const struct helper_task *task, struct helper_answer *answer);
	uint64_t number;
	struct charge charge;
};

/* An answer. The text follows, in messages of at most CHUNK_BYTES. */
struct reply {
	int result;
	uint32_t text_len;
	uint64_t cpu_ns;
	struct stat st;
};

void supervise(int orders); /* in a fork of the loader; returns when it has closed its end of `orders` */
/* Returns false if a child, -1 for any, is left after so many steps; most end at once. */
bool supervisor_await_end(pid_t child, int steps);
