/* SPDX-License-Identifier: MIT */
#include "base/vec.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int vec_grow(void **items, size_t *size, size_t want, size_t item_bytes)
{
	size_t new_size = *size ? *size : 8;
	size_t bytes;
	void *grown;

	if (want <= *size)
		return 0;
	while (new_size < want && new_size <= SIZE_MAX / 2)
		new_size *= 2;
	if (new_size < want || __builtin_mul_overflow(new_size, item_bytes, &bytes))
		return -ENOMEM;
	grown = realloc(*items, bytes);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*size = new_size;
	return 0;
}

void vec_fit(void **items, size_t *size, size_t len, size_t item_bytes)
{
	void *fitted = len && len < *size ? realloc(*items, len * item_bytes) : NULL;

	if (!fitted)
		return;
	*items = fitted;
	*size = len;
}
