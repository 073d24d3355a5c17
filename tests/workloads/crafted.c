/* SPDX-License-Identifier: MIT */
/*
 * A native method that keeps its frame pointer on words shaped like frames of the interpreter, whose "methods" are
 * memory that leads to itself wherever it is followed: an invented jmethodID, and an invented Method. Built without
 * unwind tables, so that a walk has only the frame pointer to go by. x86-64.
 */
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define REGION_BYTES (2u << 20)
#define REGION_LOW_BITS 0x4000 /* of its address: as a method's number and size, they are in range */
#define FRAME_WORDS 16
#define ROUNDS 20000000ull

JNIEXPORT void JNICALL Java_workload_Crafted_spin(JNIEnv *env, jclass klass, jlong times);

static uint64_t *make_region(void)
{
	unsigned char *room = mmap(NULL, REGION_BYTES + (1 << 16), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *region;

	if (room == MAP_FAILED)
		return NULL;
	region = (uint64_t *)((((uintptr_t)room + 0xffff) & ~(uintptr_t)0xffff) | REGION_LOW_BITS);
	for (size_t i = 0; i < (REGION_BYTES - REGION_LOW_BITS) / sizeof(*region); i++)
		region[i] = (uintptr_t)region;
	return region;
}

/* See java_step_framed(): return address and caller's fp, below them the caller's sp, the method and its byte code. */
static void make_frame(uint64_t *fp, uint64_t *caller, uintptr_t interpreter, uint64_t *method)
{
	for (int i = 1; i < FRAME_WORDS / 2; i++)
		fp[-i] = (uintptr_t)method + 64;
	fp[0] = (uintptr_t)caller;
	fp[1] = interpreter;
	fp[-1] = (uintptr_t)(fp + 2);
	fp[-3] = (uintptr_t)method;
}

void JNICALL Java_workload_Crafted_spin(JNIEnv *env, jclass klass, jlong times)
{
	/* Called by the interpreter: the address lies in its code. */
	uintptr_t interpreter = (uintptr_t)__builtin_return_address(0);
	uint64_t frames[4 * FRAME_WORDS] = {0};
	uint64_t *region = make_region();

	(void)env, (void)klass;
	if (!region)
		return;
	make_frame(frames + FRAME_WORDS / 2, frames + 2 * FRAME_WORDS, interpreter, region);
	make_frame(frames + 2 * FRAME_WORDS, frames + 3 * FRAME_WORDS, interpreter, region);
	make_frame(frames + 3 * FRAME_WORDS, NULL, 0, region); /* where it ends: the thread's entry */
	while (times--) {
		uint64_t rounds = ROUNDS;

		__asm__ volatile("push %%rbp\n\tmov %1, %%rbp\n1:\tdec %0\n\tjnz 1b\n\tpop %%rbp"
				 : "+r"(rounds)
				 : "r"(frames + FRAME_WORDS / 2)
				 : "memory", "cc");
	}
}
