/* SPDX-License-Identifier: MIT */
/* The line of perf script's text that begins a sample, and the words of lines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_ADDRESS_WIDTH 16 /* addresses are padded to so many places */

/* A part of a line, which owns it; not terminated. */
struct perf_word {
	const char *text;
	size_t len;
};

struct perf_head {
	struct perf_word comm, event; /* the event may be empty if perf_head_read_bare() has read it */
	struct perf_word frame; /* of a sample without a call chain, else empty */
	uint32_t pid, tid;
	uint64_t time_ns, period;
	bool has_period; /* else it is 1 */
	bool has_time;
};

bool perf_word_is(const struct perf_word *word, const char *text);
/* Returns the next word of the line from *at on; its len is 0 at the end. */
struct perf_word perf_word_next(const char *line, size_t len, size_t *at);
/* Reads digits only. Returns false also if the number is too large. */
bool perf_word_number(const char *text, size_t len, uint64_t *ret);
bool perf_word_is_address(const struct perf_word *word);

/* Reads "comm pid/tid [cpu] time: period event:", of which time and event must be there. Else it returns false. */
bool perf_head_read(const char *line, size_t len, struct perf_head *ret);
/*
 * Reads any parts of "comm pid/tid [cpu] time: period event: address symbol", in this order. Other words are the name,
 * unless there are too many: then they are the text of a tracepoint.
 */
void perf_head_read_bare(const char *line, size_t len, struct perf_head *ret);
bool perf_head_is_tracepoint(const struct perf_word *event); /* as sched:sched_switch */
