/* SPDX-License-Identifier: MIT */
/*
 * The linkage tables of the libraries of this process: the places where the dynamic linker stored the addresses of
 * functions of other libraries. Hooks replace the addresses of some functions. Not async-signal-safe. Callers hold no
 * lock of the dynamic linker.
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
	 * A function of the allocator. If such a place of a library holds neither the process's function nor a hook,
	 * the library has an allocator of its own and is left alone.
	 */
	bool is_allocators;
	uintptr_t real; /* set by linkage_open() */
};

/*
 * Sets `real` of all hooks from the agent's own linkage table: so the agent must call each function somewhere. Returns
 * false if one is missing. The hooks must stay valid: the functions below use them.
 */
bool linkage_open(struct linkage_hook *hooks, size_t count);
/*
 * Installs the hooks wherever they are missing. Does nothing if no library was loaded since the last call. If another
 * thread is doing the same, leaves the work to that thread.
 */
void linkage_install(void);
/* Restores the functions wherever there is a hook. A library that was unloaded since is not touched. */
void linkage_remove(void);

#endif
