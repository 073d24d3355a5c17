/* SPDX-License-Identifier: MIT */
#include "fixtures/splicing.h"

static void test_kernel_native_java(void **state)
{
	struct fixture *f = *state;
	struct half_sample sample = kernel_half(2, 3, (uint64_t[]){~0ull, ~1ull, LIBC + 8, LIBC + 16, COMPILED + 16});
	struct half_java java = java_half(3, inlined_stack);

	splice(f, &sample, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_KERNEL, SPLICE_KERNEL, SPLICE_NATIVE, SPLICE_NATIVE, SPLICE_INLINED, SPLICE_COMPILED,
	       SPLICE_INTERPRETED);
	assert_false(f->splice.frames.items[0].is_return);
	assert_true(f->splice.frames.items[1].is_return);
}

static void test_noise_below_native_is_cut(void **state)
{
	struct fixture *f = *state;
	struct half_sample sample = kernel_half(0, 3, (uint64_t[]){LIBC + 8, 0xdead, LIBC + 16});
	struct half_java java = java_half(1, &inlined_stack[3]);

	splice(f, &sample, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_JAVA_NATIVE);
	splice(f, &sample, NULL, JOIN_WALKED);
	EXPECT(f, SPLICE_NATIVE);
	sample.head.flags |= DUET_SAMPLE_USER_COMPLETE; /* in a library that is not known to be mapped yet */
	splice(f, &sample, NULL, JOIN_WALKED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_NATIVE, SPLICE_NATIVE);
}

static void test_leaf_stub_is_shown_interpreter_is_not(void **state)
{
	struct fixture *f = *state;
	struct half_sample stub = kernel_half(0, 1, (uint64_t[]){STUB + 4});
	struct half_sample interpreter = kernel_half(0, 1, (uint64_t[]){INTERPRETER + 4});
	struct half_java java = java_half(1, &inlined_stack[2]);

	splice(f, &stub, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_STUB, SPLICE_INTERPRETED);
	splice(f, &interpreter, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_INTERPRETED);
}

static void test_failed_walk_is_marked_and_keeps_the_top(void **state)
{
	struct fixture *f = *state;
	struct half_sample sample = kernel_half(0, 1, (uint64_t[]){COMPILED + 12});
	struct half_java java = java_half(0, inlined_stack);

	java.head.status = -5;
	splice(f, &sample, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_INLINED, SPLICE_COMPILED, SPLICE_MARK);
	assert_string_equal(f->splice.frames.items[2].mark, "[unknown_Java]");
	java.head.status = -3;
	java.head.flags = DUET_JAVA_NO_THREAD; /* a thread of the JVM itself: native all the way, no failure */
	splice(f, &sample, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_INLINED, SPLICE_COMPILED);
}

/* A sample from a callback begins with a return address; without any frame, there was no Java code. */
static void test_called_from_java(void **state)
{
	const uint64_t at[] = {COMPILED + 16};
	struct half_sample sample = kernel_half(0, 1, at);
	struct fixture *f = *state;

	sample.head.flags = DUET_SAMPLE_CALLED | DUET_SAMPLE_USER_COMPLETE;
	splice(f, &sample, NULL, JOIN_WALKED);
	expect_kinds(f, (enum splice_kind[]){SPLICE_INLINED, SPLICE_COMPILED}, 2);
	sample.head.user_depth = 0;
	splice(f, &sample, NULL, JOIN_WALKED);
	expect_kinds(f, (enum splice_kind[]){SPLICE_MARK}, 1);
	assert_string_equal(f->splice.frames.items[0].mark, "[no_Java_frame]");
}

static void test_unjoined_is_marked(void **state)
{
	struct fixture *f = *state;
	struct half_sample sample = kernel_half(1, 1, (uint64_t[]){~0ull, LIBC + 8});

	sample.head.no_signal = DUET_NO_SIGNAL_SYSCALL;
	splice(f, &sample, NULL, JOIN_NOT_SIGNALLED);
	EXPECT(f, SPLICE_KERNEL, SPLICE_NATIVE, SPLICE_MARK);
	assert_string_equal(f->splice.frames.items[2].mark, "[not_signalled_syscall]");
	splice(f, &sample, NULL, JOIN_NO_RECORD);
	assert_string_equal(f->splice.frames.items[2].mark, "[no_agent_record]");
	sample.head.no_signal = 999; /* never from our BPF program, but bounded all the same */
	splice(f, &sample, NULL, JOIN_NOT_SIGNALLED);
	assert_string_equal(f->splice.frames.items[2].mark, "[not_signalled]");
}

