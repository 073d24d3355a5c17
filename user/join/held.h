/* SPDX-License-Identifier: MIT */
/* A decision that waits, with references to all that it needs: nothing of that is freed before held_free(). */
#ifndef JOIN_HELD_H
#define JOIN_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "join/decision.h"

struct held {
	struct decision decision; /* its halves are owned; its process and origin are referenced */
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	uint32_t program; /* process->programs at that time */
	size_t bytes; /* of both halves */
};

/* Returns a copy, or NULL when out of memory. */
struct held *held_new(const struct decision *decision, uint64_t now_ns);
void held_free(struct held *held); /* NULL is allowed */

/* Returns false if the process has executed another program since: its mappings name other functions. */
static inline bool held_is_current(const struct held *held)
{
	return held->program == held->decision.process->programs;
}

#endif
