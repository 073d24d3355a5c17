/* SPDX-License-Identifier: MIT */
/* The stubs by which compiled code calls methods of a class or an interface, in code blobs of one name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_agent.h"

#define STUB_NAME_BYTES 104
#define VTABLES_BLOB "vtable chunks" /* HotSpot's name of such a blob */

struct vtable_stub {
	uintptr_t start; /* of its code */
	size_t bytes; /* at least up to the jump to the method */
	const char *name; /* "vtable stub" or "itable stub", as HotSpot calls them; static */
};

/* Finds the stub that holds pc, in a blob whose code begins at `begin`. Returns false if there is none. */
bool vtables_find(uintptr_t pc, uintptr_t begin, struct vtable_stub *ret);

/* HotSpot's routines of hand-written code, to copy arrays, compute checksums and so on; many share a code blob. */

struct listed_stub {
	uintptr_t start;
	size_t bytes;
	uintptr_t name; /* address of its text in the JVM's memory; 0: code between two routines */
};

/* Returns true if a blob of this name holds such routines. */
bool stub_list_has_blob(const char *name);
/* Replaces *stub, a blob, by the routine that holds pc, or the code between two; changes nothing without a list. */
void stub_list_find(uintptr_t pc, struct listed_stub *stub);

/* Finds the code that holds pc and is no compiled method. Copies its name: the blob may be freed at any time. */
bool stub_find(uintptr_t pc, struct duet_stub *ret_stub, char name[STUB_NAME_BYTES]);
