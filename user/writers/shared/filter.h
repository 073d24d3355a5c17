/* SPDX-License-Identifier: MIT */
/* The patterns of -I and -X. */
#pragma once

#include <regex.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/opt.h"
#include "base/vec.h"

/*
 * Returns true if one of the patterns matches the whole name. '*' at either end matches any text. '.' and '/' match
 * each other, so that a pattern selects the same stacks in every format.
 */
bool filter_match(const struct opt_strings *patterns, const char *name);

/* A list of patterns of either kind. The list must outlive it. */
struct filter {
	const struct opt_strings *patterns;
	struct vec(regex_t) compiled; /* empty for patterns with '*' */
};

/*
 * With `is_regex` the patterns are extended regular expressions, regex(7). Returns 0, or -EINVAL with one sentence in
 * `why`, or -ENOMEM; then there is nothing to release.
 */
int filter_init(struct filter *filter, const struct opt_strings *patterns, bool is_regex, struct buf *why);
void filter_release(struct filter *filter);
/* Returns true if one of the patterns matches the whole name. */
bool filter_has(const struct filter *filter, const char *name);
