/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "proc/room.h"
#include "runtime/jvm.h"

struct fixture {
	struct intern strings;
	struct jvm *jvm;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	intern_init(&f->strings);
	f->jvm = jvm_new(&f->strings);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	jvm_free(f->jvm);
	intern_release(&f->strings);
	free(f);
	return 0;
}

static struct jvm_moment at(uint64_t time_ns)
{
	return (struct jvm_moment){.time_ns = time_ns};
}

static void publish_method(struct fixture *f, uint64_t id, const char *class_name, const char *name)
{
	static const struct duet_line lines[] = {{0, 10}, {5, 11}, {9, 20}};
	uint64_t space[64] = {0};
	struct duet_method *record = (struct duet_method *)space;
	char *at = (char *)(record + 1);

	record->method = id;
	record->class_len = (uint16_t)strlen(class_name);
	record->name_len = (uint16_t)strlen(name);
	record->signature_len = 3;
	record->line_count = 3;
	at = stpcpy(stpcpy(stpcpy(at, class_name), name), "()V");
	memcpy(at, lines, sizeof(lines));
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_METHOD, record, sizeof(space)), 0);
}

static void load_code(struct fixture *f, uint64_t method, uint64_t address, uint32_t bytes, uint64_t time_ns)
{
	struct {
		struct duet_code_load load;
		struct duet_code_pc pcs[2];
		struct duet_java_frame frames[3];
	} record = {
		.load = {.time_ns = time_ns,
			 .method = method,
			 .address = address,
			 .code_bytes = bytes,
			 .pc_count = 2,
			 .frame_count = 3},
		.pcs = {{.offset = 8, .frame = 0, .depth = 1}, {.offset = 16, .frame = 1, .depth = 2}},
		.frames = {{.method = method, .bci = 3}, {.method = 900, .bci = 1}, {.method = method, .bci = 7}},
	};

	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_CODE_LOAD, &record, sizeof(record)), 0);
}

static void unload_code(struct fixture *f, uint64_t method, uint64_t address, uint64_t time_ns)
{
	struct duet_code_unload record = {.time_ns = time_ns, .method = method, .address = address};

	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_CODE_UNLOAD, &record, sizeof(record)), 0);
}

static uint64_t method_at(struct fixture *f, uint64_t pc, uint64_t time_ns)
{
	const struct jvm_code *code = jvm_code_at(f->jvm, pc, time_ns, 0);

	return code ? code->method : 0;
}

static void test_method_has_names_and_lines(void **state)
{
	struct fixture *f = *state;
	const struct jvm_method *method;

	assert_null(jvm_method(f->jvm, 1, at(0)));
	publish_method(f, 1, "Lcom/acme/Order$Line;", "total");
	method = jvm_method(f->jvm, 1, at(0));
	assert_string_equal(intern_text(&f->strings, method->class_name), "com.acme.Order$Line");
	assert_string_equal(intern_text(&f->strings, method->name), "total");
	assert_string_equal(intern_text(&f->strings, method->signature), "()V");
	assert_int_equal(jvm_method_line(method, 0), 10);
	assert_int_equal(jvm_method_line(method, 8), 11);
	assert_int_equal(jvm_method_line(method, 9), 20);
	assert_int_equal(jvm_method_line(method, -1), 0);
}

static void test_recycled_address_names_by_time(void **state)
{
	struct fixture *f = *state;

	load_code(f, 1, 0x1000, 0x100, 100);
	unload_code(f, 1, 0x1000, 200);
	load_code(f, 2, 0x1040, 0x100, 300);
	assert_int_equal(method_at(f, 0x1050, 150), 1);
	assert_int_equal(method_at(f, 0x1050, 350), 2);
	assert_int_equal(method_at(f, 0x10ff, 199), 1);
	assert_int_equal(method_at(f, 0x1140, 350), 0);
}

static void test_load_ends_what_lay_there(void **state)
{
	struct fixture *f = *state;

	load_code(f, 1, 0x1000, 0x100, 100); /* its unload event was lost */
	load_code(f, 2, 0x1080, 0x100, 300);
	assert_int_equal(method_at(f, 0x1090, 200), 1);
	assert_int_equal(method_at(f, 0x1090, 300), 2);
	unload_code(f, 1, 0x1080, 400); /* late, and of another method: the code that lives there now is not ended */
	assert_int_equal(method_at(f, 0x1090, 500), 2);
}