/* A thread that has no Java half, and whose walk did not reach its entry. */
static void test_cut_is_marked(void **state)
{
	static const struct duet_java_frame none[] = {{0}};
	struct fixture *f = *state;
	struct half_sample sample = kernel_half(1, 1, (uint64_t[]){~0ull, LIBC + 8});
	struct half_java java = java_half(0, none);

	java.head.flags = DUET_JAVA_NO_THREAD;
	for (int i = 0; i < 2; i++) {
		sample.head.walk_end = DUET_WALK_BAD_FP;
		splice(f, &sample, i ? &java : NULL, i ? JOIN_JOINED : JOIN_WALKED);
		EXPECT(f, SPLICE_KERNEL, SPLICE_NATIVE, SPLICE_MARK);
		assert_string_equal(f->splice.frames.items[2].mark, "[truncated]");
		sample.head.walk_end = DUET_WALK_ENTRY;
		splice(f, &sample, i ? &java : NULL, i ? JOIN_JOINED : JOIN_WALKED);
		EXPECT(f, SPLICE_KERNEL, SPLICE_NATIVE);
	}
}

static void test_nothing_is_missing(void **state)
{
	struct fixture *f = *state;
	struct half_sample sample = kernel_half(1, 0, (uint64_t[]){~0ull});

	sample.head.walk_end = DUET_WALK_EXITING;
	splice(f, &sample, NULL, JOIN_WALKED);
	EXPECT(f, SPLICE_KERNEL, SPLICE_STATE);
	assert_string_equal(f->splice.frames.items[1].mark, "[exiting]");
	splice(f, &sample, NULL, JOIN_OWN);
	EXPECT(f, SPLICE_STATE);
	assert_string_equal(f->splice.frames.items[0].mark, "[duet_agent]");
}

static void test_walk_alone(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);

	splice_walk(f, &sample, NULL, JOIN_WALKED);
	EXPECT_WALK(f);
	assert_false(f->splice.verdict.is_missing_code);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_ALONE);
	assert_int_equal(f->splice.frames.items[4].method, 60);
	assert_int_equal(f->splice.frames.items[6].bci, 9);
}

/*
 * Before the JVM's layout is known, a walk reaches the entry by guess. The frames below all Java frames are right,
 * those above are not.
 */
static void test_native_below_java(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(3, &walked_frames[1]);

	sample.head.flags = 0;
	sample.head.walk_end = DUET_WALK_ENTRY;
	sample.head.user_depth = 6;
	sample.head.id_depth = 0;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_INLINED, SPLICE_COMPILED, SPLICE_INTERPRETED, SPLICE_NATIVE);
	assert_int_equal(f->splice.frames.items[4].address, LIBC + 16);
	java.head.flags = DUET_JAVA_TRUNCATED;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_INLINED, SPLICE_COMPILED, SPLICE_INTERPRETED, SPLICE_MARK);
	java.head.flags = 0;
	sample.head.walk_end = DUET_WALK_BAD_FP; /* not the thread's entry */
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_INLINED, SPLICE_COMPILED, SPLICE_INTERPRETED);
	sample.head.walk_end = DUET_WALK_ENTRY;
	sample.user[4] = INTERPRETER; /* not where native code had called Java */
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_INLINED, SPLICE_COMPILED, SPLICE_INTERPRETED);
}

/* Of a sample that the JVM took for Java code, the stack begins with the first Java frame, if it has one. */
static void test_for_java(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);

	sample.head.flags |= DUET_SAMPLE_FOR_JAVA;
	splice_walk(f, &sample, NULL, JOIN_WALKED);
	EXPECT(f, SPLICE_INTERPRETED, SPLICE_NATIVE, SPLICE_INTERPRETED); /* the compiled frames have no ids */
	sample.ids[2] = 7;
	sample.ids[3] = sample.ids[6] = 0;
	sample.head.user_depth = sample.head.id_depth = 2;
	memmove(sample.user + 2, sample.ids, sizeof(sample.ids[0]) * 2);
	splice_walk(f, &sample, NULL, JOIN_WALKED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_JAVA_NATIVE);
}

/* AsyncGetCallTrace continues after a virtual thread's frames on the heap, and does not report that there are any. */
static void test_frames_on_the_heap(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(5, walked_frames);

	sample.ids[4] = DUET_ID_ON_HEAP;
	sample.user[5] = CALL_STUB;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_JAVA_NATIVE, SPLICE_INLINED, SPLICE_COMPILED, SPLICE_INTERPRETED, SPLICE_MARK,
	       SPLICE_INTERPRETED);
	assert_string_equal(f->splice.frames.items[5].mark, "[frames_on_heap]");
}

/* Any number of interpreter frames that are not filled yet is one mark. */
static void test_frames_that_are_not_filled(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(0, walked_frames);

	java.head.status = -9;
	sample.ids[3] = sample.ids[4] = DUET_ID_NOT_FILLED;
	sample.user[3] = sample.user[4] = CALL_STUB - 16;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_JAVA_NATIVE, SPLICE_INLINED, SPLICE_COMPILED, SPLICE_MARK, SPLICE_NATIVE,
	       SPLICE_INTERPRETED);
	assert_string_equal(f->splice.frames.items[4].mark, "[deoptimization]");
}

