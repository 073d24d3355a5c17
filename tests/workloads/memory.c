/* SPDX-License-Identifier: MIT */
/*
 * The native half of NativeMemory.java: known numbers of calls of each function that takes memory. Built twice, with
 * names of another class, as a library that is loaded late.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <jni.h>

#include "extra.h"

#ifndef TAKER
#define TAKER First
#endif
#define NATIVE_3(taker, name) Java_workload_NativeMemory_00024##taker##_##name
#define NATIVE_2(taker, name) NATIVE_3(taker, name)
#define NATIVE(name) NATIVE_2(TAKER, name)

#define WAY __attribute__((noinline)) static uint64_t

static void *volatile seen; /* so that no call is optimized away */

static void use(void *memory)
{
	seen = memory;
}

WAY take_malloc(jint count, jint bytes)
{
	for (jint i = 0; i < count; i++) {
		void *memory = malloc((size_t)bytes);

		use(memory);
		free(memory);
	}
	return (uint64_t)count * (uint64_t)bytes;
}

WAY take_calloc(jint count, jint bytes)
{
	for (jint i = 0; i < count; i++) {
		void *memory = calloc(2, (size_t)bytes);

		use(memory);
		free(memory);
	}
	return (uint64_t)count * (uint64_t)bytes * 2;
}

WAY take_realloc(jint count, jint bytes)
{
	for (jint i = 0; i < count; i++) {
		void *memory = realloc(NULL, (size_t)bytes);

		use(memory);
		memory = realloc(memory, 3 * (size_t)bytes);
		use(memory);
		free(memory);
	}
	return (uint64_t)count * (uint64_t)bytes * 4;
}

WAY take_posix_memalign(jint count, jint bytes)
{
	for (jint i = 0; i < count; i++) {
		void *memory = NULL;

		if (posix_memalign(&memory, 64, (size_t)bytes))
			return 0;
		use(memory);
		free(memory);
	}
	return (uint64_t)count * (uint64_t)bytes;
}

WAY take_aligned_alloc(jint count, jint bytes)
{
	for (jint i = 0; i < count; i++) {
		void *memory = aligned_alloc(64, (size_t)bytes);

		use(memory);
		free(memory);
	}
	return (uint64_t)count * (uint64_t)bytes;
}

WAY take_memalign(jint count, jint bytes)
{
	for (jint i = 0; i < count; i++) {
		void *memory = memalign(64, (size_t)bytes);

		use(memory);
		free(memory);
	}
	return (uint64_t)count * (uint64_t)bytes;
}

WAY take_valloc(jint count, jint bytes)
{
	for (jint i = 0; i < count; i++) {
		void *memory = valloc((size_t)bytes);

		use(memory);
		free(memory);
	}
	return (uint64_t)count * (uint64_t)bytes;
}

static void *(*volatile pointed)(size_t) = malloc;

WAY take_by_pointer(jint count, jint bytes)
{
	for (jint i = 0; i < count; i++) {
		void *memory = pointed((size_t)bytes);

		use(memory);
		free(memory);
	}
	return (uint64_t)count * (uint64_t)bytes;
}

