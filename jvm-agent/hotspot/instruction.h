/* SPDX-License-Identifier: MIT */
/* Lengths and targets of machine instructions, as needed to follow the ways through compiled code. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum instruction_kind {
	INSTRUCTION_OTHER, /* the next one follows */
	INSTRUCTION_CALL, /* of `target`; 0: not known */
	INSTRUCTION_BRANCH, /* goes to `target`, or on */
	INSTRUCTION_JUMP, /* goes to `target` */
	INSTRUCTION_END, /* does not go on: a return, a jump to a computed address, a trap */
};

struct instruction {
	uint32_t bytes;
	enum instruction_kind kind;
	int64_t target; /* from the beginning of this instruction */
	bool is_request; /* the first argument becomes a negative constant: a call of C2's uncommon trap follows */
};

/* Reads the instruction at `code`. Returns its bytes; 0: not known or not whole. Intel SDM 2, A; Arm ARM C4.1. */
uint32_t instruction_x86(const uint8_t *code, size_t bytes, struct instruction *ret);
uint32_t instruction_arm64(const uint8_t *code, size_t bytes, struct instruction *ret);

#ifdef __aarch64__
#define instruction_read instruction_arm64
#else
#define instruction_read instruction_x86
#endif
