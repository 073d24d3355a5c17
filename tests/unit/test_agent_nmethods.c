/* SPDX-License-Identifier: MIT */
/* Inlining is read from made-up tables of one compilation in JDK 24's layout, and the kept copies are checked. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hotspot/vmstructs.c"
#include "jvm/kept.c"
#include "hotspot/nmethods.c"
#include "hotspot/scopes.c"
#include "hotspot/instruction.c"

static const char *byte_code = "\xb1"; /* of all methods: return */

uint8_t *metadata_code(const struct metadata_method *method, uint32_t *ret_bytes)
{
	uint8_t *code = malloc(8);

	(void)method;
	*ret_bytes = (uint32_t)strlen(byte_code);
	return memcpy(code, byte_code, *ret_bytes);
}

/* These poison malloc(). */
#include "memory.c"
#include "safe_copy.c"

#define ID 7
#define MOST_BYTES 16384

/* Describes what was inlined: a pc, then where its scope is. */
struct debug_data {
	int32_t pcs[4]; /* pc's offset, scope's offset, and two more */
	unsigned char scopes[16];
};

static struct {
	struct {
		uintptr_t method, immutable;
		uint32_t immutable_bytes, scopes_offset, pcs_offset, data_offset, metadata_offset, unused;
		unsigned char code[64];
		uintptr_t metadata[2]; /* to its end */
	} blob;
	struct debug_data behind; /* data of the next blob in the heap */
} heap;

static struct debug_data own;

/* ---- results of the blob's finder and of the methods ---- */

bool jvmstructs_blob_at(uintptr_t pc, struct code_blob *ret)
{
	*ret = (struct code_blob){.name = "nmethod", .start = (uintptr_t)&heap.blob, .bytes = sizeof(heap.blob)};
	ret->code_begin = (uintptr_t)heap.blob.code;
	return true;
}

void jvmstructs_blob_name(const struct code_blob *blob, char *name, size_t size)
{
	name[0] = '\0';
	strncat(name, blob->name, size - 1);
}

bool jvmstructs_is_nmethod(const char *name)
{
	return !strcmp(name, "nmethod");
}

uint32_t jvmstructs_blob_id(const struct code_blob *blob)
{
	return ID;
}

bool jvmstructs_is_code(uintptr_t pc)
{
	return false;
}

bool stub_find(uintptr_t pc, struct duet_stub *ret_stub, char name[STUB_NAME_BYTES])
{
	(void)pc, (void)ret_stub, (void)name;
	return false;
}

int stub_callers_kind(const char *stub)
{
	return 0;
}

bool stub_callers_is_runtime(int kind)
{
	return false;
}

void stub_callers_find(struct stub_callers *search, uint64_t method, int32_t begin, int32_t end)
{
	(void)search, (void)method, (void)begin, (void)end;
}

bool metadata_prove(uintptr_t address, struct metadata_method *ret)
{
	*ret = (struct metadata_method){.itself.address = address};
	return address != 0;
}

struct metadata_key metadata_prove_key(uintptr_t address)
{
	return (struct metadata_key){address, 0};
}

struct metadata_key metadata_key(const struct metadata_method *method)
{
	return metadata_prove_key(method->itself.address);
}

uint32_t bytecode_length(const uint8_t *code, uint32_t len, uint32_t bci)
{
	(void)code, (void)len, (void)bci;
	return 1;
}

bool metadata_is_class(uintptr_t address)
{
	return address && address % 0x1000;
}

bool metadata_find(uint64_t key, struct metadata_method *ret)
{
	return metadata_prove(key, ret);
}

uint8_t metadata_bytecode(const struct metadata_method *method, int32_t bci)
{
	return (uint8_t)bci;
}

/* ---- a compilation ---- */

#define FIELD(member) ((struct offset){true, 4, (uint32_t)offsetof(__typeof__(heap.blob), member)})

/* One pc, at which the metadata's method `index` is at byte code 4. No stream has its excess below JDK 20. */
static struct debug_data debug_data(unsigned char index)
{
	return (struct debug_data){.pcs = {16, 1, 0, 0}, .scopes = {0xff, 0, index, 5}};
}

