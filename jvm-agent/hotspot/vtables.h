/* SPDX-License-Identifier: MIT */
/*
 * The stubs by which compiled code calls methods of a class or an interface. All code blobs that hold them have one
 * name; this distinguishes them.
 */
#ifndef HOTSPOT_VTABLES_H
#define HOTSPOT_VTABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VTABLES_BLOB "vtable chunks" /* HotSpot's name of such a blob */

struct vtable_stub {
	uintptr_t start; /* of its code */
	size_t bytes; /* at least up to the jump to the method */
	const char *name; /* "vtable stub" or "itable stub", as HotSpot calls them; static */
};

/* Finds the stub that holds pc, in a blob whose code begins at `begin`. Returns false if there is none. */
bool vtables_find(uintptr_t pc, uintptr_t begin, struct vtable_stub *ret);

#endif
