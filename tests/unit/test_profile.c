/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

#include <errno.h>

static int setup(void **state)
{
	struct profile *profile = malloc(sizeof(*profile));

	assert_non_null(profile);
	*state = profile;
	return profile_init(profile);
}

static int teardown(void **state)
{
	profile_release(*state);
	free(*state);
	return 0;
}

static void equal_frames_are_one(void **state)
{
	struct profile *p = *state;
	uint32_t a = java_frame(p, FRAME_COMPILED, "A", "run", "()V", 1);

	assert_int_equal(java_frame(p, FRAME_COMPILED, "A", "run", "()V", 1), a);
	assert_int_not_equal(java_frame(p, FRAME_COMPILED, "A", "run", "()V", 2), a);
	assert_int_not_equal(java_frame(p, FRAME_INLINED, "A", "run", "()V", 1), a);
	assert_int_equal(p->frames.len, 3);
}

static void stacks_share_their_roots(void **state)
{
	struct profile *p = *state;
	uint32_t thread = profile_thread(p, 1, 1, "t", "p", 0);
	uint32_t a = frame_of(p, FRAME_NATIVE, "a", ""), b = frame_of(p, FRAME_NATIVE, "b", "");

	ADD_STACK(p, thread, 2, a, b);
	ADD_STACK(p, thread, 1, a);
	ADD_STACK(p, thread, 1, b, a);
	assert_int_equal(p->nodes.len, 5); /* root, a, a;b, b, b;a */
	assert_int_equal(p->samples.len, 4);
	assert_int_equal(p->samples.recent.items[0].node, p->samples.recent.items[1].node);
	assert_int_equal(p->nodes.items[p->samples.recent.items[0].node].parent, p->samples.recent.items[2].node);
	for (uint32_t i = 1; i < p->nodes.len; i++)
		assert_true(p->nodes.items[i].parent < i);
}

static void recursion_is_kept(void **state)
{
	struct profile *p = *state;
	uint32_t a = frame_of(p, FRAME_NATIVE, "a", "");

	ADD_STACK(p, profile_thread(p, 1, 1, "t", "p", 0), 1, a, a, a);
	assert_int_equal(p->nodes.len, 4);
}

static void samples_keep_time_weight_and_thread(void **state)
{
	struct profile *p = *state;
	uint32_t a = frame_of(p, FRAME_NATIVE, "a", ""), thread = profile_thread(p, 1, 2, "t", "p", 0);

	assert_int_equal(add_cpu_sample(p, profile_stack(p, &a, 1), thread, UINT64_MAX, PROFILE_WEIGHT_MAX - 1),
			 0);
	assert_true(p->samples.recent.items[0].time_ns == UINT64_MAX);
	assert_true(p->samples.recent.items[0].weight == PROFILE_WEIGHT_MAX - 1);
	assert_int_equal(add_cpu_sample(p, 0, thread, 1, 2), -EOVERFLOW);
	assert_int_equal(add_cpu_sample(p, 0, thread, 1, 1), 0);
	assert_int_equal(p->threads.items[p->samples.recent.items[0].thread].tid, 2);
}

static void a_renamed_thread_is_a_new_row(void **state)
{
	struct profile *p = *state;
	uint32_t before = profile_thread(p, 1, 1, "pool-1", "java", 0), after;

	assert_int_equal(profile_thread(p, 1, 1, "pool-1", "java", 0), before);
	after = profile_thread(p, 1, 1, "http-1", "java", 0);
	assert_int_not_equal(after, before);
	assert_int_equal(profile_thread(p, 1, 1, "http-1", "java", 0), after);
	assert_string_equal(intern_text(&p->strings, p->threads.items[before].name), "pool-1");
	assert_int_equal(profile_thread(p, 1, 1, "pool-1", "java", 0), before);
}

static void a_moved_process_is_a_new_row(void **state)
{
	struct profile *p = *state;
	struct profile_owner owner = {.pid = 1, .start_ticks = 5, .container = intern_str(&p->strings, "web")};
	uint32_t web = profile_owner(p, &owner), db, thread;

	owner.container = intern_str(&p->strings, "db");
	db = profile_owner(p, &owner);
	assert_int_not_equal(web, 0);
	assert_int_not_equal(db, web);
	assert_int_equal(profile_owner(p, &owner), db);
	thread = profile_thread(p, 1, 1, "t", "p", web);
	assert_int_not_equal(profile_thread(p, 1, 1, "t", "p", db), thread);
	assert_int_equal(profile_thread(p, 1, 1, "t", "p", web), thread);
	assert_int_equal(p->threads.len, 2);
}

