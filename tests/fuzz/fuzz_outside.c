/* SPDX-License-Identifier: MIT */
/*
 * The structures that a process claims to be its HotSpot's, read from outside: the offsets in its tables, and the
 * memory that they lead to, which changes between two reads. Here the process is this one.
 */
#include <elf.h>
#include <stdbool.h>

#include "base/clock.h"
#include "fuzz.h"
#include "jvmstructs.h"
#include "metadata.h"
#include "nmethods.h"
#include "outside/java_threads.h"
#include "outside/memory.h"
#include "outside/objects.h"

#define HEAP_BYTES 4096u
#define MOST_BYTES 65536u /* of a record */
#define POINTER 'P' /* the highest byte of a word that leads into the heap */

/* The fields that jvm-agent/hotspot/ and user/outside/ look up. */
static const struct { const char *type, *field; bool is_static; } wanted[] = {
	{"AbstractInterpreter", "_code", true},
	{"Abstract_VM_Version", "_s_internal_vm_info_string", true},
	{"Abstract_VM_Version", "_s_vm_release", true},
	{"Abstract_VM_Version", "_vm_major_version", true},
	{"Array<int>", "_length", false},
	{"Array<u1>", "_data", false},
	{"Array<u2>", "_data", false},
	{"CodeBlob", "_code_begin", false},
	{"CodeBlob", "_code_offset", false},
	{"CodeBlob", "_data_offset", false},
	{"CodeBlob", "_frame_complete_offset", false},
	{"CodeBlob", "_frame_size", false},
	{"CodeBlob", "_mutable_data", false},
	{"CodeBlob", "_mutable_data_size", false},
	{"CodeBlob", "_name", false},
	{"CodeBlob", "_relocation_size", false},
	{"CodeBlob", "_size", false},
	{"CodeCache", "_heap", true},
	{"CodeCache", "_heaps", true},
	{"CodeHeap", "_log2_segment_size", false},
	{"CodeHeap", "_memory", false},
	{"CodeHeap", "_segmap", false},
	{"CompiledMethod", "_method", false},
	{"CompiledMethod", "_scopes_data_begin", false},
	{"CompressedKlassPointers", "_base", true},
	{"CompressedKlassPointers", "_narrow_klass._base", true},
	{"CompressedKlassPointers", "_narrow_klass._shift", true},
	{"CompressedKlassPointers", "_shift", true},
	{"CompressedOops", "_base", true},
	{"CompressedOops", "_narrow_oop._base", true},
	{"CompressedOops", "_narrow_oop._shift", true},
	{"CompressedOops", "_shift", true},
	{"ConstMethod", "_code_size", false},
	{"ConstMethod", "_constMethod_size", false},
	{"ConstMethod", "_constants", false},
	{"ConstMethod", "_flags", false},
	{"ConstMethod", "_flags._flags", false},
	{"ConstMethod", "_method_idnum", false},
	{"ConstMethod", "_name_index", false},
	{"ConstMethod", "_signature_index", false},
	{"ConstantPool", "_length", false},
	{"ConstantPool", "_pool_holder", false},
	{"ConstantPool", "_source_file_name_index", false},
	{"ContinuationEntry", "_return_pc", true},
	{"GenericGrowableArray", "_len", false},
	{"GrowableArray<int>", "_data", false},
	{"GrowableArrayBase", "_len", false},
	{"InstanceKlass", "_constants", false},
	{"InstanceKlass", "_fieldinfo_stream", false},
	{"InstanceKlass", "_fields", false},
	{"InstanceKlass", "_methods_jmethod_ids", false},
	{"InstanceKlass", "_source_file_name_index", false},
	{"InterpreterCodelet", "_description", false},
	{"InterpreterCodelet", "_size", false},
	{"JVMFlag", "_addr", false},
	{"JVMFlag", "_name", false},
	{"JVMFlag", "flags", true},
	{"JVMFlag", "numFlags", true},
	{"JavaCallWrapper", "_anchor", false},
	{"JavaFrameAnchor", "_last_Java_fp", false},
	{"JavaFrameAnchor", "_last_Java_pc", false},
	{"JavaFrameAnchor", "_last_Java_sp", false},
	{"JavaThread", "_anchor", false},
	{"JavaThread", "_cont_entry", false},
	{"JavaThread", "_monitor_owner_id", false},
	{"JavaThread", "_osthread", false},
	{"JavaThread", "_threadObj", false},
	{"JavaThread", "_vthread", false},
	{"Klass", "_name", false},
	{"Method", "_access_flags", false},
	{"Method", "_constMethod", false},
	{"OSThread", "_thread_id", false},
	{"PerfMemory", "_start", true},
	{"StubQueue", "_queue_end", false},
	{"StubQueue", "_stub_buffer", false},
	{"StubRoutines", "_call_stub_return_address", true},
	{"Symbol", "_body", false},
	{"Symbol", "_length", false},
	{"SystemDictionary", "_well_known_klasses[SystemDictionary::String_klass_knum]", true},
	{"SystemDictionary", "_well_known_klasses[SystemDictionary::Thread_klass_knum]", true},
	{"Thread", "_osthread", false},
	{"ThreadsList", "_length", false},
	{"ThreadsList", "_threads", false},
	{"ThreadsSMRSupport", "_java_thread_list", true},
	{"Universe", "_narrow_klass._base", true},
	{"Universe", "_narrow_klass._shift", true},
	{"Universe", "_narrow_oop._base", true},
	{"Universe", "_narrow_oop._shift", true},
	{"VirtualSpace", "_high", false},
	{"VirtualSpace", "_high_boundary", false},
	{"VirtualSpace", "_low", false},
	{"VirtualSpace", "_low_boundary", false},
	{"XGlobalsForVMStructs", "_XAddressBadMask", false},
	{"XGlobalsForVMStructs", "_instance_p", true},
	{"ZGlobalsForVMStructs", "_ZAddressBadMask", false},
	{"ZGlobalsForVMStructs", "_ZPointerLoadBadMask", false},
	{"ZGlobalsForVMStructs", "_ZPointerLoadShift", false},
	{"ZGlobalsForVMStructs", "_instance_p", true},
	{"nmethod", "_compile_id", false},
	{"nmethod", "_dependencies_offset", false},
	{"nmethod", "_immutable_data", false},
	{"nmethod", "_immutable_data_size", false},
	{"nmethod", "_metadata_offset", false},
	{"nmethod", "_method", false},
	{"nmethod", "_orig_pc_offset", false},
	{"nmethod", "_scopes_data_offset", false},
	{"nmethod", "_scopes_pcs_offset", false},
	{"nmethod", "_stub_offset", false},
	{"nmethod", "_verified_entry_offset", false},
	{"nmethod", "_verified_entry_point", false},
	{"oopDesc", "_metadata._klass", false},
	{"vmClasses", "_klasses[static_cast<int>(vmClassID::String_klass_knum)]", true},
	{"vmClasses", "_klasses[static_cast<int>(vmClassID::Thread_klass_knum)]", true},
};
#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

