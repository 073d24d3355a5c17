/* SPDX-License-Identifier: MIT */
/* Names are read from a made-up JVM's structures. Words of a stack that are not such structures are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static void (*const release)(void *) = free; /* it is poisoned in the agent */

#include "memory.h"

/* Memory that a reader from outside has kept since before something was written there. */
static struct {
	uintptr_t address;
	size_t bytes;
} old;

static size_t take(void *to, uintptr_t from, size_t bytes)
{
	size_t copied = memory_copy(to, from, bytes);

	for (size_t i = 0; i < copied; i++)
		if (from + i - old.address < old.bytes)
			((char *)to)[i] = 0;
	return copied;
}

#undef memory_take
#define memory_take take

#include "hotspot/vmstructs.c"
#include "hotspot/metadata.c"
#include "hotspot/bytecodes.c"
#include "memory.c"
#include "safe_copy.c"

#define KNOWN(type, member) ((struct offset){true, 4, (uint32_t)offsetof(type, member)})

struct symbol {
	uint16_t length;
	char body[30];
};

struct klass {
	uintptr_t name;
	uintptr_t pool;
	uintptr_t ids;
};

struct pool {
	uintptr_t holder;
	uint32_t length, version;
	uint16_t source;
	uintptr_t cache, classes;
	uintptr_t constants[4];
};

struct const_method {
	uintptr_t pool;
	uint16_t flags, id, code_bytes, name, signature;
	uint32_t words;
	unsigned char code[4];
	unsigned char lines[20];
};

struct method {
	uintptr_t const_method;
	uint32_t flags;
};

static struct {
	struct symbol class_name, name, signature, source;
	struct klass klass;
	uintptr_t table[2]; /* of methods, follows the class */
	struct pool pool;
	struct const_method const_method;
	struct method method;
	uintptr_t ids[3]; /* count, then ids */
	uintptr_t slot;
} vm;

static struct symbol symbol(const char *text)
{
	struct symbol result = {.length = (uint16_t)strlen(text)};

	memcpy(result.body, text, strlen(text));
	return result;
}

static void make_layout(void)
{
	layout.method_const = KNOWN(struct method, const_method);
	layout.method_flags = KNOWN(struct method, flags);
	layout.const_pool = KNOWN(struct const_method, pool);
	layout.const_flags = KNOWN(struct const_method, flags);
	layout.const_id = KNOWN(struct const_method, id);
	layout.const_code_bytes = KNOWN(struct const_method, code_bytes);
	layout.const_name = KNOWN(struct const_method, name);
	layout.const_signature = KNOWN(struct const_method, signature);
	layout.const_words = KNOWN(struct const_method, words);
	layout.pool_holder = KNOWN(struct pool, holder);
	layout.pool_length = KNOWN(struct pool, length);
	layout.pool_source = KNOWN(struct pool, source);
	layout.holder_pool = KNOWN(struct klass, pool);
	layout.holder_ids = KNOWN(struct klass, ids);
	layout.klass_name = KNOWN(struct klass, name);
	layout.symbol_length = KNOWN(struct symbol, length);
	layout.symbol_body = KNOWN(struct symbol, body);
	layout.const_bytes = offsetof(struct const_method, code);
	layout.pool_bytes = offsetof(struct pool, constants);
	layout.pool_version = offsetof(struct pool, version);
	layout.version = 17;
}

