/* SPDX-License-Identifier: MIT */
/*
 * How samples recognise the virtual thread that is mounted. HotSpot exports where a JavaThread keeps the reference to
 * it, but not the layout of a java.lang.Thread. Assumptions about that layout are tested on a thread whose id and name
 * are known. An assumption that proves wrong is not used.
 */
#pragma once

#include "duet_jvm.h"
#include "duet_record.h"

/* A platform thread that lives as long as the test: the caller. */
struct virtual_witness {
	uint64_t java_thread;
	uint64_t id; /* Thread.threadId() */
	const char *name; /* in ASCII */
	/* Offsets of fields, named as in struct duet_jvm_virtual; they may be wrong. */
	uint16_t object_id;
	uint16_t object_name;
	uint16_t string_value;
	uint16_t string_coder;
};

/* Fills *ret: all 0 when this JVM has no virtual threads, or when they cannot be recognised. */
void virtual_threads_learn(const struct virtual_witness *witness, struct duet_jvm_virtual *ret);
/*
 * Stores in *ret which virtual thread is mounted on this JavaThread, if any; java_thread may be 0. `is_there`: it
 * exists while this runs, as that of a callback's thread. *ret must be all 0 before. Async-signal-safe.
 */
void virtual_threads_mounted(const struct duet_jvm_layout *layout, uint64_t java_thread, bool is_there,
			     struct duet_virtual_thread *ret);
