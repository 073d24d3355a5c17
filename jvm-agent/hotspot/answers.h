/* SPDX-License-Identifier: MIT */
/*
 * Answers the loader's questions about methods and code from the JVM's memory, with records in the ring. Only methods
 * that samples hit are named, not the tens of thousands that are loaded. For one thread, and no signal handler.
 */
#pragma once

#include "hotspot/metadata.h"
#include "hotspot/nmethods.h"
#include "hotspot/ring.h"
#include "hotspot/stubs.h"

/* These functions find what memory does not show. They may be NULL. */
struct answers {
	struct ring *ring;
	bool (*other_names)(void *context, uint64_t key, struct metadata_names *ret);
	/* Called before names are read. Notes what is_loaded() depends on with memory_note(). */
	void (*note_loaded)(void *context);
	/* Called when names were read and proven. Returns false when their method may have been unloaded before. */
	bool (*is_loaded)(void *context, uint32_t unloads);
	uint32_t unloads; /* struct duet_want::unloads of the WANT that is answered */
	/* Called when nothing was found. Returns false when the JVM has ended; then there is no answer. */
	bool (*is_there)(void *context);
	void *context; /* first argument of the four functions that take one */
	/* Finds a stub that has no blob of its own. */
	bool (*other_stub)(uintptr_t pc, struct duet_stub *ret_stub, char name[STUB_NAME_BYTES]);
	/* Copies a compilation that was freed lately. The caller releases *ret. */
	bool (*freed_code)(uint32_t id, struct nmethod_record *ret);
};

/* Answers WANTs for methods, with the same `unloads`: METHOD or GONE records; none when the JVM has ended. */
void answer_methods(const struct answers *answers, const struct metadata_key *keys, size_t count);
/*
 * Answers a WANT for the code at pc. Writes DUET_AGENT_CODE_LOAD if a compiled method is there and `id` is its
 * compilation's id or 0; records of the methods that it names come before it. Else writes DUET_AGENT_STUB if `id` is 0
 * and other code is there, or DUET_AGENT_GONE. now_ns is CLOCK_MONOTONIC.
 */
void answer_code(const struct answers *answers, uint64_t pc, uint32_t id, uint64_t now_ns);
/* Writes the code heaps' address ranges, DUET_AGENT_CODE_HEAP. */
void answer_heaps(const struct answers *answers);
/* Forgets which records were sent: for a new loader, and when the loader may have dropped some. */
void answers_reset(void);
