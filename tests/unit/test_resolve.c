/* SPDX-License-Identifier: MIT */
/* Resolved stacks are cached, but never longer than they are valid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "base/counters.h"
#include "join/resolve.h"
#include "proc/room.h"

#define PC 0x7000100ull
#define OLD 1
#define NEW 2

struct fixture {
	struct profile profile;
	struct symbols *symbols;
	struct resolver resolver;
	struct process process;
	struct jvm *jvm;
};

static const struct options options;

static int setup(void **state)
{
	const struct duet_code_heap heap = {0x7000000, 0x8000000};
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(loader_counters, 0, sizeof(loader_counters));
	assert_int_equal(profile_init(&f->profile), 0);
	f->symbols = symbols_new();
	f->jvm = jvm_new(&f->profile.strings);
	f->process = (struct process){.pid = 10000000, .exited = true};
	assert_true(f->symbols && f->jvm);
	resolver_init(&f->resolver, &options, &f->profile, f->symbols);
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_CODE_HEAP, &heap, sizeof(heap)), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	resolver_release(&f->resolver);
	jvm_free(f->jvm);
	symbols_free(f->symbols);
	profile_release(&f->profile);
	maps_release(&f->process.maps);
	free(f);
	return 0;
}

static void publish_checked(struct fixture *f, uint64_t id, uint32_t check, const char *name)
{
	struct {
		struct duet_method head;
		char text[16];
	} record = {.head = {.method = id, .check = check, .class_len = 3, .name_len = (uint16_t)strlen(name)}};

	memcpy(record.text, "LA;", 3);
	memcpy(record.text + 3, name, strlen(name));
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_METHOD, &record, sizeof(record)), 0);
}

static void publish_method(struct fixture *f, uint64_t id, const char *name)
{
	publish_checked(f, id, 0, name);
}

static void load_code(struct fixture *f, uint64_t method, uint64_t time_ns)
{
	const struct duet_code_load load = {.time_ns = time_ns, .method = method, .address = PC - 16, .code_bytes = 64};

	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_CODE_LOAD, &load, sizeof(load)), 0);
}

/* A sample with one frame; the name of its leaf, or NULL while it is missing. */
static const char *leaf_with_id(struct fixture *f, uint64_t pc, uint32_t id, uint64_t time_ns, struct jvm *jvm)
{
	struct {
		struct duet_sample head;
		uint64_t stack[2];
	} sample = {.head = {.head = {.size = sizeof(sample), .time_ns = time_ns}, .user_depth = 1}, .stack = {pc, id}};
	const struct decision decision = {
		.process = &f->process, .jvm = jvm, .sample = &sample.head, .outcome = JOIN_STANDALONE};
	struct resolved resolved;
	int64_t node;

	sample.head.id_depth = id != 0;
	resolved = resolve_stack(&f->resolver, &decision);
	if (resolved.want_count)
		return NULL;
	node = resolve_node(&f->resolver, &decision, &resolved);
	assert_true(node > 0);
	return intern_text(&f->profile.strings, f->profile.frames.items[f->profile.nodes.items[node].frame].name);
}

static const char *leaf_of(struct fixture *f, uint64_t pc, uint64_t time_ns, struct jvm *jvm)
{
	return leaf_with_id(f, pc, 0, time_ns, jvm);
}

/* The class of the allocated object is the leaf of its stack; the size makes no difference. */
static uint32_t node_of_object(struct fixture *f, const char *signature, uint64_t bytes)
{
	struct {
		struct duet_sample head;
		uint64_t stack[1];
		struct duet_attribute size_head;
		uint64_t size;
		struct duet_attribute class_head;
		char name[8];
	} sample = {
		.head = {.head = {.size = sizeof(sample), .time_ns = 200}, .user_depth = 1, .attribute_bytes = 32},
		.stack = {PC},
		.size_head = {DUET_ATTRIBUTE_SIZE, sizeof(bytes), 0},
		.size = bytes,
		.class_head = {DUET_ATTRIBUTE_CLASS, (uint16_t)strlen(signature), 0},
	};
	const struct decision decision = {
		.process = &f->process, .jvm = f->jvm, .sample = &sample.head, .outcome = JOIN_STANDALONE};
	struct resolved resolved;
	int64_t node;

	memcpy(sample.name, signature, strlen(signature));
	resolved = resolve_stack(&f->resolver, &decision);
	assert_int_equal(resolved.want_count, 0);
	node = resolve_node(&f->resolver, &decision, &resolved);
	assert_true(node > 0);
	return (uint32_t)node;
}

