/* SPDX-License-Identifier: MIT */
/*
 * The structures that a process claims to be its HotSpot's, read from outside: the offsets in its tables, and the
 * memory that they lead to, which changes between two reads. Here the process is this one.
 */
#include "base/clock.h"
#include "fixtures/outside_tables.h"
#include "fuzz.h"
#include "hotspot/jvmstructs.h"
#include "hotspot/metadata.h"
#include "hotspot/nmethods.h"
#include "reader/java_threads.h"
#include "reader/memory.h"
#include "reader/objects.h"

#define HEAP_BYTES 4096u
#define MOST_BYTES 65536u /* of a record */
#define POINTER 'P' /* the highest byte of a word that leads into the heap */

static _Alignas(4096) unsigned char heap[HEAP_BYTES];

static void make_tables(struct input *input)
{
	for (size_t i = 0; i < WANTED; i++) {
		uint64_t number = input_number(input, 1);

		tables.structs[i] = (struct row){wanted[i].type, wanted[i].field, number & 1 ? "u2" : "int",
						 wanted[i].is_static, number / 2 * 4, heap + number * 8};
	}
	for (size_t i = 0; i < SIZED; i++)
		tables.types[i] = (struct row){.type = sized[i], .field = "", .offset = input_number(input, 1)};
}

static void make_heap(struct input *input)
{
	uint64_t word;

	input_read(input, heap, sizeof(heap));
	for (size_t i = 0; i < sizeof(heap); i += sizeof(word)) {
		memcpy(&word, heap + i, sizeof(word));
		if (word >> 56 != POINTER)
			continue;
		word = (uintptr_t)heap + word % sizeof(heap) / 8 * 8;
		memcpy(heap + i, &word, sizeof(word));
	}
}

static void change_heap(struct input *input)
{
	size_t at = input_number(input, 2) % (sizeof(heap) - 64);

	input_read(input, heap + at, input_number(input, 1) % 64);
}

static bool tell(void *context, uint32_t tid, const char *name, bool doubt)
{
	(void)context, (void)doubt;
	FUZZ_CHECK(tid && (!name || strlen(name) < OBJECTS_TEXT_BYTES));
	return tid % 5;
}

static void read_method(uintptr_t address)
{
	struct metadata_method method;
	struct metadata_names names;
	struct metadata_key key = metadata_prove_key(address);

	if (!key.method || !metadata_find(key.method, &method) || !metadata_names_read(&method, &names))
		return;
	FUZZ_CHECK(strlen(names.class_signature) && strlen(names.name));
	metadata_names_release(&names);
}

static void read_code(uintptr_t pc)
{
	struct nmethod_record record;
	struct code_blob blob;
	char name[64];

	if (jvmstructs_blob_at(pc, &blob))
		jvmstructs_blob_name(&blob, name, sizeof(name));
	if (nmethods_find(pc, 0, 1, MOST_BYTES, &record) != NMETHOD_FOUND)
		return;
	FUZZ_CHECK(record.load.pc_count <= MOST_BYTES / sizeof(*record.pcs));
	FUZZ_CHECK(record.load.frame_count <= MOST_BYTES / sizeof(*record.frames));
	nmethods_release(&record);
}

static void read_all(struct java_threads *threads, bool names_threads)
{
	struct duet_jvm_layout layout;

	for (uintptr_t at = 0; at < sizeof(heap); at += 128) {
		read_method((uintptr_t)heap + at);
		read_code((uintptr_t)heap + at + 100);
	}
	if (jvmstructs_renew_heaps())
		(void)jvmstructs_layout(&layout, 17);
	(void)jvmstructs_counter("java.cls.unloadedClasses");
	memory_renew();
	if (names_threads)
		java_threads_step(threads, clock_monotonic_ns(), tell, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int versions[] = {8, 11, 17, 21, 25, 27};
	struct input input = {data, size};
	struct java_threads threads = {0};
	int version = versions[input_number(&input, 1) % 6];
	bool names_threads;

	make_tables(&input);
	make_heap(&input);
	FUZZ_CHECK(!tables_open());
	if (jvmstructs_open() || !metadata_open(version, true))
		return 0;
	(void)nmethods_open(version);
	names_threads = java_threads_open(version);
	for (int i = 0; i < 3; i++) {
		read_all(&threads, names_threads);
		change_heap(&input);
	}
	java_threads_release(&threads);
	return 0;
}