static void test_many_pieces_of_code(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 5000; i++) /* in an order other than that of the addresses */
		load_code(f, 1 + i, 0x100000 + (i * 7919 % 5000) * 0x100, 0x100, 100);
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(method_at(f, 0x100000 + (i * 7919 % 5000) * 0x100 + 0x80, 200), 1 + i);
	for (uint64_t i = 0; i < 5000; i += 2)
		unload_code(f, 1 + i, 0x100000 + (i * 7919 % 5000) * 0x100, 300);
	jvm_forget(f->jvm, 301);
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(method_at(f, 0x100000 + (i * 7919 % 5000) * 0x100 + 0x80, 200), i % 2 ? 1 + i : 0);
}

static void test_code_frames(void **state)
{
	struct fixture *f = *state;
	struct duet_java_frame frames[JVM_INLINING_DEPTH];
	const struct jvm_code *code;
	uint32_t flags;

	load_code(f, 1, 0x1000, 0x100, 100);
	code = jvm_code_at(f->jvm, 0x1000, 100, 0);
	assert_int_equal(jvm_code_frames(code, 0x100c, false, frames, &flags), 2); /* a pc belongs to the next entry */
	assert_int_equal(frames[0].method, 900);
	assert_int_equal(frames[1].bci, 7);
	/* a call without an entry of its own, as all those of stubs: it belongs to the next entry, too */
	assert_int_equal(jvm_code_frames(code, 0x100c, true, frames, &flags), 2);
	assert_int_equal(jvm_code_frames(code, 0x1008, true, frames, &flags), 1);
	assert_int_equal(jvm_code_frames(code, 0x1008, false, frames, &flags), 2);
	assert_int_equal(jvm_code_frames(code, 0x1020, false, frames, &flags), 0);
}

static void test_inlining_is_recognised(void **state)
{
	struct fixture *f = *state;
	const struct duet_java_frame inlined[] = {
		{.method = 900, .bci = 1}, {.method = 1, .bci = 7}, {.method = 5, .bci = 2}};
	const struct duet_java_frame plain[] = {{.method = 1, .bci = 3}, {.method = 5, .bci = 2}};
	const struct duet_java_frame other[] = {{.method = 900, .bci = 2}, {.method = 1, .bci = 7}};

	load_code(f, 1, 0x1000, 0x100, 100);
	assert_int_equal(jvm_match_compiled(f->jvm, inlined, 3), 2);
	assert_int_equal(jvm_match_compiled(f->jvm, plain, 2), 1);
	assert_int_equal(jvm_match_compiled(f->jvm, other, 2), 0);
	unload_code(f, 1, 0x1000, 200);
	assert_int_equal(jvm_match_compiled(f->jvm, inlined, 3), 0);
}

/* A forged time of the end of code that lives. */
static void test_code_ends_once(void **state)
{
	struct fixture *f = *state;
	const struct duet_java_frame plain[] = {{.method = 1, .bci = 3}, {.method = 5, .bci = 2}};

	load_code(f, 1, 0x1000, 0x100, 100);
	for (int i = 0; i < 3; i++) {
		unload_code(f, 1, 0x1000, UINT64_MAX);
		assert_int_equal(jvm_match_compiled(f->jvm, plain, 2), 0);
	}
	load_code(f, 1, 0x1000, 0x100, 200);
	assert_int_equal(jvm_match_compiled(f->jvm, plain, 2), 1);
}

static void test_heaps_and_stubs(void **state)
{
	struct fixture *f = *state;
	struct duet_code_heap heap = {.low = 0x1000, .high = 0x2000};
	struct {
		struct duet_stub stub;
		char name[16];
	} stub = {.stub = {.time_ns = 1, .address = 0x1000, .code_bytes = 64, .name_len = 11}, .name = "Interpreter"};

	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_CODE_HEAP, &heap, sizeof(heap)), 0);
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_STUB, &stub, sizeof(stub)), 0);
	assert_true(jvm_owns_pc(f->jvm, 0x1000));
	assert_false(jvm_owns_pc(f->jvm, 0x2000));
	assert_true(jvm_is_interpreter(f->jvm, jvm_code_at(f->jvm, 0x1010, 5, 0)));
}