static int make_vm(void **state)
{
	/* bci 0 line 10, bci 3 line 12, and by packed steps of 40 and -3: bci 43 line 9 */
	static const unsigned char lines[] = {0xff, 0, 20, 3 << 3 | 2, 0xff, 80, 5, 0};

	make_layout();
	vm.class_name = symbol("shop/Till+0x0123");
	vm.name = symbol("take");
	vm.signature = symbol("(I)V");
	vm.source = symbol("Till.java");
	vm.klass = (struct klass){(uintptr_t)&vm.class_name, (uintptr_t)&vm.pool, (uintptr_t)vm.ids};
	vm.pool = (struct pool){.holder = (uintptr_t)&vm.klass, .length = 4, .version = 5, .source = 3};
	vm.pool.constants[1] = (uintptr_t)&vm.name;
	vm.pool.constants[2] = (uintptr_t)&vm.signature;
	vm.pool.constants[3] = (uintptr_t)&vm.source;
	vm.const_method = (struct const_method){
		.pool = (uintptr_t)&vm.pool, .flags = HAS_LINES, .id = 1, .code_bytes = 4, .name = 1, .signature = 2};
	vm.const_method.words = sizeof(vm.const_method) / WORD;
	memcpy(vm.const_method.lines, lines, sizeof(lines));
	vm.method = (struct method){(uintptr_t)&vm.const_method, 0x0109};
	vm.slot = (uintptr_t)&vm.method;
	vm.ids[0] = 2;
	vm.ids[2] = (uintptr_t)&vm.slot;
	return 0;
}

static uint64_t tag_of_method(void)
{
	return duet_method_tag((uintptr_t)&vm.const_method, (uintptr_t)&vm.pool,
			       vm.const_method.code_bytes | (uint64_t)vm.const_method.name << 16 |
				       (uint64_t)vm.const_method.signature << 32 |
				       (uint64_t)vm.pool.version << 48);
}

static uint64_t bare_key_of_method(void)
{
	return duet_method_key((uintptr_t)&vm.method, tag_of_method());
}

/* The interpreter replaces instructions; what they stood for is given. */
static void test_byte_codes_of_hotspot(void **state)
{
	static const struct {
		uint8_t kept, given;
	} rows[] = {
		{0x2a, 0x2a}, {202, 202}, /* not of HotSpot */
		{203, 0xb4}, {210, 0xb4}, {211, 0xb5}, {219, 0xb5}, /* fields */
		{220, 0x2a}, {223, 0x2a}, {224, 0x15}, {226, 0x15}, /* loads */
		{227, 0xb6}, {228, 0xab}, {229, 0xab}, {230, 0x12}, {231, 0x13}, {232, 0xb1}, {233, 0xb6},
		{234, 0xb4}, {235, 0xb5}, {236, 0x2a}, {237, 0x15}, /* of shared archives */
		{238, 238}, {255, 255}, /* unknown */
	};
	struct metadata_method method;

	assert_true(metadata_find((uintptr_t)&vm.slot, &method));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		vm.const_method.code[1] = rows[i].kept;
		assert_int_equal(metadata_bytecode(&method, 1), rows[i].given);
	}
	assert_int_equal(metadata_bytecode(&method, -1), 0);
}

