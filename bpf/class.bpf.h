/* SPDX-License-Identifier: GPL-2.0-only */
/* The name of a class of the JVM, as an attribute of a sample. */
#pragma once

#include "sample.bpf.h"

static __always_inline u64 class_word(u64 object, u16 offset)
{
	u64 word = 0;

	if (offset < DUET_MAX_OFFSET)
		bpf_probe_read_user(&word, sizeof(word), (const void *)(object + offset));
	return word;
}

/*
 * Writes the class's name as a signature, L and ; around that of a class that is no array. `to` has
 * DUET_MAX_CLASS_BYTES. Returns the bytes, or 0. A long name is cut.
 */
static __noinline u32 class_name(u8 *to, u64 klass, const struct duet_jvm_allocation *at)
{
	u64 symbol = class_word(klass, at->klass_name);
	u16 length = 0;
	u8 first = 0;
	u32 bytes;

	if (!to || !symbol || at->symbol_length >= DUET_MAX_OFFSET || at->symbol_body >= DUET_MAX_OFFSET ||
	    bpf_probe_read_user(&length, sizeof(length), (const void *)(symbol + at->symbol_length)) || !length)
		return 0;
	symbol += at->symbol_body;
	bytes = length <= DUET_MAX_CLASS_BYTES - 2 ? length : DUET_MAX_CLASS_BYTES - 2;
	if (bpf_probe_read_user(&first, 1, (const void *)symbol))
		return 0;
	if (first == '[')
		return bpf_probe_read_user(to, bytes, (const void *)symbol) ? 0 : bytes;
	to[0] = 'L';
	if (bpf_probe_read_user(to + 1, bytes, (const void *)symbol))
		return 0;
	to[1 + bytes] = ';';
	return bytes + 2;
}