static void test_thread_is_renamed(void **state)
{
	struct fixture *f = *state;
	struct {
		struct duet_thread thread;
		char name[8];
	} record = {.thread = {.tid = 42, .name_len = 4, .java_id = 7}, .name = "main"};

	assert_int_equal(jvm_thread_name(f->jvm, 42, 1, ""), 0);
	assert_int_equal(jvm_thread_java_id(f->jvm, 42), 0);
	jvm_apply(f->jvm, DUET_AGENT_THREAD, &record, sizeof(record));
	assert_int_equal(jvm_thread_java_id(f->jvm, 42), 7);
	assert_string_equal(intern_text(&f->strings, jvm_thread_name(f->jvm, 42, 1, "")), "main");
	memcpy(record.name, "boss", 4);
	jvm_apply(f->jvm, DUET_AGENT_THREAD, &record, sizeof(record));
	assert_string_equal(intern_text(&f->strings, jvm_thread_name(f->jvm, 42, 1, "")), "boss");
}

static void test_doubted_name_must_agree(void **state)
{
	struct fixture *f = *state;
	struct {
		struct duet_thread thread;
		char name[24];
	} record = {.thread = {.tid = 42, .name_len = 20, .doubted = 1}, .name = "http-nio-8080-exec-7"};

	jvm_apply(f->jvm, DUET_AGENT_THREAD, &record, sizeof(record));
	assert_int_not_equal(jvm_thread_name(f->jvm, 42, 1, "http-nio-8080-e"), 0);
	assert_int_not_equal(jvm_thread_name(f->jvm, 42, 1, "http-ni..exec-7"), 0);
	assert_int_equal(jvm_thread_name(f->jvm, 42, 1, "http-nio-8081-e"), 0);
	assert_int_equal(jvm_thread_name(f->jvm, 42, 1, ""), 0);
	record.thread.name_len = 4;
	jvm_apply(f->jvm, DUET_AGENT_THREAD, &record, sizeof(record));
	assert_int_not_equal(jvm_thread_name(f->jvm, 42, 1, "http"), 0);
	assert_int_equal(jvm_thread_name(f->jvm, 42, 1, "http-nio"), 0);
	record.thread.doubted = 0;
	record.thread.tid = 43;
	jvm_apply(f->jvm, DUET_AGENT_THREAD, &record, sizeof(record));
	assert_int_not_equal(jvm_thread_name(f->jvm, 43, 1, "main"), 0);
}

static void rename_thread(struct fixture *f, const char *name)
{
	struct {
		struct duet_thread thread;
		char name[32];
	} record = {.thread = {.tid = 42, .name_len = (uint16_t)strlen(name)}};

	memcpy(record.name, name, strlen(name));
	jvm_apply(f->jvm, DUET_AGENT_THREAD, &record, sizeof(record));
}

static void expect_name(struct fixture *f, const char *comm, const char *name)
{
	uint32_t found = jvm_thread_name(f->jvm, 42, 1, comm);

	assert_string_equal(found ? intern_text(&f->strings, found) : "", name);
}

/* Its Java name is read once a second; the kernel's is of the sample. */
static void test_thread_renames_itself(void **state)
{
	struct fixture *f = *state;

	rename_thread(f, "pool-1");
	expect_name(f, "java", "pool-1"); /* as when it was made; nothing shows that the kernel's name is right */
	expect_name(f, "pool-1", "pool-1");
	expect_name(f, "request-1", ""); /* the kernel's */
	rename_thread(f, "request-2 of somebody");
	expect_name(f, "request-2 of so", "request-2 of somebody");
	expect_name(f, "request..mebody", "request-2 of somebody");
	expect_name(f, "pool-1", "pool-1");
	expect_name(f, "", "request-2 of somebody");
	for (char name[] = "request-a"; name[8] < 'z'; name[8]++)
		rename_thread(f, name);
	expect_name(f, "request-y", "request-y");
	expect_name(f, "request-x", "request-x");
	expect_name(f, "request-a", ""); /* long ago */
}

/* No name is met twice. */
static void test_thread_has_ever_new_names(void **state)
{
	struct fixture *f = *state;

	rename_thread(f, "request-1");
	expect_name(f, "request-2", "request-1");
	expect_name(f, "request-3", "request-1"); /* another than Java may have named it */
	rename_thread(f, "request-4");
	expect_name(f, "request-5", "");
}

