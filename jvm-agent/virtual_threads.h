/* SPDX-License-Identifier: MIT */
/*
 * How samples tell the virtual thread that is mounted. HotSpot exports where a JavaThread keeps it, but not how a
 * java.lang.Thread looks. What is assumed of that is tried on a thread whose id and name are known, and left out where
 * it proves wrong.
 */
#ifndef VIRTUAL_THREADS_H
#define VIRTUAL_THREADS_H

#include "duet_jvm.h"
#include "duet_record.h"

/* A platform thread that lives meanwhile: the caller. */
struct virtual_witness {
	uint64_t java_thread;
	uint64_t id; /* Thread.threadId() */
	const char *name; /* in ASCII */
	/* Offsets of fields as in struct duet_jvm_virtual, which may be wrong. */
	uint16_t object_id;
	uint16_t object_name;
	uint16_t string_value;
	uint16_t string_coder;
};

/* All 0 when this JVM has no virtual threads, or they cannot be told. */
void virtual_threads_learn(const struct virtual_witness *witness, struct duet_jvm_virtual *ret);
/* What is mounted on this JavaThread, or 0, into *ret, which is all 0. Async-signal-safe. */
void virtual_threads_mounted(const struct duet_jvm_layout *layout, uint64_t java_thread,
			     struct duet_virtual_thread *ret);

#endif
