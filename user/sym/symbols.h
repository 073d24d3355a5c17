/* SPDX-License-Identifier: MIT */
/*
 * Native and kernel addresses to names. Files are opened once per (device,
 * inode, size, times) and shared between processes; through the target's own mount
 * namespace. Unknown is `module+0xoffset` (the file's virtual address at which the
 * function starts, or of the instruction when even that is unknown), `[anon]+0xoffset`
 * or `[unmapped]+0xaddress`, never empty. Knows no JVM.
 */
#ifndef SYM_SYMBOLS_H
#define SYM_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/process.h"

struct symbols; /* caches: ELF files, kallsyms, perf-maps */

struct symbol {
	const char *name;   /* demangled; never NULL or empty; ours, valid until symbols_forget() or symbols_trim() */
	const char *module; /* file name without folders, "kernel", a kernel module's name, or "" */
	bool is_guess;	    /* nothing is known of the address yet: a perf-map or a mapping may still come */
};

struct symbols *symbols_new(void); /* NULL when out of memory */
void symbols_free(struct symbols *symbols);
/* Frees what can be read again, but the kernel's names, which every sample may need. */
void symbols_forget(struct symbols *symbols);

/*
 * `address` as sampled: a pc for the leaf, a return address for callers (then
 * is_return is true and the byte before it is looked up). Re-reads the process's
 * maps when the address is in none of them. Never fails: the name says what is
 * known.
 */
void symbols_user(struct symbols *symbols, struct process *process, uint64_t address, bool is_return,
		  struct symbol *ret);
void symbols_kernel(struct symbols *symbols, uint64_t address, bool is_return, struct symbol *ret);

uint64_t symbols_work_ns(const struct symbols *symbols); /* CPU time that reading files took */
/* What was learnt of one process; it is gone, or another will stand at its address. */
void symbols_forget_process(struct symbols *symbols, const struct process *process);
/* Frees what was not asked for since the call before the last: for a recording that goes on, once a window. */
void symbols_trim(struct symbols *symbols);

#endif
