/* SPDX-License-Identifier: MIT */
/* Whole numbers with a unit, as async-profiler's arguments have them. */
#ifndef RECORDER_UNITS_H
#define RECORDER_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Times in ns, sizes in bytes; m is a millisecond. Returns false if the text is no such number; *ret is set then, too,
 * if the number is too large.
 */
bool units_parse(const char *text, uint64_t *ret);
/* The same for long times: s m h d; a number without a unit is in seconds. */
bool units_parse_long(const char *text, uint64_t *ret_ns);

#endif
