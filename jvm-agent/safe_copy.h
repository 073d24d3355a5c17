/* SPDX-License-Identifier: MIT */
#ifndef SAFE_COPY_H
#define SAFE_COPY_H

#include <stddef.h>
#include <stdint.h>

#define SAFE_COPY_MAX (64u << 10)

/*
 * Copies from our own memory where it may not be mapped: the bytes copied, up to the first unmapped page. At most
 * SAFE_COPY_MAX. Async-signal-safe.
 */
size_t safe_copy(void *to, uintptr_t from, size_t bytes);

#endif