static void indices_from_failed_calls_add_nothing(void **state)
{
	struct profile *p = *state;
	uint32_t thread = profile_thread(p, 1, 1, NULL, NULL, 0), none = UINT32_MAX;

	assert_int_equal(add_cpu_sample(p, profile_stack(p, &none, 1), thread, 0, 0), -ENOMEM);
	assert_int_equal(add_cpu_sample(p, 0, none, 0, 0), -ENOMEM);
	assert_int_equal(p->samples.len, 0);
}

static void losses_of_nothing_are_not_recorded(void **state)
{
	struct profile *p = *state;

	profile_add_loss(p, 0, "nothing");
	profile_add_loss(p, 2, "two");
	assert_int_equal(p->losses.len, 1);
	assert_string_equal(intern_text(&p->strings, p->losses.items[0].text), "two");
}

static void release_takes_null(void **state)
{
	profile_release(NULL);
}

/* A long recording of a big server: 100,000 stacks of 20 frames, the last four of which differ. */
static void a_million_samples_fit(void **state)
{
	struct profile *p = *state;
	uint32_t thread = profile_thread(p, 1, 1, "t", "p", 0), pool[1000], frames[20];
	size_t bytes;
	char name[32];

	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		pool[i] = frame_of(p, FRAME_NATIVE, name, "");
	}
	for (uint32_t i = 0; i < 1000000; i++) {
		for (uint32_t depth = 0; depth < 20; depth++)
			frames[depth] = pool[depth < 16 ? i % 100 : i / 100 % 1000];
		assert_int_equal(add_cpu_sample(p, profile_stack(p, frames, 20), thread, i, 1), 0);
	}
	bytes = p->samples.recent.size * sizeof(*p->samples.recent.items) + p->nodes.size * sizeof(*p->nodes.items);
	assert_int_equal(p->samples.len, 1000000);
	assert_int_equal(p->nodes.len, 1 + 100 * 16 + 100000 * 4);
	assert_true(bytes < 8 << 20);
}

/* By name, whatever thread carries them. */
static void virtual_threads_are_one_of_a_name(void **state)
{
	struct profile *p = *state;
	uint32_t one = profile_virtual_thread(p, 1, 33, "order-1", "java", 0);
	uint32_t two = profile_virtual_thread(p, 1, 34, "order", "java", 0);
	uint32_t none = profile_virtual_thread(p, 1, 35, "", "java", 0);

	assert_int_equal(p->threads.items[one].tid, PROFILE_VIRTUAL);
	assert_string_equal(intern_text(&p->strings, p->threads.items[one].name), "order-1");
	assert_int_equal(profile_virtual_thread(p, 1, 33, "order-1", "java", 0), one);
	assert_int_equal(profile_virtual_id(p, one), 33);
	assert_int_equal(profile_virtual_thread(p, 1, 36, "order", "java", 0), two);
	assert_int_equal(profile_virtual_id(p, two), 0);
	assert_int_equal(profile_virtual_thread(p, 1, 34, "order", "java", 0), two);
	assert_int_equal(profile_virtual_id(p, two), 0);
	assert_int_equal(profile_virtual_thread(p, 1, 37, "", "java", 0), none);
	assert_int_equal(profile_virtual_id(p, none), 0);
	assert_int_not_equal(profile_virtual_thread(p, 2, 33, "order-1", "java", 0), one);
	assert_int_equal(profile_virtual_id(p, profile_thread(p, 1, 33, "order-1", "java", 0)), 0);
}

/* Adds the n-th numbered thread, and returns its label. */
static uint32_t add_numbered(struct profile *p, const char *format, uint32_t n)
{
	char name[64];

	snprintf(name, sizeof(name), format, n, n);
	return profile_virtual_thread(p, 1, n + 1, name, "java", 0);
}

