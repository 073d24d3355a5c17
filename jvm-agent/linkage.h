/* SPDX-License-Identifier: MIT */
/*
 * The linkage tables of the libraries of this process: the places where the dynamic linker stored the addresses of
 * functions of other libraries. Those of the hooked functions are replaced. Not async-signal-safe, and never called
 * with a lock of the dynamic linker held by others than its own calls.
 */
#ifndef LINKAGE_H
#define LINKAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct linkage_hook {
	const char *name;
	uintptr_t hook; /* address of the function to call instead */
	/*
	 * Belongs to the allocator: a library of which one such place holds neither the process's function nor a hook
	 * has an allocator of its own. It is left alone.
	 */
	bool is_allocators;
	uintptr_t real; /* set by linkage_open() */
};

/*
 * Sets `real` of all hooks from the agent's own linkage table: the agent must call each function somewhere. Returns
 * false if one is missing. The hooks must stay valid: the functions below use them.
 */
bool linkage_open(struct linkage_hook *hooks, size_t count);
/*
 * Installs the hooks wherever they are missing. Does nothing if no library was loaded since the last call. When another
 * thread is at it, leaves the work to that thread.
 */
void linkage_install(void);
/* Puts the functions back wherever there is a hook. A library that was unloaded meanwhile is not touched. */
void linkage_remove(void);

#endif
