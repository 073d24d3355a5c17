/* SPDX-License-Identifier: MIT */
/* The table of the report with what the machine's processes have used. */
#ifndef WRITERS_TEXT_USAGE_TABLE_H
#define WRITERS_TEXT_USAGE_TABLE_H

#include <stdio.h>

#include "profile/profile.h"

/*
 * Prints one row for each process of profile.usages, at most `count`, the busiest first: its mean and its largest load
 * (of one CPU), its threads, its most memory, and what it read and wrote between its first row and its last. Prints
 * nothing without usages. Returns 0 or -ENOMEM.
 */
int usage_table_print(const struct profile *profile, size_t count, FILE *out);

#endif
