/* SPDX-License-Identifier: MIT */
/*
 * A typed growing array:
 *
 *	struct vec(int) numbers = {0};
 *	if (vec_push(&numbers, 7) < 0) ...
 *	for (size_t i = 0; i < numbers.len; i++) numbers.items[i] ...
 *	vec_release(&numbers);
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define vec(type)          \
	{                  \
		type *items; \
		size_t len;  \
		size_t size; \
	}

/* Returns 0, or -ENOMEM with the array unchanged. */
int vec_grow(void **items, size_t *size, size_t want, size_t item_bytes);

#define vec_reserve(v, n) vec_grow((void **)&(v)->items, &(v)->size, (n), sizeof(*(v)->items))
#define vec_push(v, ...) \
	(vec_reserve(v, (v)->len + 1) < 0 ? -ENOMEM : ((v)->items[(v)->len++] = (__VA_ARGS__), 0))
/* Frees unused capacity; call when the array is complete. */
void vec_fit(void **items, size_t *size, size_t len, size_t item_bytes);
#define vec_shrink(v) vec_fit((void **)&(v)->items, &(v)->size, (v)->len, sizeof(*(v)->items))
/* For comparators: -1, 0 or 1; turned round, the greatest comes first. */
#define vec_order(a, b) (((a) > (b)) - ((a) < (b)))
/* For qsort() and bsearch(): compares two items by the uint64_t with which they begin. */
int vec_by_u64(const void *a, const void *b);
/* Returns how many items, which ascend by the uint64_t with which they begin, have at most `value` there. */
size_t vec_count_to(const void *items, size_t count, size_t item_bytes, uint64_t value);
/* The same for items that ascend by `compare`, which gets an item and the key. */
size_t vec_count_by(const void *items, size_t count, size_t item_bytes, const void *key,
		    int (*compare)(const void *item, const void *key));
#define vec_up_to(v, value) vec_count_to((v)->items, (v)->len, sizeof(*(v)->items), (value))
#define vec_clear(v) ((v)->len = 0)
#define vec_release(v) (free((v)->items), (v)->items = 0, (v)->len = (v)->size = 0)