/* Each call has its method, or the number of one in the table of the class that it names. */
static void test_callees(void **state)
{
	static uintptr_t entries[5], cache[2], classes[] = {1, (uintptr_t)&vm.klass};
	const uintptr_t itself = (uintptr_t)&vm.method, has_run = 0xb6, constant = 2;
	struct metadata_method method, callee;

	assert_true(metadata_find((uintptr_t)&vm.slot, &method));
	layout.pool_cache = KNOWN(struct pool, cache);
	layout.pool_classes = KNOWN(struct pool, classes);
	layout.klass_bytes = sizeof(struct klass);
	layout.cache_bytes = sizeof(*entries);
	layout.call_bytes = 4 * sizeof(*entries);
	entries[0] = 1; /* their number */
	vm.pool.constants[2] = 3; /* the call's class, which is constant 3, and that number 0 of the classes */
	vm.pool.constants[3] = 0;
	vm.pool.classes = (uintptr_t)classes;
	vm.table[1] = itself;
	vm.pool.cache = (uintptr_t)entries; /* constant and byte codes, method, number or final method */
	entries[1] = has_run << 16 | constant;
	entries[2] = itself;
	assert_true(metadata_callee(&method, 0, &callee) && callee.itself.address == itself);
	old.address = (uintptr_t)entries; /* the first call was made after it was read */
	old.bytes = sizeof(entries);
	assert_true(metadata_callee(&method, 0, &callee) && callee.itself.address == itself);
	old.bytes = 0;
	entries[2] = 0;
	entries[3] = itself;
	assert_true(metadata_callee(&method, 0, &callee) && callee.itself.address == itself);
	entries[3] = 1;
	assert_true(metadata_callee(&method, 0, &callee) && callee.itself.address == itself);
	entries[3] = 0;
	assert_false(metadata_callee(&method, 0, &callee));
	assert_false(metadata_callee(&method, 1, &callee));
	entries[3] = 1;
	entries[1] = constant;
	assert_false(metadata_callee(&method, 0, &callee)); /* has not run */
	layout.pool_classes = (struct offset){0}; /* JDK 8: constant 3 is the class itself */
	vm.pool.constants[3] = (uintptr_t)&vm.klass;
	entries[1] = has_run << 16 | constant;
	assert_true(metadata_callee(&method, 0, &callee) && callee.itself.address == itself);
	/* JDK 22: method, number, constant and byte codes */
	layout.cache_calls = (struct offset){true, 8, sizeof(*cache)};
	layout.call_bytes = 3 * sizeof(*entries);
	cache[1] = vm.pool.cache;
	vm.pool.cache = (uintptr_t)cache;
	entries[1] = 0;
	entries[2] = 1;
	entries[3] = has_run << 48 | constant;
	assert_true(metadata_callee(&method, 0, &callee) && callee.itself.address == itself);
	layout.cache_calls = (struct offset){0};
}

/* A class and one that it implements or extends, as HotSpot lays them out. */
struct kind {
	uintptr_t name, pool;
	uintptr_t other_super, supers[2]; /* fields in which a class of a depth below an own one has itself */
	uintptr_t other_supers, methods;
	uint32_t super_offset, table_length;
	uintptr_t table[2]; /* follows the class */
};

/* An implementation is known by its name and types, in a class that is a subtype. */
static void test_implementations(void **state)
{
	static struct pool pools[2];
	static struct const_method const_methods[3];
	static struct method method[3]; /* abstract; its implementation; another one with other types */
	static struct kind base, sub;
	static uintptr_t own[3], inherited[2];
	struct metadata_method called, found;
	uint32_t budget = 100;

	for (int i = 0; i < 3; i++) {
		const_methods[i] = (struct const_method){.pool = (uintptr_t)&pools[i > 0], .name = 1, .signature = 2};
		method[i].const_method = (uintptr_t)&const_methods[i];
	}
	const_methods[2].signature = 3;
	for (int i = 0; i < 2; i++) {
		pools[i] = (struct pool){.holder = (uintptr_t)(i ? &sub : &base), .length = 4};
		memcpy(pools[i].constants, vm.pool.constants, sizeof(vm.pool.constants));
	}
	layout.holder_pool = KNOWN(struct kind, pool);
	layout.other_super = KNOWN(struct kind, other_super);
	layout.other_supers = KNOWN(struct kind, other_supers);
	layout.class_methods = KNOWN(struct kind, methods);
	layout.super_offset = KNOWN(struct kind, super_offset);
	layout.table_length = KNOWN(struct kind, table_length);
	layout.klass_bytes = offsetof(struct kind, table);
	base = (struct kind){.pool = (uintptr_t)&pools[0], .super_offset = offsetof(struct kind, supers)};
	sub = (struct kind){.pool = (uintptr_t)&pools[1], .supers = {(uintptr_t)&base}, .methods = (uintptr_t)own};
	own[0] = 2; /* their number */
	own[1] = (uintptr_t)&method[2];
	own[2] = (uintptr_t)&method[1];
	assert_true(metadata_is_class((uintptr_t)&base) && metadata_is_class((uintptr_t)&sub));
	assert_false(metadata_is_class((uintptr_t)&method[0]) || metadata_is_class(0) || metadata_is_class(3));
	assert_true(metadata_prove((uintptr_t)&method[0], &called));
	assert_true(metadata_implementation((uintptr_t)&sub, &called, &budget, &found));
	assert_int_equal(found.itself.address, (uintptr_t)&method[1]);
	assert_int_equal(budget, 98);
	own[0] = 1; /* it is inherited */
	sub.table_length = 1;
	sub.table[0] = own[2];
	assert_true(metadata_implementation((uintptr_t)&sub, &called, &budget, &found));
	sub.table[0] = (uintptr_t)&method[0]; /* abstract there, too */
	assert_false(metadata_implementation((uintptr_t)&sub, &called, &budget, &found));
	sub.table[0] = own[2];
	sub.supers[0] = 0; /* no subtype */
	assert_false(metadata_implementation((uintptr_t)&sub, &called, &budget, &found));
	base.super_offset = offsetof(struct kind, other_super); /* an interface */
	assert_false(metadata_implementation((uintptr_t)&sub, &called, &budget, &found));
	inherited[0] = 1;
	inherited[1] = (uintptr_t)&base;
	sub.other_supers = (uintptr_t)inherited;
	assert_true(metadata_implementation((uintptr_t)&sub, &called, &budget, &found));
	budget = 1;
	assert_false(metadata_implementation((uintptr_t)&sub, &called, &budget, &found));
	memset(&layout, 0, sizeof(layout));
}