/* An interpreted method that calls itself; the middle of the stack is missing, and AsyncGetCallTrace may have it. */
static void test_walk_without_its_middle(void **state)
{
	struct fixture *f = *state;
	static struct {
		struct duet_sample head;
		uint64_t user[DUET_MAX_USER_STACK];
		uint32_t ids[DUET_MAX_USER_STACK];
	} sample = {.head = {.user_depth = DUET_MAX_USER_STACK,
			     .id_depth = DUET_MAX_USER_STACK,
			     .left_out = 1,
			     .flags = DUET_SAMPLE_USER_COMPLETE}};
	struct half_java java = java_half(2, (struct duet_java_frame[]){{.method = 60, .bci = 4}, {60, 4, 0}});

	for (uint32_t i = 0; i < DUET_MAX_USER_STACK; i++) {
		sample.user[i] = 60;
		sample.ids[i] = DUET_ID_INTERPRETED | 4;
	}
	for (uint32_t cut = 0; cut < 2; cut++) {
		java.head.flags = cut ? DUET_JAVA_TRUNCATED : 0;
		assert_int_equal(
			splice_stack(&f->splice, &f->process, f->jvm, &sample.head, &java.head, JOIN_JOINED), 0);
		assert_int_equal(f->splice.verdict.witnesses, cut ? SPLICE_AGREED : SPLICE_SAW_LESS);
	}
	assert_int_equal(f->splice.frames.len, DUET_MAX_USER_STACK + 1);
	assert_int_equal(f->splice.frames.items[DUET_LEAF_FRAMES].kind, SPLICE_MARK);
	assert_int_equal(f->splice.frames.items[DUET_LEAF_FRAMES + 1].method, 60);
	sample.head.left_out = 0;
	assert_int_equal(splice_stack(&f->splice, &f->process, f->jvm, &sample.head, NULL, JOIN_WALKED), 0);
	assert_int_equal(f->splice.frames.len, DUET_MAX_USER_STACK);
}

/* An agent may claim that a frame has thousands of inlined ones. Frames over the limit are cut, and marked. */
static void test_frames_have_a_limit(void **state)
{
	struct fixture *f = *state;
	static struct {
		struct duet_java_sample head;
		struct duet_java_frame frames[100000];
	} java = {.head = {.status = 100000, .java_depth = 100000}};
	struct duet_sample sample = {.head = {.size = sizeof(sample)}};

	assert_int_equal(splice_stack(&f->splice, &f->process, f->jvm, &sample, &java.head, JOIN_JOINED), 0);
	assert_int_equal(f->splice.frames.len, 65536);
	assert_string_equal(f->splice.frames.items[65535].mark, "[truncated]");
}

/* The code map has that address, but as an older compilation. The new one is still to be requested. */
static void test_code_of_another_compilation_is_missing(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(5, walked_frames);
	struct duet_code_load wrapper = {.method = 3, .address = NATIVE_METHOD, .code_bytes = 0x100, .id = 7};

	jvm_apply(f->jvm, DUET_AGENT_CODE_LOAD, &wrapper, sizeof(wrapper));
	sample.ids[1] = 7;
	splice_walk(f, &sample, NULL, JOIN_WALKED);
	assert_false(f->splice.verdict.is_missing_code);
	sample.ids[1] = 8;
	splice_walk(f, &sample, NULL, JOIN_WALKED);
	assert_true(f->splice.verdict.is_missing_code);
	assert_string_equal(f->splice.frames.items[1].mark, "[unknown_code]");
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_true(f->splice.verdict.is_missing_code);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_ALONE);
}

static void test_walk_stands_where_the_other_fails(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(0, walked_frames);

	java.head.status = -5;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT_WALK(f);
}

static void test_failure_marks(void **state)
{
	assert_null(splice_failure_mark(3));
	assert_null(splice_failure_mark(0));
	assert_string_equal(splice_failure_mark(-6), "[not_walkable_Java]");
	assert_string_equal(splice_failure_mark(-10), "[safepoint]");
	assert_string_equal(splice_failure_mark(INT32_MIN), "[unknown_failure]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernel_native_java, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_noise_below_native_is_cut, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_leaf_stub_is_shown_interpreter_is_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_failed_walk_is_marked_and_keeps_the_top, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_called_from_java, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unjoined_is_marked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut_is_marked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_is_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_walk_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_native_below_java, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_for_java, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_frames_on_the_heap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_frames_that_are_not_filled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_walk_without_its_middle, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_frames_have_a_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_code_of_another_compilation_is_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_walk_stands_where_the_other_fails, set_up, tear_down),
		cmocka_unit_test(test_failure_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