static const struct frame *frame_at(const struct fixture *f, uint32_t node)
{
	return &f->profile.frames.items[f->profile.nodes.items[node].frame];
}

static void the_class_is_the_leaf(void **state)
{
	struct fixture *f = *state;
	uint32_t array, object;

	publish_method(f, OLD, "old");
	load_code(f, OLD, 100);
	array = node_of_object(f, "[[Lb/C;", 16);
	object = node_of_object(f, "Lb/C;", 16);
	assert_int_equal(frame_at(f, array)->kind, FRAME_CLASS);
	assert_string_equal(intern_text(&f->profile.strings, frame_at(f, array)->name), "b.C[][]");
	assert_string_equal(intern_text(&f->profile.strings, frame_at(f, object)->name), "b.C");
	assert_int_equal(f->profile.nodes.items[array].parent, f->profile.nodes.items[object].parent);
	assert_int_equal(frame_at(f, f->profile.nodes.items[array].parent)->kind, FRAME_COMPILED);
	assert_int_equal(node_of_object(f, "[[Lb/C;", 32), array);
	assert_string_equal(leaf_of(f, PC, 300, f->jvm), "old");
}

/* A sample that the agent took of nobody's stack has its state alone. */
static void the_state_is_the_leaf(void **state)
{
	struct fixture *f = *state;
	struct {
		struct duet_sample head;
		struct duet_attribute state_head;
		char text[8];
	} sample = {
		.head = {.head = {.size = sizeof(sample), .time_ns = 200},
			 .flags = DUET_SAMPLE_CALLED | DUET_SAMPLE_USER_COMPLETE,
			 .attribute_bytes = 16},
		.state_head = {DUET_ATTRIBUTE_STATE, 5, 0},
		.text = "at_it",
	};
	const struct decision decision = {
		.process = &f->process, .jvm = f->jvm, .sample = &sample.head, .outcome = JOIN_WALKED};
	struct resolved resolved;
	uint32_t node;

	resolved = resolve_stack(&f->resolver, &decision);
	assert_int_equal(resolved.want_count, 0);
	node = (uint32_t)resolve_node(&f->resolver, &decision, &resolved);
	assert_int_equal(frame_at(f, node)->kind, FRAME_STATE);
	assert_string_equal(intern_text(&f->profile.strings, frame_at(f, node)->name), "[at_it]");
	assert_int_equal(f->profile.nodes.items[node].parent, 0);
}

static void equal_stacks_are_one_node(void **state)
{
	struct fixture *f = *state;

	publish_method(f, OLD, "old");
	load_code(f, OLD, 100);
	assert_string_equal(leaf_of(f, PC, 200, f->jvm), "old");
	assert_int_equal(f->resolver.stacks.len, 1);
	assert_string_equal(leaf_of(f, PC, 300, f->jvm), "old");
	assert_int_equal(f->resolver.stacks.len, 1);
	assert_int_equal(f->profile.nodes.len, 2);
}

static void recycled_code_has_its_own_name(void **state)
{
	struct fixture *f = *state;

	publish_method(f, OLD, "old");
	publish_method(f, NEW, "new");
	load_code(f, OLD, 100);
	assert_string_equal(leaf_of(f, PC, 200, f->jvm), "old");
	load_code(f, NEW, 300);
	assert_string_equal(leaf_of(f, PC, 400, f->jvm), "new");
	assert_string_equal(leaf_of(f, PC, 250, f->jvm), "old");
	assert_string_equal(leaf_of(f, PC, 400, f->jvm), "new");
}

static void a_missing_name_is_waited_for(void **state)
{
	struct fixture *f = *state;

	load_code(f, OLD, 100);
	assert_null(leaf_of(f, PC, 200, f->jvm));
	publish_method(f, OLD, "old");
	assert_string_equal(leaf_of(f, PC, 200, f->jvm), "old");
}

