/* SPDX-License-Identifier: MIT */
/* Lengths, kinds and targets of instructions, as assemblers and objdump have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hotspot/instruction.h"

struct row {
	const char *code; /* hexadecimal, with bytes of the next instruction */
	uint32_t bytes;
	enum instruction_kind kind;
	int64_t target;
};

static size_t from_hex(const char *hex, uint8_t *code)
{
	size_t bytes = 0;
	unsigned int byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		code[bytes++] = (uint8_t)byte;
	return bytes;
}

static void expect(const struct row *row, uint32_t (*read)(const uint8_t *, size_t, struct instruction *))
{
	struct instruction found;
	uint8_t code[32];
	size_t bytes = from_hex(row->code, code);

	if (read(code, bytes, &found) != row->bytes || found.kind != row->kind || found.target != row->target)
		fail_msg("%s: %u bytes, kind %d, target %ld", row->code, found.bytes, found.kind, (long)found.target);
	for (size_t less = 0; less < row->bytes; less++)
		assert_int_equal(read(code, less, &found), 0); /* not whole */
}

static void test_x86(void **state)
{
	static const struct row rows[] = {
		{"9090", 1, INSTRUCTION_OTHER, 0},
		{"554889e5", 1, INSTRUCTION_OTHER, 0}, /* push rbp */
		{"4889e590", 3, INSTRUCTION_OTHER, 0}, /* mov rbp, rsp */
		{"488b45f890", 4, INSTRUCTION_OTHER, 0}, /* mov rax, [rbp-8] */
		{"488b04250010000090", 8, INSTRUCTION_OTHER, 0}, /* mov rax, [0x1000] */
		{"488b050010000090", 7, INSTRUCTION_OTHER, 0}, /* mov rax, [rip+0x1000] */
		{"428b84880001000090", 8, INSTRUCTION_OTHER, 0}, /* mov eax, [rax+r9*4+0x100] */
		{"48b8112233445566778890", 10, INSTRUCTION_OTHER, 0}, /* mov rax, imm64 */
		{"b81122334490", 5, INSTRUCTION_OTHER, 0}, /* mov eax, imm32 */
		{"66b8112290", 4, INSTRUCTION_OTHER, 0}, /* mov ax, imm16 */
		{"f6400c0190", 4, INSTRUCTION_OTHER, 0}, /* test byte [rax+12], 1 */
		{"f7d890", 2, INSTRUCTION_OTHER, 0}, /* neg eax */
		{"f7c00001000090", 6, INSTRUCTION_OTHER, 0}, /* test eax, 0x100 */
		{"c7401001000000", 7, INSTRUCTION_OTHER, 0}, /* mov dword [rax+16], 1 */
		{"660f6f0590000000", 8, INSTRUCTION_OTHER, 0}, /* movdqa xmm0, [rip+0x90] */
		{"660f3a63c10d90", 6, INSTRUCTION_OTHER, 0}, /* pcmpestri xmm0, xmm1, 13 */
		{"660f38f6c390", 5, INSTRUCTION_OTHER, 0}, /* adcx eax, ebx */
		{"c5f87790", 3, INSTRUCTION_OTHER, 0}, /* vzeroupper */
		{"c5fd6f0690", 4, INSTRUCTION_OTHER, 0}, /* vmovdqa ymm0, [rsi] */
		{"c4e37d39c10190", 6, INSTRUCTION_OTHER, 0}, /* vextracti128 xmm1, ymm0, 1 */
		{"62f17c4828070f90", 6, INSTRUCTION_OTHER, 0}, /* vmovaps zmm0, [rdi] */
		{"62f37d483f06049090", 7, INSTRUCTION_OTHER, 0}, /* vpcmpub k0, zmm0, [rsi], 4 */
		{"f30fb8c890", 4, INSTRUCTION_OTHER, 0}, /* popcnt ecx, eax */
		{"0fc890", 2, INSTRUCTION_OTHER, 0}, /* bswap eax */
		{"f30f1efa90", 4, INSTRUCTION_OTHER, 0}, /* endbr64 */
		{"f0480fb11190", 5, INSTRUCTION_OTHER, 0}, /* lock cmpxchg [rcx], rdx */
		{"e80001000090", 5, INSTRUCTION_CALL, 0x105},
		{"41ffd290", 3, INSTRUCTION_CALL, 0}, /* call r10 */
		{"ff50089090", 3, INSTRUCTION_CALL, 0}, /* call [rax+8] */
		{"0f8400010000", 6, INSTRUCTION_BRANCH, 0x106},
		{"75fe", 2, INSTRUCTION_BRANCH, 0},
		{"e9fbffffff", 5, INSTRUCTION_JUMP, 0},
		{"eb10", 2, INSTRUCTION_JUMP, 0x12},
		{"c390", 1, INSTRUCTION_END, 0},
		{"c20800", 3, INSTRUCTION_END, 0},
		{"41ffe290", 3, INSTRUCTION_END, 0}, /* jmp r10 */
		{"0f0b90", 2, INSTRUCTION_END, 0}, /* ud2 */
		{"f490", 1, INSTRUCTION_END, 0},
		{"06", 0, INSTRUCTION_OTHER, 0}, /* none in 64-bit mode */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) - 1; i++)
		expect(&rows[i], instruction_x86);
	assert_int_equal(instruction_x86((const uint8_t *)"\x06\x90\x90", 3, &(struct instruction){0}), 0);
}