static void a_million_numbered_virtual_threads_are_few(void **state)
{
	struct profile *p = *state;
	uint32_t first = add_numbered(p, "request-%u/%u", 0), last = 0, index;

	for (uint32_t i = 1; i < 1000000; i++)
		last = add_numbered(p, "request-%u/%u", i);
	assert_int_equal(p->threads.len, PROFILE_MAX_NUMBERED + 1);
	assert_string_equal(intern_text(&p->strings, p->threads.items[last].name), "request-#/#");
	assert_int_equal(profile_virtual_id(p, last), 0);
	assert_int_equal(add_numbered(p, "request-%u/%u", 0), first);
	assert_int_equal(profile_virtual_id(p, first), 1);
	assert_int_equal(intern_known(&p->strings, "request-999999/999999"), 0);
	assert_int_not_equal(add_numbered(p, "other-%u", 0), last);
	assert_int_equal(p->threads.len, PROFILE_MAX_NUMBERED + 2);
	index = profile_virtual_thread(p, 2, 7, "request-7/7", "java", 0); /* of another process */
	assert_string_equal(intern_text(&p->strings, p->threads.items[index].name), "request-7/7");
}

static void a_million_virtual_threads_fit(void **state)
{
	struct profile *p = *state;
	uint32_t none = profile_virtual_thread(p, 1, 1, "", "java", 0), index;
	char name[8] = "";

	for (uint32_t i = 0; i < 1000000; i++) {
		for (uint32_t digit = 0, rest = i; digit < 6; digit++, rest /= 10)
			name[digit] = (char)('a' + rest % 10);
		index = profile_virtual_thread(p, 1, i + 1, name, "java", 0);
		assert_int_equal(index == none, i >= PROFILE_MAX_VIRTUAL);
	}
	assert_int_equal(p->threads.len, 1 + PROFILE_MAX_VIRTUAL);
	assert_int_equal(profile_virtual_id(p, profile_virtual_thread(p, 1, 8, "haaaaa", "java", 0)), 8);
	assert_int_equal(intern_known(&p->strings, name), 0);
}

static const struct profile_rows no_more;

static void a_limit_is_kept_by_asking(void **state)
{
	struct profile *p = *state;
	uint32_t known = profile_thread(p, 1, 1, "t", "p", 0), others;
	uint32_t frames[2] = {0};

	assert_false(profile_is_full(p, &no_more));
	p->max_bytes = 4 << 20;
	for (uint32_t i = 0; !profile_is_full(p, &no_more); i++) {
		frames[1] = java_frame(p, FRAME_COMPILED, "A", "run", "()V", (int)i);
		assert_int_not_equal(profile_stack(p, frames, 2), UINT32_MAX);
		assert_true(i < 1 << 20);
	}
	assert_true(p->nodes.len > 10000);
	assert_true(map_bytes(&p->node_ids) + map_bytes(&p->frame_ids) + p->frames.size * sizeof(struct frame) +
			    p->nodes.size * sizeof(struct stack_node) <= p->max_bytes);
	assert_int_equal(profile_known_thread(p, 1, 1, "t", "p", 0), known);
	others = profile_known_thread(p, 1, 2, "t", "p", 0);
	assert_int_not_equal(others, known);
	assert_int_equal(profile_known_thread(p, 3, 3, "new", "new", 0), others);
	assert_string_equal(intern_text(&p->strings, p->threads.items[others].process), "[others]");
	assert_int_equal(intern_known(&p->strings, "new"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_frames_are_one, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks_share_their_roots, setup, teardown),
		cmocka_unit_test_setup_teardown(recursion_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(samples_keep_time_weight_and_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(a_renamed_thread_is_a_new_row, setup, teardown),
		cmocka_unit_test_setup_teardown(a_moved_process_is_a_new_row, setup, teardown),
		cmocka_unit_test_setup_teardown(indices_from_failed_calls_add_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(losses_of_nothing_are_not_recorded, setup, teardown),
		cmocka_unit_test_setup_teardown(a_million_samples_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(virtual_threads_are_one_of_a_name, setup, teardown),
		cmocka_unit_test_setup_teardown(a_million_numbered_virtual_threads_are_few, setup, teardown),
		cmocka_unit_test_setup_teardown(a_million_virtual_threads_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(a_limit_is_kept_by_asking, setup, teardown),
		cmocka_unit_test(release_takes_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
