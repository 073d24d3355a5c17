/* SPDX-License-Identifier: MIT */
/*
 * A part of hostile_agent.c, which includes it after put(): code and a stack that make walks take long. Each time
 * around, the walk searches 96 words of the stack for a return address. Each of them looks like one until the longest
 * path through the segment map shows that it is not. Then a signal handler's frame leads back to where the walk began.
 */
#pragma once

#ifdef __x86_64__

#define HEAP_BYTES (1 << 20)
#define BLOCK_BYTES 256 /* 16 segments: as many steps back as the walk makes */
#define PLACE 240 /* offset in the last segment of a block: of a return address, and of the code that runs */
#define SEARCHED_WORDS 100 /* and a few more */
#define FRAME_WORDS 200
#define STACK_WORDS 1024
#define STACK_TOP 512 /* where the thread's sp is: signal handlers have the room below */

/* Like the loader's own stub of the C library: a signal handler's frame above sp gives its caller. */
__asm__(".text\n"
	".globl forged_handler\n"
	"forged_handler:\n"
	"	.cfi_startproc\n"
	"	.cfi_signal_frame\n"
	"	.cfi_escape 0x0f, 0x03, 0x77, 0x00, 0x06\n" /* def_cfa_expression: *sp */
	"	call forged_handler\n"
	".globl forged_return\n"
	"forged_return:\n"
	"	nop\n"
	"	.cfi_endproc\n");
extern char forged_return[];

static struct {
	unsigned char *heap;
	unsigned char *segments;
	uint64_t *stack;
} forged;

/* The stub of the first block runs; the other blocks hold what its callers would be. */
static void forge_blocks(uint32_t compiled_name)
{
	for (uint32_t at = 0; at < HEAP_BYTES; at += BLOCK_BYTES) {
		unsigned char *block = forged.heap + at;
		int32_t back = 4 - (int32_t)at; /* a call of code in the stub, before its pc */

		block[0] = 1;
		memcpy(block + 16, &(uint64_t){at ? compiled_name : 1}, 8);
		memcpy(block + 24, &(uint32_t){BLOCK_BYTES - 16}, 4);
		memcpy(block + 28, &(uint32_t){at ? FRAME_WORDS : 0}, 4);
		block[PLACE - 5] = 0xe8;
		memcpy(block + PLACE - 4, &back, 4);
	}
	for (uint32_t i = 0; i < HEAP_BYTES / 16; i++)
		forged.segments[i] = i % 16 != 0;
	memcpy(forged.heap + PLACE, "\xeb\xfe", 2); /* jmp . */
}

static void forge_stack(void)
{
	uint64_t *sp = forged.stack + STACK_TOP, *frame = sp + 3;

	/* Return addresses; after the frame of each, an address that is not one. */
	for (uint64_t i = STACK_TOP; i < STACK_WORDS; i++)
		forged.stack[i] = (uintptr_t)forged.heap + BLOCK_BYTES * i + PLACE +
				  (i < STACK_TOP + SEARCHED_WORDS ? 0 : 8);
	sp[2] = (uintptr_t)forged_return;
	frame[120 / 8] = (uintptr_t)(sp + 1); /* fp, sp and pc: struct sigcontext in rt_sigframe */
	frame[160 / 8] = (uintptr_t)sp;
	frame[168 / 8] = (uintptr_t)forged.heap + PLACE;
}

static struct duet_jvm_layout forged_layout(uint64_t compiled_name)
{
	uint64_t heap = (uintptr_t)forged.heap;

	return (struct duet_jvm_layout){
		.heaps = {{heap, heap + HEAP_BYTES, (uintptr_t)forged.segments, .segment_shift = 4}},
		.interpreter_low = 1, .interpreter_high = 2, .entries_low = 1, .entries_high = 2,
		.call_stub_return = 1, .compiled_name = compiled_name,
		.block_header_bytes = 16, .block_used = 0, .blob_name = 16, .blob_bytes = 24, .blob_frame_words = 28,
		.blob_frame_complete = 32, .blob_frame_complete_width = 4, .blob_code_begin = DUET_JVM_NO_FIELD,
		.blob_code_offset = 36, .nmethod_entry = DUET_JVM_NO_FIELD, .nmethod_entry_offset = 40,
		.nmethod_stubs = 44, .nmethod_id = 48, .nmethod_original_pc = 52,
		.const_bytes = 64, .frame_bcp = -7,
	};
}

static void *run_forged(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	__asm__ volatile("mov %0, %%rsp\n\tmov %1, %%rbp\n\tjmp *%2"
			 :
			 : "a"(forged.stack + STACK_TOP), "c"(forged.stack + STACK_TOP + 1), "d"(forged.heap + PLACE)
			 : "memory");
	return NULL;
}

static void *forge_memory(size_t bytes, int access)
{
	return mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void walk_long(int peer)
{
	struct duet_jvm_layout layout;
	pthread_t thread;

	usleep(10000);
	if (forged.heap)
		return;
	forged.heap = forge_memory(HEAP_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
	forged.segments = forge_memory(HEAP_BYTES / 16, PROT_READ | PROT_WRITE);
	forged.stack = forge_memory(STACK_WORDS * sizeof(*forged.stack), PROT_READ | PROT_WRITE);
	forge_blocks(2);
	forge_stack();
	layout = forged_layout(2);
	put(DUET_LANE_METADATA, DUET_AGENT_LAYOUT, &layout, sizeof(layout));
	pthread_create(&thread, NULL, run_forged, NULL);
}

#else

static void walk_long(int peer)
{
	usleep(10000);
}

#endif