/* Only what may be used counts, not what is reserved before. */
WAY take_mmap(jint count, jint bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;

	for (jint i = 0; i < count; i++) {
		void *memory = mmap(NULL, (size_t)bytes, PROT_NONE, flags, -1, 0);

		memory = mmap(memory, (size_t)bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
		if (memory == MAP_FAILED)
			return 0;
		use(memory);
		munmap(memory, (size_t)bytes);
	}
	return (uint64_t)count * (uint64_t)bytes;
}

/* Each mapping is moved to where another one was reserved, and is freed there. */
WAY take_moved(jint count, jint bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS, how = MREMAP_MAYMOVE | MREMAP_FIXED;

	for (jint i = 0; i < count; i++) {
		void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
		void *place = mmap(NULL, (size_t)bytes, PROT_NONE, flags, -1, 0);

		memory = mremap(memory, (size_t)bytes, (size_t)bytes, how, place);
		if (memory != place)
			return 0;
		use(memory);
		munmap(memory, (size_t)bytes);
	}
	return (uint64_t)count * (uint64_t)bytes;
}

/* One piece in a thousand stays. Returns the bytes of these. */
WAY leak_one_in_thousand(jint count, jint bytes)
{
	uint64_t left = 0;

	for (jint i = 0; i < count; i++) {
		void *memory = malloc((size_t)bytes);

		use(memory);
		if (i % 1000)
			free(memory);
		else
			left += (uint64_t)bytes;
	}
	return left;
}

/* All pieces stay, in a list. */
WAY leak_all(jint count, jint bytes)
{
	static void **list;

	for (jint i = 0; i < count; i++) {
		void **memory = malloc((size_t)bytes);

		if (!memory)
			return 0;
		*memory = list;
		list = memory;
	}
	return (uint64_t)count * (uint64_t)bytes;
}

JNIEXPORT jlong JNICALL NATIVE(take)(JNIEnv *env, jclass class, jint way, jint count, jint bytes);
JNIEXPORT jlong JNICALL NATIVE(take)(JNIEnv *env, jclass class, jint way, jint count, jint bytes)
{
	static uint64_t (*const ways[])(jint, jint) = {
		take_malloc, take_calloc, take_realloc, take_posix_memalign, take_aligned_alloc, take_memalign,
		take_valloc, take_by_pointer, take_mmap, take_moved, leak_one_in_thousand, leak_all,
	};

	(void)env, (void)class;
	return (jlong)ways[way](count, bytes);
}

/* Opens a library by its path and closes it again, as another library of native code does. */
JNIEXPORT jboolean JNICALL NATIVE(visit)(JNIEnv *env, jclass class, jstring path);
JNIEXPORT jboolean JNICALL NATIVE(visit)(JNIEnv *env, jclass class, jstring path)
{
	const char *text = (*env)->GetStringUTFChars(env, path, NULL);
	void *handle = text ? dlopen(text, RTLD_NOW | RTLD_LOCAL) : NULL;

	if (text)
		(*env)->ReleaseStringUTFChars(env, path, text);
	return handle && !dlclose(handle);
}

/*
 * Returns how many of the two addresses, of the function as this library calls it and as it stands in its data, are not
 * those that the dynamic linker finds.
 */
JNIEXPORT jint JNICALL NATIVE(hooked)(JNIEnv *env, jclass class);
JNIEXPORT jint JNICALL NATIVE(hooked)(JNIEnv *env, jclass class)
{
	void *found = dlsym(RTLD_DEFAULT, "malloc");
	void *volatile called = (void *)(uintptr_t)malloc;

	(void)env, (void)class;
	return (called != found) + ((void *)(uintptr_t)pointed != found);
}

struct allocator {
	void *(*take)(size_t bytes);
	void (*give)(void *memory);
};

static void take_and_give(void *from, int calls)
{
	const struct allocator allocator = *(const struct allocator *)from;

	for (int i = 0; i < calls; i++) {
		void *memory = allocator.take(64);

		use(memory);
		allocator.give(memory);
	}
}

/* Returns by how much malloc(), or free(), costs more while it is hooked, in ps. */
JNIEXPORT jlong JNICALL NATIVE(extra)(JNIEnv *env, jclass class, jboolean frees);
JNIEXPORT jlong JNICALL NATIVE(extra)(JNIEnv *env, jclass class, jboolean frees)
{
	struct allocator direct = {
		(void *(*)(size_t))(uintptr_t)dlsym(RTLD_DEFAULT, "malloc"),
		(void (*)(void *))(uintptr_t)dlsym(RTLD_DEFAULT, "free"),
	};
	struct allocator called = direct;

	(void)env, (void)class;
	if (frees)
		called.give = free;
	else
		called.take = malloc;
	return extra_ps(take_and_give, &called, &direct);
}
