/* SPDX-License-Identifier: MIT */
/* The patterns of -I and -X. */
#ifndef OUT_FILTER_H
#define OUT_FILTER_H

#include <stdbool.h>

#include "base/opt.h"

/*
 * True when one of the patterns matches the whole name. '*' at either end stands
 * for any text; '.' and '/' match each other, so that a pattern selects the same
 * stacks in every format.
 */
bool filter_match(const struct opt_strings *patterns, const char *name);

#endif