static void what_is_missing_is_wanted(void **state)
{
	struct fixture *f = *state;
	const struct duet_gone class_gone = {.want = {.key = OLD, .kind = DUET_WANT_METHOD}};
	struct duet_gone code_gone = {.want = {.kind = DUET_WANT_CODE}};

	assert_null(leaf_of(f, PC, 200, f->jvm));
	assert_int_equal(f->resolver.wants.len, 1);
	assert_int_equal(f->resolver.wants.items[0].kind, DUET_WANT_CODE);
	assert_int_equal(f->resolver.wants.items[0].key, PC);
	code_gone.want = f->resolver.wants.items[0];
	load_code(f, OLD, 100);
	assert_null(leaf_of(f, PC, 200, f->jvm));
	assert_int_equal(f->resolver.wants.len, 1);
	assert_memory_equal(&f->resolver.wants.items[0], &class_gone.want, sizeof(class_gone.want));
	jvm_apply(f->jvm, DUET_AGENT_GONE, &class_gone, sizeof(class_gone));
	assert_string_equal(leaf_of(f, PC, 200, f->jvm), "[unloaded_class]");
	assert_int_equal(loader_counters[DUET_LOADER_NAME_MISSING], 0);
	code_gone.want.key += 0x1000;
	jvm_apply(f->jvm, DUET_AGENT_GONE, &code_gone, sizeof(code_gone));
	assert_string_equal(leaf_of(f, PC + 0x1000, 200, f->jvm), "[unloaded_code]");
	assert_int_equal(f->resolver.stacks.len, 0);
}

static void name_without_answer(struct fixture *f)
{
	struct {
		struct duet_sample head;
		uint64_t pc;
	} sample = {.head = {.head = {.size = sizeof(sample), .time_ns = 200}, .user_depth = 1}, .pc = PC};
	const struct decision decision = {.process = &f->process, .jvm = f->jvm, .sample = &sample.head};
	struct resolved resolved;

	load_code(f, OLD, 100);
	resolved = resolve_stack(&f->resolver, &decision);
	assert_true(resolved.want_count > 0);
	assert_true(resolve_node(&f->resolver, &decision, &resolved) > 0);
}

/* Whether the JVM has ended, or is late. */
static void missing_names_have_a_cause(void **state)
{
	struct fixture *f = *state;
	uint64_t missing = loader_counters[DUET_LOADER_NAME_MISSING], late = loader_counters[DUET_LOADER_NAME_LATE];

	f->process.pid = getpid();
	assert_int_equal(process_read_start_ticks(getpid(), &f->process.start_ticks), 0);
	name_without_answer(f);
	assert_int_equal(loader_counters[DUET_LOADER_NAME_MISSING], missing);
	assert_int_equal(loader_counters[DUET_LOADER_NAME_LATE], late + 1);
	f->process.start_ticks++; /* another process has its pid */
	name_without_answer(f);
	assert_int_equal(loader_counters[DUET_LOADER_NAME_MISSING], missing + 1);
	assert_int_equal(loader_counters[DUET_LOADER_NAME_LATE], late + 1);
}

static void a_redefined_method_is_asked_for_again(void **state)
{
	struct fixture *f = *state;

	publish_method(f, OLD, "old");
	load_code(f, OLD, 100);
	assert_string_equal(leaf_of(f, PC, 200, f->jvm), "old");
	publish_method(f, OLD, "renamed");
	assert_string_equal(leaf_of(f, PC, 200, f->jvm), "renamed");
}

/* Two methods at one address may have the same key; their checks tell them apart. */
static void a_method_with_the_key_of_another(void **state)
{
	const uint32_t old = DUET_ID_INTERPRETED | 0x1001u << DUET_ID_CHECK_SHIFT;
	const uint32_t new = old + (1u << DUET_ID_CHECK_SHIFT);
	const uint64_t key = DUET_METHOD_BARE | 0x7f0000001000;
	struct fixture *f = *state;

	publish_checked(f, key, 0x1001, "old");
	assert_string_equal(leaf_with_id(f, key, old, 200, f->jvm), "old");
	assert_null(leaf_with_id(f, key, new, 300, f->jvm));
	assert_int_equal(f->resolver.wants.items[0].key, key);
	assert_int_equal(f->resolver.wants.items[0].id, 0x1002);
	publish_checked(f, key, 0x1002, "new");
	assert_string_equal(leaf_with_id(f, key, new, 300, f->jvm), "new");
	assert_null(leaf_with_id(f, key, old, 250, f->jvm));
	assert_string_equal(leaf_with_id(f, key, new, 300, f->jvm), "new");
}

