/* SPDX-License-Identifier: MIT */
/* Where a thread of HotSpot's compilers says which method it compiles; headers/walk/compiling.h reads it there. */
#include <string.h>

#include "hotspot/jvmstructs.h"
#include "hotspot/vmstructs.h"
#include "memory.h"

#define BLOCK_BYTES 2048 /* glibc's struct pthread has 2304 on both architectures */

static struct {
	uintptr_t list_address, first_address; /* ThreadsList *; JavaThread * */
	struct offset threads, osthread, osthread_id, pthread, env, env_task, task_method;
} places;

static const struct vmstructs_row place_rows[] = {
	{"Threads", "_thread_list", NULL, &places.first_address}, /* JDK 8-11 */
	{"ThreadsSMRSupport", "_java_thread_list", NULL, &places.list_address}, /* JDK 12+ */
	{"ThreadsList", "_threads", &places.threads, NULL},
	{"JavaThread", "_osthread", &places.osthread, NULL},
	{"Thread", "_osthread", &places.osthread, NULL},
	{"OSThread", "_thread_id", &places.osthread_id, NULL},
	{"OSThread", "_pthread_id", &places.pthread, NULL},
	{"CompilerThread", "_env", &places.env, NULL},
	{"ciEnv", "_task", &places.env_task, NULL},
	{"CompileTask", "_method", &places.task_method, NULL},
};

void compiling_open(void)
{
	memset(&places, 0, sizeof(places));
	(void)vmstructs_read(place_rows, sizeof(place_rows) / sizeof(place_rows[0]));
}

/* Threads end while they are read: nothing here is read without a check. */
static uintptr_t word_at(uintptr_t address)
{
	uintptr_t word = 0;

	return address && memory_copy(&word, address, sizeof(word)) == sizeof(word) ? word : 0;
}

/* Returns the distance of the word `wanted`, of 4 or 8 bytes, from the beginning of the block, or -1. */
static int find_in(const unsigned char *block, size_t bytes, const void *wanted, size_t width)
{
	for (size_t at = 0; at + width <= bytes; at += width)
		if (!memcmp(block + at, wanted, width))
			return (int)at;
	return -1;
}

/*
 * Returns where the C library keeps a thread's JavaThread, see struct duet_jvm_compiling; 0: it is not found. HotSpot
 * makes it the value of a key in each thread, and the argument of the first function of those that it starts.
 */
static int16_t find_word(uintptr_t java_thread)
{
	uintptr_t osthread = java_thread ? word_at(java_thread + places.osthread.value) : 0;
	uintptr_t pthread = osthread ? word_at(osthread + places.pthread.value) : 0;
	unsigned char block[BLOCK_BYTES];
	size_t bytes = pthread ? memory_copy(block, pthread, sizeof(block)) : 0;
	int at = find_in(block, bytes, &java_thread, sizeof(java_thread)), from = 0;

#ifndef __x86_64__
	uint32_t tid = (uint32_t)jvmstructs_thread_id(java_thread);

	from = find_in(block, bytes, &tid, sizeof(tid)); /* on x86-64, the thread pointer is that of the block */
#endif
	return at < 0 || from < 0 ? 0 : (int16_t)(at - from);
}

void compiling_publish(struct duet_jvm_compiling *ret)
{
	uintptr_t list = word_at(places.list_address), first = word_at(places.first_address);

	if (!places.env.known || !places.env_task.known || !places.task_method.known || !places.pthread.known)
		return;
	*ret = (struct duet_jvm_compiling){
		.thread = find_word(list ? word_at(word_at(list + places.threads.value)) : first),
		.osthread = (uint16_t)places.osthread.value,
		.osthread_id = (uint16_t)places.osthread_id.value,
		.env = (uint16_t)places.env.value,
		.env_task = (uint16_t)places.env_task.value,
		.task_method = (uint16_t)places.task_method.value,
	};
}
