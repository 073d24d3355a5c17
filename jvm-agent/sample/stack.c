/* SPDX-License-Identifier: MIT */
#include "sample/stack.h"

#include <string.h>

#include "sigsafe.h"

#define WORD sizeof(uintptr_t)

bool stack_copy(struct stack_copy *stack, uintptr_t sp, size_t bytes)
{
	stack->low = sp;
	stack->bytes = safe_copy(stack->data, sp, bytes);
	return stack->bytes;
}

bool stack_word(const struct stack_copy *stack, uintptr_t address, uintptr_t *ret_word)
{
	uintptr_t offset = address - stack->low;

	if (address < stack->low || offset > stack->bytes || stack->bytes - offset < WORD)
		return false;
	memcpy(ret_word, stack->data + offset, WORD);
	return true;
}
