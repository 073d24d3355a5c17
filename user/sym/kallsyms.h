/* SPDX-License-Identifier: MIT */
/* The kernel's own functions, its modules' and BPF programs', from /proc/kallsyms. */
#ifndef SYM_KALLSYMS_H
#define SYM_KALLSYMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "sym/symbol_table.h"

#define KALLSYMS_MIN_AGE_NS (10 * NS_PER_SEC)

struct kallsyms {
	struct symbol_table table; /* text: name, NUL, module */
	uint64_t read_ns;	   /* CLOCK_MONOTONIC, 0 = never */
};

void kallsyms_init(struct kallsyms *kallsyms);
void kallsyms_release(struct kallsyms *kallsyms);
/*
 * Reads `path`, /proc/kallsyms, anew: for modules and BPF programs that were loaded
 * since. 1; 0 when it is too early for that; or -errno and the old table stays, -EPERM
 * when the kernel hides its addresses (kptr_restrict).
 */
int kallsyms_refresh(struct kallsyms *kallsyms, const char *path, uint64_t now_ns);
/* The name and its module ("kernel" when in none), or NULL. Valid until the next refresh. */
const char *kallsyms_find(const struct kallsyms *kallsyms, uint64_t address, const char **ret_module);

/* Does the kernel hide the addresses in `path`, /proc/kallsyms, from us? Then appends why, and the way out. */
bool kallsyms_hidden(const char *path, struct buf *why);

#endif