static void expect_types(const struct metadata_method *method, uint8_t opcode, uint16_t operand, const char *expected)
{
	char *types = metadata_types(method, opcode, operand);

	assert_true(expected ? types && !strcmp(types, expected) : !types);
	release(types);
}

/* What an instruction names is a constant: a class, and a name with types. */
static void test_types(void **state)
{
	static uintptr_t entries[5], cache[2], fields[3];
	struct metadata_method method;
	char *own;

	assert_true(metadata_find((uintptr_t)&vm.slot, &method));
	own = metadata_types(&method, 0, 0);
	assert_non_null(own);
	layout.pool_cache = KNOWN(struct pool, cache);
	layout.cache_bytes = sizeof(*entries);
	layout.call_bytes = 4 * sizeof(*entries);
	vm.pool.constants[2] = 3 << 16;
	vm.pool.constants[3] = (uintptr_t)vm.const_method.signature << 16;
	vm.pool.cache = (uintptr_t)entries;
	entries[0] = 1; /* their number */
	entries[1] = 2; /* the constant, of one that has not run as well */
	expect_types(&method, OP_GETFIELD, 0, own);
	expect_types(&method, OP_INVOKESTATIC, 0, own);
	expect_types(&method, OP_INVOKESTATIC, 1, NULL);
	entries[1] = 0;
	expect_types(&method, OP_INVOKESTATIC, 0, NULL);
	layout.cache_calls = (struct offset){true, 8, 0}; /* JDK 22: fields have entries of their own */
	layout.call_bytes = 3 * sizeof(*entries);
	cache[0] = (uintptr_t)entries;
	cache[1] = (uintptr_t)fields;
	vm.pool.cache = (uintptr_t)cache;
	entries[3] = 2;
	expect_types(&method, OP_INVOKESTATIC, 0, own);
	expect_types(&method, OP_GETFIELD, 0, NULL);
	layout.cache_fields = (struct offset){true, 8, sizeof(*cache)};
	layout.field_constant = (struct offset){true, 2, 8};
	layout.field_bytes = 16;
	fields[0] = 1;
	fields[2] = 2;
	expect_types(&method, OP_GETFIELD, 0, own);
	expect_types(&method, OP_GETFIELD, 1, NULL);
	layout.cache_calls = layout.cache_fields = layout.field_constant = (struct offset){0};
	release(own);
}

