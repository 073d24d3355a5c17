/* SPDX-License-Identifier: MIT */
/* Reading the interrupted thread's native stack, inside the signal handler. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "safe_copy.h"
#include "sample/regs.h"

/* A copy of the stack from sp upwards. It normally takes one system call, and reading the copy cannot fault. */
struct stack_copy {
	uintptr_t low;
	size_t bytes;
	unsigned char data[SAFE_COPY_MAX];
};

/* Copies at most `bytes`. Returns false when nothing can be copied. */
static inline bool stack_copy(struct stack_copy *stack, uintptr_t sp, size_t bytes)
{
	stack->low = sp;
	stack->bytes = safe_copy(stack->data, sp, bytes);
	return stack->bytes;
}

/* Copies `bytes` at `address` from the copy. Returns false when they are not all in it. */
static inline bool stack_read(const struct stack_copy *stack, void *to, size_t bytes, uintptr_t address)
{
	uintptr_t offset = address - stack->low;

	if (address < stack->low || offset > stack->bytes || stack->bytes - offset < bytes)
		return false;
	memcpy(to, stack->data + offset, bytes);
	return true;
}

static inline bool stack_word(const struct stack_copy *stack, uintptr_t address, uintptr_t *ret_word)
{
	return stack_read(stack, ret_word, sizeof(*ret_word), address);
}