/* The kernel keeps the old name. */
static void test_thread_is_renamed_by_others(void **state)
{
	struct fixture *f = *state;

	rename_thread(f, "pool-1");
	expect_name(f, "pool-1", "pool-1");
	rename_thread(f, "boss");
	expect_name(f, "pool-1", "boss");
	rename_thread(f, "main");
	expect_name(f, "pool-1", "main");
}

/* The kernel gives its tid to another thread, which may have no Java name. */
static void test_thread_has_ended(void **state)
{
	struct fixture *f = *state;
	struct {
		struct duet_thread thread;
		char name[8];
	} record = {.thread = {.tid = 42, .name_len = 4}, .name = "main"};
	struct duet_thread end = {.tid = 42, .time_ns = 5 * NS_PER_SEC, .ended = 1};
	const uint64_t late_ns = 6 * NS_PER_SEC;

	jvm_apply(f->jvm, DUET_AGENT_THREAD, &record, sizeof(record));
	jvm_apply(f->jvm, DUET_AGENT_THREAD, &end, sizeof(end));
	assert_string_equal(intern_text(&f->strings, jvm_thread_name(f->jvm, 42, end.time_ns, "")), "main");
	assert_int_equal(jvm_thread_name(f->jvm, 42, late_ns, ""), 0);
	jvm_apply(f->jvm, DUET_AGENT_THREAD, &record, sizeof(record));
	assert_string_equal(intern_text(&f->strings, jvm_thread_name(f->jvm, 42, late_ns, "")), "main");
	jvm_apply(f->jvm, DUET_AGENT_THREAD, &end, sizeof(end));
	jvm_forget(f->jvm, end.time_ns);
	assert_string_equal(intern_text(&f->strings, jvm_thread_name(f->jvm, 42, 1, "")), "main");
	jvm_forget(f->jvm, late_ns);
	assert_int_equal(jvm_thread_name(f->jvm, 42, 1, ""), 0);
}

static void test_strings_move(void **state)
{
	struct fixture *f = *state;
	struct {
		struct duet_stub stub;
		char name[16];
	} stub = {.stub = {.address = 0x1000, .code_bytes = 0x100, .name_len = 11}, .name = "Interpreter"};
	struct {
		struct duet_thread thread;
		char name[8];
	} thread = {.thread = {.tid = 42, .name_len = 4}, .name = "main"};
	struct intern strings, old;
	struct intern_move move;

	intern_str(&f->strings, "of nobody");
	publish_method(f, 7, "Lcom/acme/Main;", "run");
	jvm_apply(f->jvm, DUET_AGENT_STUB, &stub, sizeof(stub));
	jvm_apply(f->jvm, DUET_AGENT_THREAD, &thread, sizeof(thread));
	assert_int_equal(intern_init(&strings), 0);
	old = f->strings;
	assert_int_equal(intern_move_init(&move, &old, &strings), 0);
	jvm_move_strings(f->jvm, &move);
	f->strings = strings;
	intern_move_release(&move);
	intern_release(&old);
	assert_string_equal(intern_text(&f->strings, jvm_method(f->jvm, 7, at(0))->class_name), "com.acme.Main");
	assert_string_equal(intern_text(&f->strings, jvm_method(f->jvm, 7, at(0))->signature), "()V");
	assert_string_equal(intern_text(&f->strings, jvm_thread_name(f->jvm, 42, 1, "")), "main");
	assert_true(jvm_is_interpreter(f->jvm, jvm_code_at(f->jvm, 0x1010, 5, 0)));
	assert_int_equal(f->strings.strings.len, 6); /* and "" */
}

/* ---- how much memory it takes ---- */

#define MANY_PCS 60

/*
 * A compilation of C2: ten methods are inlined into one, and each pc has a stack of its own. Returns the record's
 * bytes.
 */