static void a_guess_is_not_remembered(void **state)
{
	static const char text[] = "400000-500000 r-xp 00000000 00:00 0 \n";
	struct fixture *f = *state;

	assert_string_equal(leaf_of(f, 0x400010, 1, NULL), "[unmapped]+0x400010");
	assert_int_equal(f->resolver.stacks.len, 0);
	assert_int_equal(maps_parse(&f->process.maps, text, strlen(text)), 0);
	assert_string_equal(leaf_of(f, 0x400010, 2, NULL), "[anon]+0x10");
	assert_int_equal(f->resolver.stacks.len, 0);
}

static void what_is_remembered_is_forgotten_in_time(void **state)
{
	struct fixture *f = *state;

	publish_method(f, OLD, "old");
	load_code(f, OLD, 100);
	leaf_of(f, PC, 200, f->jvm);
	leaf_of(f, PC + 1, 200, f->jvm);
	assert_int_equal(f->resolver.stacks.len, 2);
	leaf_of(f, PC, 60000000000, f->jvm);
	assert_int_equal(f->resolver.stacks.len, 1);
}

/* Also after all caches were dropped: a stack that the profile has costs nothing. */
static void a_full_profile_still_tells_what_it_has(void **state)
{
	struct fixture *f = *state;
	size_t nodes;

	publish_method(f, OLD, "old");
	publish_method(f, NEW, "new");
	load_code(f, OLD, 100);
	assert_string_equal(leaf_of(f, PC, 200, f->jvm), "old");
	f->profile.max_bytes = 0;
	resolver_forget(&f->resolver);
	assert_string_equal(leaf_of(f, PC, 300, f->jvm), "old");
	load_code(f, NEW, 400);
	nodes = f->profile.nodes.len;
	assert_string_equal(leaf_of(f, PC, 500, f->jvm), "[too_many_stacks]");
	assert_string_equal(leaf_of(f, PC, 500, f->jvm), "[too_many_stacks]");
	assert_int_equal(f->profile.nodes.len, nodes + 1);
	assert_int_equal(loader_counters[DUET_LOADER_MEMORY_FULL], 2);
	assert_int_equal(distinct_count(&f->resolver.refused), 1);
	f->profile.max_bytes = SIZE_MAX;
	assert_string_equal(leaf_of(f, PC, 600, f->jvm), "new");
	assert_int_equal(f->resolver.kept, 3); /* the mark is one */
}

static void a_full_profile_takes_no_strings(void **state)
{
	struct fixture *f = *state;

	f->profile.max_bytes = 0;
	assert_string_equal(leaf_of(f, 0x400010, 1, NULL), "[too_many_stacks]");
	assert_int_equal(intern_known(&f->profile.strings, "[unmapped]+0x400010"), 0);
}

/* A stack that is spliced a second time, because another one was in between, is lost once. */
static void a_refused_stack_is_counted_once(void **state)
{
	struct fixture *f = *state;
	const struct duet_sample sample = {.head = {.size = sizeof(sample), .time_ns = 200}};
	const struct decision decision = {.process = &f->process, .sample = &sample};
	struct resolved first, second;

	*resolver_rows(&f->process) += 1u << 20;
	first = resolve_stack(&f->resolver, &decision);
	second = resolve_stack(&f->resolver, &decision);
	assert_true(resolve_node(&f->resolver, &decision, &first) > 0);
	assert_int_equal(loader_counters[DUET_LOADER_STACKS_FULL], 1);
	assert_int_equal(resolve_node(&f->resolver, &decision, &second), first.node);
}

#define NATIVE 0x400000ull

