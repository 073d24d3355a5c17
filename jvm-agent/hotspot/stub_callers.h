/* SPDX-License-Identifier: MIT */
/*
 * Which byte code the compilers turn into a call of which of HotSpot's stubs. They leave no record of a method that
 * they have inlined and that calls nothing but a stub. The byte code of its callers leads to it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "duet_agent.h"

#define STUB_CALLERS_DEPTH 5
#define STUB_CALLERS_BARREN 512
#define STUB_CALLERS_CALL 8 /* steps of a call that is followed; byte code takes one for each 256 bytes that are read */
#define STUB_CALLERS_OBJECTS "arraycopy" /* what no row before it has: copies of arrays of objects */
#define STUB_CALLERS_RUNTIME "runtime" /* stands for all functions of the JVM itself */

struct stub_callers {
	int kind; /* stub_callers_kind() */
	/* True for an invoke that is a call in the compiled code, so that the callee is not inlined there. */
	bool (*is_call)(const void *context, const struct duet_java_frame *frame);
	const void *context;
	uint64_t *barren; /* STUB_CALLERS_BARREN hashes of methods that lead to no such stub; of one compilation */
	uint32_t *budget; /* steps that may still be made, see STUB_CALLERS_CALL; 0: the search is not complete */
	uint32_t ways; /* through different methods; the search ends at the second */
	struct duet_java_frame way[STUB_CALLERS_DEPTH]; /* the first, outermost frame first */
	uint32_t depth; /* of it */
	struct duet_java_frame at[STUB_CALLERS_DEPTH]; /* while it searches */
	uint32_t level;
};

/* Returns a number for the stubs of this name; 0: it is not known which byte code calls them. */
int stub_callers_kind(const char *stub);
/* True for copies of objects: beside these stubs there is a call of the JVM in the compiled code, with an entry. */
bool stub_callers_of_objects(int kind);
/* Adds the ways to such a stub from the byte code of `method`, from bci `begin` to `end`. */
void stub_callers_find(struct stub_callers *search, uint64_t method, int32_t begin, int32_t end);
