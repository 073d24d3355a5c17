/* SPDX-License-Identifier: MIT */
/*
 * Converts native and kernel addresses to names; it knows nothing of JVMs. Files are opened through the target's own
 * mount namespace, and read once for each (device, inode, size, times); processes share them.
 *
 * Names are never empty. An address without a symbol is called `module+0xoffset`, where the offset is the virtual
 * address in the file at which the function starts, or of the instruction if even that is unknown; `[anon]+0xoffset`;
 * or `[unmapped]+0xaddress`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc/process.h"

struct symbols; /* caches: ELF files, kallsyms, perf-maps */

struct symbol {
	const char *name;   /* demangled, not empty; valid until the next call */
	const char *module; /* the same; a file name without folders, "kernel", a kernel module's name, or "" */
	int32_t offset;	    /* of the instruction from the start of the function, in bytes; -1 = not known */
	bool is_guess;	    /* nothing is known of the address yet; a perf-map or a mapping may still appear */
};

struct symbols *symbols_new(void); /* NULL when out of memory */
void symbols_free(struct symbols *symbols);
/* Frees everything that can be read again, except the kernel's names, which every sample may need. */
void symbols_forget(struct symbols *symbols);

/*
 * `address` is as sampled: a pc for the leaf, a return address for callers. For a return address pass is_return: then
 * the byte before it is looked up. symbols_user() reads the process's maps again if none contains the address. Both
 * always return a name.
 */
void symbols_user(struct symbols *symbols, struct process *process, uint64_t address, bool is_return,
		  struct symbol *ret);
void symbols_kernel(struct symbols *symbols, uint64_t address, bool is_return, struct symbol *ret);

/* A function of the kernel, as the kernel itself reports it. */
struct kernel_name {
	const char *name; /* valid until the next call; NULL: the kernel has none */
	const char *module; /* likewise; "kernel" if it is in none */
	uint64_t offset; /* of the address in the function */
};
typedef int (*kernel_namer)(void *context, uint64_t address, struct kernel_name *ret); /* returns 0 or -errno */
/* Makes symbols_kernel() call `namer`. What that does not find is looked up in /proc/kallsyms, as all is without it. */
void symbols_ask_kernel(struct symbols *symbols, kernel_namer namer, void *context);
/* Without symbols_ask_kernel(), reads the kernel's names, which takes tens of milliseconds. */
void symbols_prepare_kernel(struct symbols *symbols);

uint64_t symbols_work_ns(const struct symbols *symbols); /* CPU time spent on reading files */
/* Frees what is known of one process. Call it when the process has ended, or before `process` is freed. */
void symbols_forget_process(struct symbols *symbols, const struct process *process);
/* Frees files that were not needed since the call before the last. A continuous recording calls it once a window. */
void symbols_trim(struct symbols *symbols);