static void test_code_and_name(void **state)
{
	struct metadata_method method;
	uint32_t bytes;
	uint8_t *code;
	char *name;

	memcpy(vm.const_method.code, (uint8_t[]){220, 0xb8, 0, 0}, 4); /* fast_aload_0, invokestatic */
	assert_true(metadata_find((uintptr_t)&vm.slot, &method));
	code = metadata_code(&method, &bytes);
	assert_int_equal(bytes, 4);
	assert_int_equal(code[0], 0x2a);
	assert_int_equal(code[1], 0xb8);
	release(code);
	name = metadata_name(&method);
	assert_string_equal(name, "Lshop/Till.0x0123;take ");
	release(name);
	vm.const_method.code[0] = vm.const_method.code[3] = 0xb8; /* the last is not whole */
	assert_true(metadata_find((uintptr_t)&vm.slot, &method));
	code = metadata_code(&method, &bytes);
	assert_int_equal(bytes, 3);
	release(code);
}

static void test_names(void **state)
{
	struct metadata_method method;
	struct metadata_names names;

	assert_true(metadata_find((uintptr_t)&vm.slot, &method));
	assert_int_equal(metadata_key(&method).method, (uintptr_t)&vm.slot);
	assert_int_equal(metadata_key(&method).check, 0);
	assert_true(metadata_names_read(&method, &names));
	assert_string_equal(names.class_signature, "Lshop/Till.0x0123;");
	assert_string_equal(names.name, "take");
	assert_string_equal(names.signature, "(I)V");
	assert_string_equal(names.source, "Till.java");
	assert_int_equal(names.modifiers, 0x109);
	assert_int_equal(names.bare, bare_key_of_method());
	assert_int_equal(names.line_count, 3);
	assert_memory_equal(names.lines, ((struct duet_line[]){{0, 10}, {3, 12}, {43, 9}}), 3 * sizeof(*names.lines));
	metadata_names_release(&names);
}

static void test_method_without_an_id(void **state)
{
	const uint64_t bare = bare_key_of_method();
	struct metadata_method method;

	assert_int_equal(bare & DUET_METHOD_ADDRESS, (uintptr_t)&vm.method);
	vm.ids[2] = 0;
	assert_false(metadata_find((uintptr_t)&vm.slot, &method));
	assert_true(metadata_find(bare, &method));
	assert_int_equal(metadata_key(&method).method, bare);
	assert_int_equal(metadata_key(&method).check, duet_method_check(tag_of_method()));
	vm.ids[0] = 1; /* its number is past the end */
	assert_int_equal(metadata_key(&method).method, bare);
}

/* A key without an id stays the method's, and keeps its check, when the JVM gives the method an id. */
static void test_method_that_gets_an_id(void **state)
{
	const uint64_t bare = bare_key_of_method();
	struct metadata_method method;

	assert_true(metadata_find(bare, &method));
	assert_int_equal(metadata_key(&method).method, (uintptr_t)&vm.slot);
	assert_int_equal(metadata_check(&method, bare), duet_method_check(tag_of_method()));
	assert_int_equal(metadata_check(&method, (uintptr_t)&vm.slot), 0);
}

static void test_unloaded_class(void **state)
{
	struct metadata_method method;

	vm.slot = 0;
	assert_false(metadata_find((uintptr_t)&vm.slot, &method));
	vm.slot = (uintptr_t)&vm.method;
	vm.ids[2] = (uintptr_t)&vm.ids; /* another method has the number now */
	assert_false(metadata_find((uintptr_t)&vm.slot, &method));
	vm.pool.holder = 0;
	assert_false(metadata_find(bare_key_of_method(), &method));
}

/* After a redefinition, other methods may use the memory of a class's old methods. */
static void test_another_method_at_the_address(void **state)
{
	const uint64_t before = bare_key_of_method();
	struct const_method other = vm.const_method;
	struct metadata_method method;

	assert_true(metadata_find(before, &method));
	vm.const_method.name = 2;
	assert_false(metadata_find(before, &method));
	assert_true(metadata_find(bare_key_of_method(), &method));
	vm.const_method.name = other.name;
	vm.pool.version++; /* a later version of the class */
	assert_false(metadata_find(before, &method));
	vm.pool.version--;
	vm.method.const_method = (uintptr_t)&other;
	assert_false(metadata_find(before, &method));
}

