/* SPDX-License-Identifier: MIT */
/*
 * Which byte code the compilers turn into a call of which of HotSpot's stubs. They leave no record of a method that
 * they have inlined and that calls nothing but a stub. The byte code of its callers leads to it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "duet_agent.h"

#define STUB_CALLERS_DEPTH 10
#define STUB_CALLERS_NEAR 6 /* longer ways are searched where there is none up to this depth */
#define STUB_CALLERS_BARREN 2048
#define STUB_CALLERS_CALL 8 /* steps of a call that is followed; byte code takes one for each 256 bytes that are read */
#define STUB_CALLERS_NANOS "nanoTime"
#define STUB_CALLERS_MILLIS "currentTimeMillis"
#define STUB_CALLERS_RUNTIME "runtime" /* stands for all other functions of the JVM itself */
#define STUB_CALLERS_CARDS "cards, runtime" /* the same where the compilers need none for barriers of stores */
#define STUB_CALLERS_OLD "old runtime" /* the same of JDK 8, which computes sines and so on there */
#define STUB_CALLERS_OLD_CARDS "cards, old runtime"

struct stub_callers {
	int kind; /* stub_callers_kind() */
	/* True for an invoke that is a call in the compiled code, so that the callee is not inlined there. */
	bool (*is_call)(const void *context, const struct duet_java_frame *frame);
	const void *context;
	const uintptr_t *classes; /* that the compiled code knows: receivers of virtual calls are among them */
	uint32_t class_count;
	uint64_t *barren; /* STUB_CALLERS_BARREN methods that lead to no such stub; zeros for each compilation */
	uint32_t *budget; /* steps that may still be made, see STUB_CALLERS_CALL; 0: the search is not complete */
	uint32_t ways; /* through different methods; the search ends where they have nothing in common */
	uint32_t met; /* ways, the same ones again too */
	struct duet_java_frame way[STUB_CALLERS_DEPTH]; /* the first that all have; outermost frame first */
	uint32_t depth; /* of it */
	struct duet_java_frame at[STUB_CALLERS_DEPTH]; /* while it searches */
	uint32_t level, limit; /* STUB_CALLERS_DEPTH at most */
};

/* Returns a number for the stubs of this name; 0: it is not known which byte code calls them. */
int stub_callers_kind(const char *stub);
bool stub_callers_is_runtime(int kind);
/* Adds the ways to such a stub from the byte code of `method`, from bci `begin` to `end`. */
void stub_callers_find(struct stub_callers *search, uint64_t method, int32_t begin, int32_t end);
