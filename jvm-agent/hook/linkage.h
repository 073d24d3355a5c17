/* SPDX-License-Identifier: MIT */
/*
 * The linkage tables of the libraries of this process: the places where the dynamic linker stored the addresses of
 * functions of other libraries. Hooks replace some. Not async-signal-safe. Callers hold no lock of the dynamic linker.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct linkage_hook {
	const char *name;
	uintptr_t hook; /* address of the function to call instead */
	/*
	 * A function of the allocator. If such a place of a library holds neither the process's function nor a hook,
	 * the library has an allocator of its own, and the hooks of this set leave it alone.
	 */
	bool is_allocators;
	uintptr_t real; /* set by linkage_open() */
	const char *alias; /* another name of the same function in libc; NULL: it has none */
};

enum linkage_state {
	LINKAGE_CLOSED,
	LINKAGE_OPEN,
	LINKAGE_CLOSING, /* its hooks are to be removed */
};

/* Hooks that come and go together. Static: its hooks may be called, and it may be read, at any time after. */
struct linkage_set {
	struct linkage_hook *hooks;
	size_t count;
	enum linkage_state state; /* atomic */
};

/*
 * Sets `real` of all hooks from the agent's own linkage table: so the agent must call each function somewhere.
 * Installs nothing yet, but libraries that are loaded from now on get the hooks before dlopen() returns. Returns false
 * if a function is missing. This and linkage_close() are called on the agent's thread.
 */
bool linkage_open(struct linkage_set *set);
/*
 * Installs the hooks of all open sets wherever they are missing. Does nothing if no library was loaded since the last
 * call. If another thread is doing the same, leaves the work to that thread.
 */
void linkage_install(void);
/*
 * Restores the functions wherever there is a hook of the set. A library that was unloaded since is not touched. Waits
 * at most a second if another thread does the work.
 */
void linkage_close(struct linkage_set *set);
