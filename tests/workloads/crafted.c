/* SPDX-License-Identifier: MIT */
/*
 * A native method that keeps its frame pointer on words shaped like frames of the interpreter, whose "methods" are
 * memory that leads to itself wherever it is followed: an invented jmethodID, and an invented Method. Built without
 * unwind tables, so that a walk has only the frame pointer to go by. shuffle() does so with words of all kinds. x86-64.
 */
#include <jni.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define REGION_BYTES (2u << 20)
#define REGION_LOW_BITS 0x4000 /* of its address: as a method's number and size, they are in range */
#define FRAME_WORDS 16
#define ROUNDS 20000000ull

#define SHORT_ROUNDS 400000ull
#define FAKE_WORDS 512
#define TRUE_WORDS 4096 /* words of the thread's stack above us */

JNIEXPORT void JNICALL Java_workload_Crafted_spin(JNIEnv *env, jclass klass, jlong times);
JNIEXPORT void JNICALL Java_workload_Crafted_shuffle(JNIEnv *env, jclass klass, jlong times, jlong seed);

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

/* Runs for a moment with the frame pointer at fp. */
static void spin_on(uint64_t *fp, uint64_t rounds)
{
	__asm__ volatile("push %%rbp\n\tmov %1, %%rbp\n1:\tdec %0\n\tjnz 1b\n\tpop %%rbp"
			 : "+r"(rounds)
			 : "r"(fp)
			 : "memory", "cc");
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
	make_frame(frames + 3 * FRAME_WORDS, NULL, 0, region); /* the end: the thread's entry */
	while (times--)
		spin_on(frames + FRAME_WORDS / 2, ROUNDS);
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* Up to the end of the thread's stack, TRUE_WORDS at most. */
static size_t count_true_words(const uint64_t *from)
{
	pthread_attr_t attributes;
	size_t count = 0, bytes;
	void *low;

	if (pthread_getattr_np(pthread_self(), &attributes))
		return 0;
	if (!pthread_attr_getstack(&attributes, &low, &bytes))
		count = (size_t)((const uint64_t *)((uintptr_t)low + bytes) - from);
	pthread_attr_destroy(&attributes);
	return count < TRUE_WORDS ? count : TRUE_WORDS;
}

/*
 * Words of a stack that is not there: those of the true one, which has return addresses of the interpreter, compiled
 * code and the entry from C, methods, byte codes, constant pools, a thread and a continuation; the same moved a little;
 * addresses of themselves; and of a region that leads to itself.
 */
static uint64_t draw_word(uint64_t *state, const uint64_t *truth, size_t count, uint64_t *fake, uint64_t *region)
{
	uint64_t kind = draw(state) % 16, word = truth[draw(state) % count];

	if (kind < 8)
		return word;
	if (kind < 10)
		return word + draw(state) % 64 - 32;
	if (kind < 14)
		return (uintptr_t)(fake + draw(state) % FAKE_WORDS);
	return kind == 14 ? (uintptr_t)region : draw(state) % 4096;
}

/* Like spin(), but with other words each time. */
void JNICALL Java_workload_Crafted_shuffle(JNIEnv *env, jclass klass, jlong times, jlong seed)
{
	const uint64_t *truth = __builtin_frame_address(0);
	uint64_t state = (uint64_t)seed * 2654435761u + 1;
	size_t count = count_true_words(truth);
	uint64_t fake[FAKE_WORDS];
	static uint64_t *region;

	(void)env, (void)klass;
	if (!region)
		region = make_region();
	while (region && count && times--) {
		for (size_t i = 0; i < FAKE_WORDS; i++)
			fake[i] = draw_word(&state, truth, count, fake, region);
		/* Also pieces of the true stack, whose frames lead to one another. */
		for (size_t i = 0; i + 64 < FAKE_WORDS; i += 64 + draw(&state) % 64)
			for (size_t j = 0, from = draw(&state) % (count - 48); j < 48; j++)
				fake[i + j] = truth[from + j];
		for (size_t i = 0; i < 24; i++) /* fp, then a return address */
			fake[draw(&state) % (FAKE_WORDS - 1)] = (uintptr_t)(fake + draw(&state) % (FAKE_WORDS - 16));
		spin_on(fake + draw(&state) % (FAKE_WORDS / 2), SHORT_ROUNDS);
	}
}
