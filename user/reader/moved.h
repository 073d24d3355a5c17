/* SPDX-License-Identifier: MIT */
/*
 * Where ZGC has moved objects to. After it has moved an object, references in other objects keep the old address until
 * the next collection marks through them, or the program loads them. ZGC keeps a table of the new addresses as long.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Finds the tables in the JVM that is open. `offset_mask` has the bits of an address that say where in the heap an
 * object is. Returns false when they are not found; then moved_to() returns each address as it is.
 */
bool moved_learn(uintptr_t offset_mask);
/*
 * Returns the new address of the object that was at `address`, or `address` when no table has it. A table may be older
 * than the object that is at the address now, so the caller checks what it finds there.
 */
uintptr_t moved_to(uintptr_t address);
