/* SPDX-License-Identifier: MIT */
/*
 * The names of the kernel's functions, from the kernel itself, one address after the other. Needs Linux 5.13 and the
 * right to load BPF programs; without them, sym/kallsyms.h has the names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sym/symbols.h"

struct names_bpf;

/* Zero it before the first use. */
struct kernel_names {
	struct names_bpf *bpf; /* owned; NULL until kernel_names_open() */
	bool is_refused;
};

/* Loads the program unless it is loaded. Returns false if the kernel refuses it. */
bool kernel_names_open(struct kernel_names *names);
void kernel_names_close(struct kernel_names *names);
/* A kernel_namer for symbols_ask_kernel(): `names` is a struct kernel_names, for which kernel_names_open() was true. */
int kernel_names_find(void *names, uint64_t address, struct kernel_name *ret);

/* Splits "function+0xoffset/0xsize [module]" in place. An address in hex has no name. For the unit tests. */
void kernel_names_split(char *text, struct kernel_name *ret);