/* Returns the name of the leaf of a native stack of two frames. */
static const char *leaf_at(struct fixture *f, struct process *process, uint64_t number)
{
	struct {
		struct duet_sample head;
		uint64_t stack[2];
	} sample = {.head = {.head = {.size = sizeof(sample), .time_ns = 5}, .user_depth = 2},
		    .stack = {NATIVE + number, NATIVE}};
	const struct decision decision = {
		.process = process, .sample = &sample.head, .outcome = JOIN_STANDALONE};
	struct resolved resolved = resolve_stack(&f->resolver, &decision);
	int64_t node = resolve_node(&f->resolver, &decision, &resolved);

	assert_true(node > 0);
	return profile_text(&f->profile, profile_leaf(&f->profile, (uint32_t)node)->name);
}

static bool is_kept(struct fixture *f, struct process *process, uint64_t number)
{
	return strcmp(leaf_at(f, process, number), "[too_many_stacks]") != 0;
}

/* Adds random stacks of one process after the other. Returns how many were kept. */
static size_t storm(struct fixture *f, const struct payer *payer, uint64_t first, uint64_t count)
{
	size_t kept = 0;

	for (uint64_t i = first; i < first + count; i++) {
		f->process = (struct process){.pid = 10000000 + (pid_t)(i / 100), .exited = true, .payer = *payer};
		kept += is_kept(f, &f->process, i);
	}
	return kept;
}

/* Ten times as many random stacks as fit do not take the room of another user's stacks, known or new. */
static void a_users_stacks_leave_room_for_others(void **state)
{
	static const struct payer attacker = {1, 1}, honest = {2, 2};
	enum { STACKS = 900, LIMIT = 5800000, MANY = 400000 };
	struct process victim = {.pid = 9, .exited = true, .payer = honest};
	struct fixture *f = *state;

	room_open(true);
	f->profile.max_bytes = LIMIT;
	for (uint64_t i = 0; i < STACKS / 2; i++)
		assert_true(is_kept(f, &victim, 10000000 + i));
	assert_in_range(storm(f, &attacker, 1, MANY), 1000, MANY / 10);
	assert_true(loader_counters[DUET_LOADER_ROOM_SPENT] > MANY / 2);
	assert_int_equal(loader_counters[DUET_LOADER_MEMORY_FULL], 0);
	assert_int_equal(distinct_count(&f->resolver.refused), 0); /* no larger limit is asked for */
	f->profile.max_bytes -= LIMIT / 8; /* other memory has grown */
	for (uint64_t i = 0; i < STACKS; i++)
		assert_true(is_kept(f, &victim, 10000000 + i));
	assert_true(profile_bytes_soon(&f->profile, &(struct profile_rows){0}) <= LIMIT);
	f->process.payer = (struct payer){0};
	assert_true(is_kept(f, &f->process, 20000000));
	room_open(false);
}

/* The same as without any shares: until the profile is full. */
static void a_single_users_stacks_are_kept(void **state)
{
	static const struct payer honest = {2, 2};
	struct fixture *f = *state;
	size_t kept;

	room_open(false);
	f->profile.max_bytes = 1 << 20;
	kept = storm(f, &honest, 1, 20000);
	assert_true(loader_counters[DUET_LOADER_MEMORY_FULL] > 0);
	assert_int_equal(loader_counters[DUET_LOADER_ROOM_SPENT], 0);
	teardown(state);
	setup(state);
	f = *state;
	room_open(false);
	f->profile.max_bytes = 1 << 20;
	assert_int_equal(storm(f, &(struct payer){0}, 1, 20000), kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_class_is_the_leaf, setup, teardown),
		cmocka_unit_test_setup_teardown(the_state_is_the_leaf, setup, teardown),
		cmocka_unit_test_setup_teardown(equal_stacks_are_one_node, setup, teardown),
		cmocka_unit_test_setup_teardown(recycled_code_has_its_own_name, setup, teardown),
		cmocka_unit_test_setup_teardown(a_missing_name_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_missing_is_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(missing_names_have_a_cause, setup, teardown),
		cmocka_unit_test_setup_teardown(a_refused_stack_is_counted_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_redefined_method_is_asked_for_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_method_with_the_key_of_another, setup, teardown),
		cmocka_unit_test_setup_teardown(a_guess_is_not_remembered, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_remembered_is_forgotten_in_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_profile_still_tells_what_it_has, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_profile_takes_no_strings, setup, teardown),
		cmocka_unit_test_setup_teardown(a_users_stacks_leave_room_for_others, setup, teardown),
		cmocka_unit_test_setup_teardown(a_single_users_stacks_are_kept, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