static size_t load_large_code(struct fixture *f, uint64_t method)
{
	struct {
		struct duet_code_load load;
		struct duet_code_pc pcs[MANY_PCS];
		struct duet_java_frame frames[2 * MANY_PCS];
	} record = {
		.load = {.method = method,
			 .address = method << 12,
			 .code_bytes = 0x1000,
			 .pc_count = MANY_PCS,
			 .frame_count = 2 * MANY_PCS},
	};

	for (uint32_t i = 0; i < MANY_PCS; i++) {
		record.pcs[i] = (struct duet_code_pc){.offset = 8 * i, .frame = 2 * i, .depth = 2};
		record.frames[2 * i] = (struct duet_java_frame){.method = 1000 + i / 6, .bci = (int32_t)i};
		record.frames[2 * i + 1] = (struct duet_java_frame){.method = method, .bci = (int32_t)i / 6};
	}
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_CODE_LOAD, &record, sizeof(record)), 0);
	return sizeof(record);
}

static void test_code_takes_little_memory(void **state)
{
	struct fixture *f = *state;
	const struct payer payer = {0};
	size_t sent = 0;

	jvm_set_payer(f->jvm, &payer);
	for (uint64_t i = 1; i <= 1000; i++)
		sent += load_large_code(f, i);
	assert_true(room_held(ROOM_NAMES, &payer) < sent / 2);
}

/* ---- dropped entries ---- */

static void expect_code(struct fixture *f, uint64_t pc, bool is_there)
{
	assert_int_equal(jvm_code_at(f->jvm, pc, UINT64_MAX - 1, 0) != NULL, is_there);
}

/*
 * If a budget closes the tables, entries that no sample met are dropped, and entries that are requested again are
 * accepted.
 */
static void test_full_tables_forget_what_is_unused(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 1; i <= 40000; i++)
		publish_method(f, i, "LA;", "of_long_ago");
	load_code(f, 1, 0x1000, 0x100, 100);
	load_code(f, 2, 0x2000, 0x100, 100);
	jvm_set_full(f->jvm, true);
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 1; i <= 40000; i++) { /* all new: room is made more than once */
			publish_method(f, 1000000 + 40000 * (uint64_t)round + i, "LB;", "new");
			jvm_code_at(f->jvm, 0x1010, 200, 0);
		}
		publish_method(f, 7, "LA;", "of_now"); /* a dropped method is requested, and its record arrives */
		load_code(f, 1, 0x1000, 0x100, 100);
		assert_non_null(jvm_method(f->jvm, 7, at(0)));
		expect_code(f, 0x1010, true);
	}
	assert_null(jvm_method(f->jvm, 9, at(0)));
	expect_code(f, 0x2010, false);
}

/* Adds methods until the JVM refuses one or `count` were added. Returns how many were added. */
static uint64_t fill(struct jvm *jvm, uint64_t count)
{
	struct {
		struct duet_method method;
		char text[8];
	} record = {.method = {.class_len = 3, .name_len = 1, .signature_len = 3}, .text = "LA;a()V"};
	uint64_t taken = 0;

	for (record.method.method = 1; record.method.method <= count; record.method.method++)
		taken += !jvm_apply(jvm, DUET_AGENT_METHOD, &record, sizeof(record));
	return taken;
}

/* One room for all JVMs: those of a hostile user together get his share, and one of another user gets what it needs. */
static void test_jvms_share_a_room(void **state)
{
	enum { JVMS = 16, MANY = 200000, FEW = 5000, SIZE = 32 << 20 };
	static const struct payer attacker = {1, 1}, honest = {2, 2};
	struct fixture *f = *state;
	struct jvm *hostile[JVMS];
	size_t sum = 0;

	room_open(true);
	room_set_size(ROOM_NAMES, SIZE);
	for (int i = 0; i < JVMS; i++) {
		hostile[i] = jvm_new(&f->strings);
		jvm_set_payer(hostile[i], &attacker);
		fill(hostile[i], MANY);
		for (int k = 0; k <= i; k++)
			jvm_set_full(hostile[k], false); /* as budget_step() does */
		assert_in_range(room_held(ROOM_NAMES, &attacker), 1, SIZE / 4 * 3);
		sum += MANY * sizeof(struct jvm_method);
	}
	assert_true(sum > 3 * SIZE);
	jvm_set_payer(f->jvm, &honest);
	assert_int_equal(fill(f->jvm, FEW), FEW);
	jvm_set_full(f->jvm, false);
	for (uint64_t i = 1; i <= FEW; i++)
		assert_non_null(jvm_method(f->jvm, i, at(0)));
	for (int i = 0; i < JVMS; i++)
		jvm_free(hostile[i]);
	jvm_free(f->jvm);
	assert_int_equal(room_held(ROOM_NAMES, &attacker) + room_held(ROOM_JVMS, &honest), 0);
	f->jvm = jvm_new(&f->strings);
	room_open(false);
}