static const char *const sized[] = {"ConstMethod", "ConstantPool", "HeapBlock", "JVMFlag", "PcDesc"};
#define SIZED (sizeof(sized) / sizeof(sized[0]))

struct row {
	const char *type, *field, *type_string;
	uint64_t is_static, offset;
	void *address;
};

static struct {
	struct row structs[WANTED + 1], types[SIZED + 1];
	struct row *structs_at, *types_at;
	uint64_t columns[6], stride;
} tables;

static const struct { const char *name; void *variable; } exported[] = {
	{"gHotSpotVMStructs", &tables.structs_at},
	{"gHotSpotVMTypes", &tables.types_at},
	{"gHotSpotVMStructEntryTypeNameOffset", &tables.columns[0]},
	{"gHotSpotVMStructEntryFieldNameOffset", &tables.columns[1]},
	{"gHotSpotVMStructEntryTypeStringOffset", &tables.columns[2]},
	{"gHotSpotVMStructEntryIsStaticOffset", &tables.columns[3]},
	{"gHotSpotVMStructEntryOffsetOffset", &tables.columns[4]},
	{"gHotSpotVMStructEntryAddressOffset", &tables.columns[5]},
	{"gHotSpotVMStructEntryArrayStride", &tables.stride},
	{"gHotSpotVMTypeEntryTypeNameOffset", &tables.columns[0]},
	{"gHotSpotVMTypeEntrySizeOffset", &tables.columns[4]},
	{"gHotSpotVMTypeEntryArrayStride", &tables.stride},
};
#define EXPORTED (sizeof(exported) / sizeof(exported[0]))

/* A library with one bucket in the hash table of the System V ABI. */
static struct {
	Elf64_Ehdr head;
	Elf64_Phdr parts[2];
	Elf64_Dyn dynamic[4];
	Elf64_Sym symbols[EXPORTED + 1];
	uint32_t buckets, count, bucket, next[EXPORTED + 1];
	char strings[48 * (EXPORTED + 1)];
} library;

static _Alignas(4096) unsigned char heap[HEAP_BYTES];

static uint64_t in_library(const void *at)
{
	return (uintptr_t)at - (uintptr_t)&library;
}

static void make_library(void)
{
	memcpy(library.head.e_ident, ELFMAG, SELFMAG);
	library.head.e_ident[EI_CLASS] = ELFCLASS64;
	library.head.e_phoff = in_library(library.parts);
	library.head.e_phentsize = sizeof(Elf64_Phdr);
	library.head.e_phnum = 2;
	library.parts[0].p_type = PT_LOAD;
	library.parts[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_vaddr = in_library(library.dynamic)};
	library.dynamic[0] = (Elf64_Dyn){DT_SYMTAB, {in_library(library.symbols)}};
	library.dynamic[1] = (Elf64_Dyn){DT_STRTAB, {in_library(library.strings)}};
	library.dynamic[2] = (Elf64_Dyn){DT_HASH, {in_library(&library.buckets)}};
	library.buckets = 1;
	library.count = EXPORTED + 1;
	library.bucket = 1;
	for (uint32_t i = 0; i < EXPORTED; i++) {
		strcpy(library.strings + 48 * (i + 1), exported[i].name);
		library.symbols[i + 1].st_name = 48 * (i + 1);
		library.symbols[i + 1].st_value = in_library(exported[i].variable);
		library.next[i + 1] = i + 1 < EXPORTED ? i + 2 : 0;
	}
}

static void make_tables(struct input *input)
{
	for (size_t i = 0; i < WANTED; i++) {
		uint64_t number = input_number(input, 1);

		tables.structs[i] = (struct row){wanted[i].type, wanted[i].field, number & 1 ? "u2" : "int",
						 wanted[i].is_static, number / 2 * 4, heap + number * 8};
	}
	for (size_t i = 0; i < SIZED; i++)
		tables.types[i] = (struct row){.type = sized[i], .field = "", .offset = input_number(input, 1)};
	tables.structs_at = tables.structs;
	tables.types_at = tables.types;
	tables.stride = sizeof(struct row);
	for (size_t i = 0; i < 6; i++)
		tables.columns[i] = i * sizeof(uint64_t);
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

	make_library();
	make_tables(&input);
	make_heap(&input);
	FUZZ_CHECK(!memory_open(getpid(), (uintptr_t)&library));
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
