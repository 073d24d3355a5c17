/* SPDX-License-Identifier: MIT */
/*
 * Finds the mounted virtual thread in a made-up JVM's memory: the agent checks the layout on a known thread, and BPF's
 * code then reads by this layout.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "jvm/virtual_threads.c"
#include "safe_copy.c"

#define VTABLE 0x7700
#define OWN_ID 29
#define AGENT "duet agent"
#define HEAP_BYTES 8192u
enum { THREAD_OBJECT = 8, THREAD_CURRENT = 16, THREAD_OWNER = 24, THREAD_ENTRY = 32 };
enum { OBJECT_ID = 16, OBJECT_NAME = 32, STRING_VALUE = 16, STRING_CODER = 24 };

static uint64_t java_thread[8];
static uint64_t handles[2]; /* handles: of the thread's own object, and of the current one */
static uint8_t *heap; /* followed by memory that cannot be read */
static uint32_t used;
static struct duet_jvm_virtual exported, how;
static bool has_fields, reads_objects;
static uint8_t oop_bytes, compact; /* of the made-up JVM */
static struct virtual_witness witness;

bool jvmstructs_virtual(struct duet_jvm_virtual *ret, bool *ret_reads_objects)
{
	*ret = exported;
	*ret_reads_objects = reads_objects;
	return has_fields;
}

static uint8_t *make_object(uint32_t bytes)
{
	uint8_t *object = heap + used;

	used += (bytes + 7) & ~7u;
	assert_true(used <= HEAP_BYTES);
	return object;
}

static void put_oop(uint8_t *field, const uint8_t *object)
{
	uint64_t wide = (uintptr_t)object;
	uint32_t narrow = (uint32_t)((wide - exported.oop_base) >> exported.oop_shift);

	if (oop_bytes == 4)
		memcpy(field, &narrow, sizeof(narrow));
	else
		memcpy(field, &wide, sizeof(wide));
}

/* Makes a java.lang.Thread with this name. */
static uint64_t make_thread(uint64_t id, const void *name, uint32_t bytes, uint8_t coder)
{
	uint8_t *thread = make_object(48), *string = make_object(32), *array = make_object(32 + bytes);

	memcpy(thread + OBJECT_ID, &id, sizeof(id));
	put_oop(thread + OBJECT_NAME, string);
	put_oop(string + STRING_VALUE, array);
	string[STRING_CODER] = coder;
	memcpy(array + arrays[compact].length, &bytes, sizeof(bytes));
	memcpy(array + arrays[compact].bytes, name, bytes);
	return (uintptr_t)thread;
}