static void test_gone_is_remembered_for_a_moment(void **state)
{
	struct fixture *f = *state;
	struct duet_gone gone = {.want = {.key = 0x1000, .id = 7, .kind = DUET_WANT_CODE}};
	struct duet_want other = gone.want;

	other.id = 8;
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_GONE, &gone, sizeof(gone)), 0);
	assert_true(jvm_is_gone(f->jvm, &gone.want, at(0)));
	assert_false(jvm_is_gone(f->jvm, &other, at(0)));
	jvm_forget(f->jvm, 0);
	assert_false(jvm_is_gone(f->jvm, &gone.want, at(0)));
}

/* A sample is cached when it is younger than the last change. */
static void test_no_change_is_in_the_future(void **state)
{
	const struct duet_unloaded unloaded = {.since_ns = UINT64_MAX};
	struct fixture *f = *state;

	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_UNLOADED, &unloaded, sizeof(unloaded)), 0);
	assert_true(jvm_changed_ns(f->jvm) <= clock_monotonic_ns());
}

static const char *bare_name(const struct fixture *f, uint64_t time_ns)
{
	const struct jvm_method *method = jvm_method(f->jvm, 0x7000 | DUET_METHOD_BARE, at(time_ns));

	return method ? intern_text(&f->strings, method->name) : "";
}

/* A reader from outside reports when classes were unloaded, so names are valid until then. */
static void test_bare_methods_have_times(void **state)
{
	const struct duet_want want = {.key = 0x7000 | DUET_METHOD_BARE, .kind = DUET_WANT_METHOD};
	const struct duet_unloaded first = {.since_ns = 100}, second = {.until_ns = 200, .since_ns = 210};
	struct fixture *f = *state;

	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_UNLOADED, &first, sizeof(first)), 0);
	publish_method(f, want.key, "LA;", "before");
	jvm_forget(f->jvm, 50);
	assert_string_equal(bare_name(f, 150), "before");
	assert_string_equal(bare_name(f, 90), "");
	assert_true(jvm_is_gone(f->jvm, &want, at(90))); /* it is not known which method was there */
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_UNLOADED, &second, sizeof(second)), 0);
	assert_string_equal(bare_name(f, 220), "");
	assert_false(jvm_is_gone(f->jvm, &want, at(220)));
	publish_method(f, want.key, "LB;", "after");
	assert_string_equal(bare_name(f, 220), "after");
	assert_string_equal(bare_name(f, 150), "before");
	assert_string_equal(bare_name(f, 205), "");
	jvm_forget(f->jvm, 300);
	assert_string_equal(bare_name(f, 150), "");
	assert_string_equal(bare_name(f, 220), "after");
}

/* The number of unloaded classes in a sample is exact; its time is not. */
static void test_bare_methods_have_numbers(void **state)
{
	const struct duet_want want = {.key = 0x7000 | DUET_METHOD_BARE, .kind = DUET_WANT_METHOD};
	const struct duet_unloaded first = {.since_ns = 100, .unloads = 8};
	const struct duet_unloaded second = {.until_ns = 200, .since_ns = 210, .unloads = 12};
	const struct jvm_moment before = {205, 8}, amid = {205, 9}, now = {205, 12}, later = {150, 13};
	struct fixture *f = *state;

	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_UNLOADED, &first, sizeof(first)), 0);
	publish_method(f, want.key, "LA;", "before");
	/* the reader does not know of the unloading yet, so it is asked */
	assert_null(jvm_method(f->jvm, want.key, now));
	assert_false(jvm_is_gone(f->jvm, &want, now));
	assert_false(jvm_is_current(f->jvm, now));
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_UNLOADED, &second, sizeof(second)), 0);
	publish_method(f, want.key, "LB;", "after");
	assert_string_equal(intern_text(&f->strings, jvm_method(f->jvm, want.key, before)->name), "before");
	assert_string_equal(intern_text(&f->strings, jvm_method(f->jvm, want.key, now)->name), "after");
	assert_null(jvm_method(f->jvm, want.key, amid));
	assert_true(jvm_is_gone(f->jvm, &want, amid));
	assert_null(jvm_method(f->jvm, want.key, later));
	assert_false(jvm_is_current(f->jvm, now)); /* by its time */
	assert_true(jvm_is_current(f->jvm, (struct jvm_moment){220, 12}));
}