static int make_code(void **state)
{
	layout.method = FIELD(method);
	layout.immutable = FIELD(immutable);
	layout.immutable_bytes = FIELD(immutable_bytes);
	layout.scopes_offset = FIELD(scopes_offset);
	layout.pcs_offset = FIELD(pcs_offset);
	layout.data_offset = FIELD(data_offset);
	layout.metadata_offset = FIELD(metadata_offset);
	layout.pc_bytes = sizeof(own.pcs);
	own = debug_data(1);
	heap.behind = debug_data(2);
	heap.blob.method = heap.blob.metadata[0] = 0x1000;
	heap.blob.metadata[1] = 0x2000;
	heap.blob.immutable = (uintptr_t)&own;
	heap.blob.immutable_bytes = sizeof(own);
	heap.blob.scopes_offset = offsetof(struct debug_data, scopes);
	heap.blob.data_offset = offsetof(__typeof__(heap.blob), metadata);
	return 0;
}

static struct nmethod_record find(void)
{
	struct nmethod_record record;

	assert_int_equal(nmethods_find((uintptr_t)heap.blob.code, ID, 0, MOST_BYTES, &record), NMETHOD_FOUND);
	assert_int_equal(record.load.method, 0x1000);
	return record;
}

static void test_inlining(void **state)
{
	struct nmethod_record record = find();

	assert_int_equal(record.load.pc_count, 1);
	assert_int_equal(record.pcs[0].offset, 16);
	assert_int_equal(record.pcs[0].depth, 1);
	assert_int_equal(record.frames[0].method, 0x1000);
	assert_int_equal(record.frames[0].bci, 4);
	nmethods_release(&record);
}

/*
 * What lies behind the last entry is read as well, up to the metadata. Nothing is inlined, so that all code, also what
 * no way leads to, is certainly the method's.
 */
static void test_code_behind_the_last_entry(void **state)
{
	struct nmethod_record record;

	own.scopes[4] = 1; /* there are locals: a safepoint */
	memcpy(heap.blob.code + 60, "\xeb\xc2", 2); /* jumps to 0, before the entry */
	record = find();
	memset(heap.blob.code + 60, 0, 2);
	assert_int_equal(record.load.pc_count, 1);
	assert_int_equal(record.pcs[0].offset, sizeof(heap.blob.code));
	assert_int_equal(record.pcs[0].depth, 1);
	assert_int_equal(record.pcs[0].flags, 0);
	assert_int_equal(record.frames[record.pcs[0].frame].method, 0x1000);
	nmethods_release(&record);
}

/* Without entries, code is the method's if that calls no other; else another may be inlined in it. */
static void test_nothing_recorded(void **state)
{
	struct nmethod_record record;

	own.pcs[1] = 0;
	record = find();
	assert_int_equal(record.load.pc_count, 0);
	nmethods_release(&record);
	byte_code = "\x1a\xb8";
	record = find();
	byte_code = "\xb1";
	assert_int_equal(record.load.pc_count, 1);
	assert_int_equal(record.pcs[0].offset, sizeof(heap.blob.code));
	assert_int_equal(record.pcs[0].flags, DUET_PC_ESTIMATED);
	assert_int_equal(record.frames[record.pcs[0].frame].method, 0x1000);
	assert_int_equal(record.frames[record.pcs[0].frame].bci, -1);
	nmethods_release(&record);
}

/* HotSpot has freed the tables, but not the code yet: the memory after it belongs to another blob. */
static void test_tables_that_are_gone(void **state)
{
	struct nmethod_record record;

	heap.blob.immutable = (uintptr_t)&heap.behind;
	record = find();
	assert_int_equal(record.load.pc_count, 0);
	assert_int_equal(record.load.frame_count, 0);
	nmethods_release(&record);
}

/* The bytes of all kept records have a bound, and records keep no spare room. */
static void test_kept_without_spare_room(void **state)
{
	struct nmethod_record record = find();

	kept_add(&record);
	assert_true(malloc_usable_size(kept.all[0].frames) < 256);
	assert_true(malloc_usable_size(kept.all[0].pcs) < 256);
	assert_true(kept_copy(ID, &record));
	kept_forget();
	assert_int_equal(record.frames[0].method, 0x1000);
	nmethods_release(&record);
	assert_false(kept_copy(ID, &record));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_inlining, make_code),
		cmocka_unit_test_setup(test_code_behind_the_last_entry, make_code),
		cmocka_unit_test_setup(test_nothing_recorded, make_code),
		cmocka_unit_test_setup(test_tables_that_are_gone, make_code),
		cmocka_unit_test_setup(test_kept_without_spare_room, make_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
