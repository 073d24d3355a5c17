/* SPDX-License-Identifier: MIT */
/*
 * Where the names of a JVM's samples come from: its agent, or its reader outside of it, as far as join/ knows either.
 * What waits in join/ refers to it, and it is not freed while it has references.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proc/process.h"

struct origin {
	struct process *process; /* referenced */
	uint32_t references;
	uint32_t awaited; /* samples and halves that wait for its records or answers; each is a reference, too */
	size_t record_bytes; /* of its records that wait for their samples */
};

static inline struct origin *origin_ref(struct origin *origin)
{
	if (origin)
		origin->references++;
	return origin;
}

static inline void origin_unref(struct origin *origin)
{
	if (origin)
		origin->references--;
}

/* The same for what waits for the origin. */
static inline struct origin *origin_await(struct origin *origin)
{
	if (origin)
		origin->awaited++;
	return origin_ref(origin);
}

static inline void origin_unawait(struct origin *origin)
{
	if (origin)
		origin->awaited--;
	origin_unref(origin);
}