/* An address may be another method's later; an id may not. */
static void test_bare_methods_are_asked_for_again(void **state)
{
	struct fixture *f = *state;

	publish_method(f, 0x7000, "LA;", "a");
	publish_method(f, 0x7000 | DUET_METHOD_BARE, "LB;", "b");
	assert_string_equal(intern_text(&f->strings, jvm_method(f->jvm, 0x7000, at(0))->name), "a");
	assert_string_equal(intern_text(&f->strings, jvm_method(f->jvm, 0x7000 | DUET_METHOD_BARE, at(0))->name), "b");
	jvm_forget(f->jvm, 0);
	assert_non_null(jvm_method(f->jvm, 0x7000, at(0)));
	assert_null(jvm_method(f->jvm, 0x7000 | DUET_METHOD_BARE, at(0)));
}

/* Otherwise each answer would invalidate all cached stacks. */
static void test_answers_change_no_stack(void **state)
{
	struct fixture *f = *state;
	uint64_t before = jvm_changed_ns(f->jvm);

	publish_method(f, 1, "LA;", "a");
	publish_method(f, 1, "LA;", "a");
	load_code(f, 1, 0x1000, 0x100, 100);
	load_code(f, 1, 0x1000, 0x100, 120); /* two samples had asked */
	assert_int_equal(jvm_changed_ns(f->jvm), before);
	load_code(f, 2, 0x1000, 0x100, 130);
	assert_true(jvm_changed_ns(f->jvm) > before);
}

/* ---- records of a hostile agent ---- */

static void test_tables_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct {
		struct duet_thread thread;
		char name[256];
	} record = {.thread = {.name_len = 250}};
	size_t taken = 0;

	for (uint32_t i = 0; i < 1000000; i++) {
		record.thread.tid = i;
		snprintf(record.name, sizeof(record.name), "%0250u", i);
		taken += jvm_apply(f->jvm, DUET_AGENT_THREAD, &record, sizeof(record)) == 0;
	}
	assert_in_range(taken, 100000, 500000);
	assert_in_range(intern_memory(&f->strings), JVM_MAX_BYTES / 2, JVM_MAX_BYTES + (8 << 20));
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_THREAD, &record, sizeof(record)), -ENOSPC);
}

static void test_code_heaps_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct duet_code_heap heap = {.low = 0x1000, .high = 0x2000};

	for (int i = 0; i < JVM_MAX_HEAPS; i++)
		assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_CODE_HEAP, &heap, sizeof(heap)), 0);
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_CODE_HEAP, &heap, sizeof(heap)), -ENOSPC);
}

/* Each piece of code overlaps all others, at ever new addresses, and claims to end in the far future. */
static void test_overlapping_code_stays_cheap(void **state)
{
	struct fixture *f = *state;
	size_t taken = 0;

	for (uint64_t i = 0; i < 400000; i++) {
		uint64_t address = 0x10000 + i * 7919 % 400000;
		struct duet_stub stub = {.time_ns = UINT64_MAX - 1, .address = address, .code_bytes = UINT32_MAX};

		taken += jvm_apply(f->jvm, DUET_AGENT_STUB, &stub, sizeof(stub)) == 0;
		jvm_code_at(f->jvm, stub.address, 5, 0);
	}
	assert_in_range(taken, 100000, 140000);
	jvm_forget(f->jvm, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_method_has_names_and_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_recycled_address_names_by_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_load_ends_what_lay_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_pieces_of_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_code_frames, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_code_takes_little_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_inlining_is_recognised, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_code_ends_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_heaps_and_stubs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_thread_is_renamed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_doubted_name_must_agree, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_thread_renames_itself, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_thread_has_ever_new_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_thread_is_renamed_by_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_thread_has_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_strings_move, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_tables_forget_what_is_unused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_jvms_share_a_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gone_is_remembered_for_a_moment, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_change_is_in_the_future, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bare_methods_have_times, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bare_methods_have_numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bare_methods_are_asked_for_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_answers_change_no_stack, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tables_are_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_code_heaps_are_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_overlapping_code_stays_cheap, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
