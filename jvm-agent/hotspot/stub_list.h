/* SPDX-License-Identifier: MIT */
/*
 * The routines of hand-written code by which HotSpot copies arrays, computes checksums and so on. Many of them share a
 * code blob; this distinguishes them.
 */
#ifndef HOTSPOT_STUB_LIST_H
#define HOTSPOT_STUB_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listed_stub {
	uintptr_t start;
	size_t bytes;
	uintptr_t name; /* address of its text in the JVM's memory; 0: code between two routines */
};

/* Returns true if a blob of this name holds such routines. */
bool stub_list_has_blob(const char *name);
/*
 * Replaces *stub, a blob that holds pc, by the routine that holds pc, or else by the code between two routines. Changes
 * nothing if the list of this JVM is not found.
 */
void stub_list_find(uintptr_t pc, struct listed_stub *stub);

#endif