/* JDK 26: the id is a small number, not an address. */
static void test_numbered_id(void **state)
{
	struct metadata_method method;

	layout.version = 26;
	assert_false(metadata_find((uintptr_t)&vm.slot, &method));
	assert_true(metadata_find(bare_key_of_method(), &method));
}

/* Words that a native method leaves where the interpreter has its method. */
static void test_words_that_are_no_method(void **state)
{
	uint64_t words[] = {0, 1, 7, 8, 0xdead, 0xdead0000, UINT64_MAX, INT64_MIN, 0x7fffffffffff, 0x8000000000000008,
			    (uintptr_t)&vm, (uintptr_t)&vm.pool, (uintptr_t)&vm.klass, (uintptr_t)words,
			    (uintptr_t)&vm.method + 1, (uintptr_t)&vm.method + 8};
	struct metadata_method method;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		assert_false(metadata_find(words[i], &method));
		assert_false(metadata_find(words[i] | DUET_METHOD_BARE, &method));
	}
}

static bool has_names(void)
{
	struct metadata_method method;
	struct metadata_names names;
	bool done;

	assert_true(metadata_find((uintptr_t)&vm.slot, &method));
	done = metadata_names_read(&method, &names);
	if (done)
		metadata_names_release(&names);
	return done;
}

/* A method that is proven, with names that lead nowhere. */
static void test_broken_names(void **state)
{
	vm.const_method.name = 4; /* past the pool's end */
	assert_false(has_names());
	vm.const_method.name = 1;
	vm.pool.constants[1] = 0xdead0000;
	assert_false(has_names());
	vm.pool.constants[1] = (uintptr_t)&vm.name;
	memset(vm.name.body, 0, sizeof(vm.name.body));
	assert_false(has_names());
	vm.name = symbol("take");
	memset(vm.const_method.lines, 0xff, sizeof(vm.const_method.lines));
	assert_true(has_names());
	vm.const_method.words = UINT32_MAX;
	assert_true(has_names());
}

/* The memory after it cannot be read. Another name is longer than one read. */
static void test_edge_of_memory(void **state)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 3 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint16_t length = 2000;
	struct metadata_method method;
	struct metadata_names names;
	char *edge;

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(munmap(pages + 2 * page_bytes, page_bytes), 0);
	edge = memcpy(pages + 2 * page_bytes - sizeof(vm.klass), &vm.klass, sizeof(vm.klass));
	vm.pool.holder = (uintptr_t)edge;
	memset(pages, 'x', sizeof(length) + length);
	vm.pool.constants[1] = (uintptr_t)memcpy(pages, &length, sizeof(length));
	assert_true(metadata_find((uintptr_t)&vm.slot, &method));
	assert_true(metadata_names_read(&method, &names));
	assert_string_equal(names.class_signature, "Lshop/Till.0x0123;");
	assert_int_equal(strlen(names.name), length);
	metadata_names_release(&names);
	munmap(pages, 2 * page_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_callees, make_vm),
		cmocka_unit_test_setup(test_implementations, make_vm),
		cmocka_unit_test_setup(test_types, make_vm),
		cmocka_unit_test_setup(test_code_and_name, make_vm),
		cmocka_unit_test_setup(test_names, make_vm),
		cmocka_unit_test_setup(test_byte_codes_of_hotspot, make_vm),
		cmocka_unit_test_setup(test_method_without_an_id, make_vm),
		cmocka_unit_test_setup(test_method_that_gets_an_id, make_vm),
		cmocka_unit_test_setup(test_unloaded_class, make_vm),
		cmocka_unit_test_setup(test_another_method_at_the_address, make_vm),
		cmocka_unit_test_setup(test_numbered_id, make_vm),
		cmocka_unit_test_setup(test_words_that_are_no_method, make_vm),
		cmocka_unit_test_setup(test_broken_names, make_vm),
		cmocka_unit_test_setup(test_edge_of_memory, make_vm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
