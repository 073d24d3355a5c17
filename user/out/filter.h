/* SPDX-License-Identifier: MIT */
/* The patterns of -I and -X. */
#ifndef OUT_FILTER_H
#define OUT_FILTER_H

#include <stdbool.h>

#include "base/opt.h"

/*
 * Returns true if one of the patterns matches the whole name. '*' at either end matches any text. '.' and '/' match
 * each other, so that a pattern selects the same stacks in every format.
 */
bool filter_match(const struct opt_strings *patterns, const char *name);

#endif