static void test_arm64(void **state)
{
	static const struct row rows[] = {
		{"1f2003d5", 4, INSTRUCTION_OTHER, 0}, /* nop */
		{"e00340b9", 4, INSTRUCTION_OTHER, 0}, /* ldr w0, [sp] */
		{"40000094", 4, INSTRUCTION_CALL, 0x100}, /* bl */
		{"00013fd6", 4, INSTRUCTION_CALL, 0}, /* blr x8 */
		{"ffffff17", 4, INSTRUCTION_JUMP, -4}, /* b */
		{"40000054", 4, INSTRUCTION_BRANCH, 8}, /* b.eq */
		{"e0ffffb4", 4, INSTRUCTION_BRANCH, -4}, /* cbz x0 */
		{"41000035", 4, INSTRUCTION_BRANCH, 8}, /* cbnz w1 */
		{"60000836", 4, INSTRUCTION_BRANCH, 12}, /* tbz w0, #1 */
		{"c0035fd6", 4, INSTRUCTION_END, 0}, /* ret */
		{"00011fd6", 4, INSTRUCTION_END, 0}, /* br x8 */
		{"000020d4", 4, INSTRUCTION_END, 0}, /* brk */
		{"00000000", 4, INSTRUCTION_END, 0}, /* udf */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect(&rows[i], instruction_arm64);
}

static void test_requests(void **state)
{
	static const uint8_t trap[] = {0xbe, 0xc6, 0xff, 0xff, 0xff}, count[] = {0xbe, 0x10, 0, 0, 0};
	static const uint8_t trap_arm64[] = {0x21, 0x07, 0x80, 0x12}; /* mov w1, #-58 */
	struct instruction found;

	assert_true(instruction_x86(trap, sizeof(trap), &found) && found.is_request);
	assert_true(instruction_x86(count, sizeof(count), &found) && !found.is_request);
	assert_true(instruction_arm64(trap_arm64, sizeof(trap_arm64), &found) && found.is_request);
}

/* Any bytes: no more are read than there are. */
static void test_any_bytes(void **state)
{
	uint8_t code[16];
	struct instruction found;
	uint32_t seed = 1;

	for (int i = 0; i < 200000; i++) {
		for (size_t k = 0; k < sizeof(code); k++)
			code[k] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
		for (size_t bytes = 0; bytes <= sizeof(code); bytes++)
			assert_true(instruction_x86(code, bytes, &found) <= bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