static int make_jvm(void **state)
{
	heap = mmap(NULL, 2 * HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(heap, MAP_FAILED);
	assert_int_equal(mprotect(heap + HEAP_BYTES, HEAP_BYTES, PROT_NONE), 0);
	used = 64;
	oop_bytes = 4;
	compact = 0;
	has_fields = reads_objects = true;
	exported = (struct duet_jvm_virtual){
		.oop_base = (uintptr_t)heap,
		.oop_shift = 3,
		.thread_object = THREAD_OBJECT,
		.thread_current = THREAD_CURRENT,
		.thread_owner = THREAD_OWNER,
		.thread_entry = THREAD_ENTRY,
	};
	memset(java_thread, 0, sizeof(java_thread));
	java_thread[0] = VTABLE;
	java_thread[THREAD_OBJECT / 8] = (uintptr_t)&handles[0];
	java_thread[THREAD_CURRENT / 8] = (uintptr_t)&handles[1];
	java_thread[THREAD_OWNER / 8] = OWN_ID;
	witness = (struct virtual_witness){(uintptr_t)java_thread, OWN_ID,	AGENT,	     OBJECT_ID,
					   OBJECT_NAME,		   STRING_VALUE, STRING_CODER};
	return 0;
}

static int release_jvm(void **state)
{
	return munmap(heap, 2 * HEAP_BYTES);
}

static void learn(void)
{
	handles[0] = handles[1] = make_thread(OWN_ID, AGENT, sizeof(AGENT) - 1, 0);
	virtual_threads_learn(&witness, &how);
}

static struct duet_virtual_thread mounted(void)
{
	struct duet_virtual_thread thread = {0};

	virtual_mounted(&how, virtual_carrier(&how, (uintptr_t)java_thread), &thread);
	return thread;
}

/* Mounts a virtual thread with this name. */
static struct duet_virtual_thread mount_named(const void *name, uint32_t bytes, uint8_t coder)
{
	handles[1] = make_thread(4711, name, bytes, coder);
	java_thread[THREAD_OWNER / 8] = 4711;
	java_thread[THREAD_ENTRY / 8] = 1;
	return mounted();
}

static void assert_named(const struct duet_virtual_thread *thread, const void *name, size_t bytes, int is_utf16)
{
	assert_int_equal(thread->id, 4711);
	assert_int_equal(thread->name_bytes, bytes);
	assert_int_equal(thread->is_utf16, is_utf16);
	assert_memory_equal(thread->name, name, bytes);
}

static void every_layout_of_objects_is_found(void **state)
{
	for (oop_bytes = 4; oop_bytes <= 8; oop_bytes += 4) {
		for (compact = 0; compact < sizeof(arrays) / sizeof(arrays[0]); compact++) {
			struct duet_virtual_thread thread;

			java_thread[THREAD_OWNER / 8] = OWN_ID;
			java_thread[THREAD_ENTRY / 8] = 0;
			learn();
			assert_int_equal(how.oop_bytes, oop_bytes);
			assert_int_equal(how.array_length, arrays[compact].length);
			assert_int_equal(how.array_bytes, arrays[compact].bytes);
			assert_int_equal(mounted().id, 0);
			thread = mount_named("order-7", 7, 0);
			assert_named(&thread, "order-7", 7, 0);
		}
	}
}

static void names_of_each_kind(void **state)
{
	static const uint8_t wide[] = {'g', 0, 0x16, 0x04};
	char name[100];
	struct duet_virtual_thread thread;

	learn();
	thread = mount_named("", 0, 0);
	assert_named(&thread, "", 0, 0);
	thread = mount_named(wide, sizeof(wide), 1);
	assert_named(&thread, wide, sizeof(wide), 1);
	memset(name, 'x', sizeof(name));
	thread = mount_named(name, DUET_MAX_VIRTUAL_NAME, 0);
	assert_named(&thread, name, DUET_MAX_VIRTUAL_NAME, 0);
	thread = mount_named(name, DUET_MAX_VIRTUAL_NAME + 1, 0);
	assert_named(&thread, name, DUET_MAX_VIRTUAL_NAME, 0);
}

/* While a collector moves the thread's object, the two references may lead to two copies of it. */
static void copies_are_one_thread(void **state)
{
	learn();
	handles[1] = make_thread(OWN_ID, AGENT, sizeof(AGENT) - 1, 0);
	assert_int_equal(mounted().id, 0);
}

static void what_cannot_be_read_has_no_name(void **state)
{
	struct duet_virtual_thread thread;
	uint32_t wild = (HEAP_BYTES + 64) >> 3, none = 0;

	learn();
	thread = mount_named("order-7", 7, 0);
	memcpy((void *)(uintptr_t)(handles[1] + OBJECT_NAME), &wild, sizeof(wild));
	thread = mounted();
	assert_named(&thread, "", 0, 0);
	memcpy((void *)(uintptr_t)(handles[1] + OBJECT_NAME), &none, sizeof(none));
	thread = mounted();
	assert_named(&thread, "", 0, 0);
	handles[1] = (uintptr_t)heap + HEAP_BYTES;
	assert_int_equal(mounted().id, 0);
	handles[1] = 0;
	assert_int_equal(mounted().id, 0);
	java_thread[THREAD_CURRENT / 8] = (uintptr_t)heap + HEAP_BYTES;
	assert_int_equal(mounted().id, 0);
}

static void only_a_java_thread_is_one(void **state)
{
	learn();
	assert_int_equal(virtual_carrier(&how, (uintptr_t)java_thread), (uintptr_t)java_thread);
	assert_int_equal(virtual_carrier(&how, (uintptr_t)java_thread + 8), 0);
	assert_int_equal(virtual_carrier(&how, (uintptr_t)heap + HEAP_BYTES), 0);
	assert_int_equal(virtual_carrier(&how, 0), 0);
}

/* ZGC: references are no addresses. */
static void without_objects_there_is_an_id(void **state)
{
	struct duet_virtual_thread thread;

	reads_objects = false;
	learn();
	assert_int_equal(how.oop_bytes, 0);
	assert_int_equal(how.thread_vtable, VTABLE);
	assert_int_equal(mounted().id, 0);
	thread = mount_named("order-7", 7, 0);
	assert_named(&thread, "", 0, 0);
}

static void assert_nothing_is_told(void)
{
	static const struct duet_jvm_virtual none;

	learn();
	assert_memory_equal(&how, &none, sizeof(none));
}

static void what_proves_wrong_is_left_out(void **state)
{
	reads_objects = false;
	exported.thread_entry = DUET_JVM_NO_FIELD; /* JDK 21 with ZGC */
	assert_nothing_is_told();
	reads_objects = true;
	learn();
	assert_int_equal(how.oop_bytes, 4);
	witness.id = OWN_ID + 1;
	assert_nothing_is_told();
	witness.id = OWN_ID;
	witness.name = "duet agenT";
	assert_nothing_is_told();
	witness.name = "";
	assert_nothing_is_told();
	witness.name = AGENT;
	witness.object_name = DUET_JVM_NO_FIELD;
	assert_nothing_is_told();
	witness.object_name = OBJECT_NAME;
	has_fields = false; /* JDK 17 */
	assert_nothing_is_told();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_layout_of_objects_is_found, make_jvm, release_jvm),
		cmocka_unit_test_setup_teardown(names_of_each_kind, make_jvm, release_jvm),
		cmocka_unit_test_setup_teardown(copies_are_one_thread, make_jvm, release_jvm),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_has_no_name, make_jvm, release_jvm),
		cmocka_unit_test_setup_teardown(only_a_java_thread_is_one, make_jvm, release_jvm),
		cmocka_unit_test_setup_teardown(without_objects_there_is_an_id, make_jvm, release_jvm),
		cmocka_unit_test_setup_teardown(what_proves_wrong_is_left_out, make_jvm, release_jvm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
