/* SPDX-License-Identifier: MIT */
/* A set of names. Begins as {0}. */
#ifndef METHOD_NAMES_H
#define METHOD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMES_MAX 1048576

struct class_names {
	char **slots; /* owned, like the names in it; NULL is empty */
	uint32_t size; /* a power of 2, or 0 */
	uint32_t count;
};

/* Adds a copy of the name if it is new. Returns 0, -ENOMEM, or -ENOSPC when there are NAMES_MAX. */
int names_add(struct class_names *names, const char *name, size_t len);
bool names_has(const struct class_names *names, const char *name, size_t len);
void names_free(struct class_names *names); /* empties it */

#endif
