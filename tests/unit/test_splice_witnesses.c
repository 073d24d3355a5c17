/* SPDX-License-Identifier: MIT */
/* Both witnesses of a stack are compared: the walk and AsyncGetCallTrace. */
#include "fixtures/splicing.h"

static void test_witnesses_agree(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(5, walked_frames);

	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT_WALK(f);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	sample.user[2] = COMPILED + 17; /* no debug information at this pc: the other witness has the inlined methods */
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT_WALK(f);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
}

/* Where the methods are the same, the byte code indices are compared, except the leaf's. */
static void test_byte_code_indices(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(5, walked_frames);

	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.bcis, ALIKE_AGREED);
	java.frames[3].bci = 5;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	assert_int_equal(f->splice.verdict.bcis, ALIKE_DISAGREED);
	java.frames[3].bci = -1; /* not known */
	java.frames[0].bci = 2;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.bcis, ALIKE_AGREED);
	java.frames[4].method = 62;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_DISAGREED);
	assert_int_equal(f->splice.verdict.bcis, ALIKE_ALONE);
}

/* The entry after a leaf call's return address is its scope, whether it is certain or not. */
static void test_leaf_calls(void **state)
{
	struct fixture *f = *state;
	const struct duet_code_load bare = {.method = 1, .address = HEAP + 0x6000, .code_bytes = 0x100};
	const struct {
		struct duet_method method;
		char text[8];
	} method = {.method = {.method = 1}};
	struct half_sample sample = kernel_half(0, 2, (uint64_t[]){STUB + 4, COMPILED + 12});

	splice(f, &sample, NULL, JOIN_WALKED);
	EXPECT(f, SPLICE_STUB, SPLICE_INLINED, SPLICE_COMPILED);
	assert_false(f->splice.verdict.is_estimated);
	apply_code(f, HEAP + 0x4000, DUET_PC_ESTIMATED);
	sample = kernel_half(0, 2, (uint64_t[]){STUB + 4, HEAP + 0x4000 + 12});
	splice(f, &sample, NULL, JOIN_WALKED);
	EXPECT(f, SPLICE_STUB, SPLICE_INLINED, SPLICE_COMPILED);
	assert_true(f->splice.verdict.is_estimated);
	assert_true(f->splice.verdict.is_unrecorded);
	apply_code(f, HEAP + 0x5000, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	sample = kernel_half(0, 2, (uint64_t[]){STUB + 4, HEAP + 0x5000 + 12});
	splice(f, &sample, NULL, JOIN_WALKED);
	EXPECT(f, SPLICE_STUB, SPLICE_MARK, SPLICE_INLINED, SPLICE_COMPILED);
	assert_string_equal(f->splice.frames.items[1].mark, "[inlined?]");
	/* behind the last entry of a method with inlined ones */
	sample = kernel_half(0, 2, (uint64_t[]){STUB + 4, HEAP + 0x5000 + 60});
	splice(f, &sample, NULL, JOIN_WALKED);
	EXPECT(f, SPLICE_STUB, SPLICE_MARK, SPLICE_COMPILED);
	assert_true(f->splice.verdict.is_estimated);
	/* of a method without any entry, as none of its loops has a poll */
	jvm_apply(f->jvm, DUET_AGENT_METHOD, &method, sizeof(method));
	jvm_apply(f->jvm, DUET_AGENT_CODE_LOAD, &bare, sizeof(bare));
	sample = kernel_half(0, 2, (uint64_t[]){STUB + 4, HEAP + 0x6000 + 12});
	splice(f, &sample, NULL, JOIN_WALKED);
	EXPECT(f, SPLICE_STUB, SPLICE_MARK, SPLICE_COMPILED);
	assert_true(f->splice.verdict.is_estimated);
}

/* Inlined frames are compared one by one where they are recorded, and byte code indices of the callers. */
static void test_inlined_frames_are_compared(void **state)
{
	static const struct duet_java_frame other[] = {{.method = 901, .bci = 1}, {.method = 1, .bci = 7}};
	struct fixture *f = *state;
	struct half_java java = java_half(2, other);
	struct half_sample sample = kernel_half(0, 1, (uint64_t[]){COMPILED + 12});

	sample.head.flags = DUET_SAMPLE_USER_COMPLETE;
	splice(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED); /* 901 may be inlined nearby */
	apply_code(f, HEAP + 0x4000, DUET_PC_EXACT);
	sample = kernel_half(0, 1, (uint64_t[]){HEAP + 0x4000 + 12});
	sample.head.flags = DUET_SAMPLE_USER_COMPLETE;
	splice(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_DISAGREED);
	java = java_half(2, inlined_stack);
	splice(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	assert_int_equal(f->splice.verdict.bcis, ALIKE_AGREED);
}

/* Where scopes are recorded, but not that of this call, another inlined method is no contradiction. */
static void test_estimates_beside_recorded_scopes(void **state)
{
	static const struct duet_java_frame other[] = {{.method = 901, .bci = 1}, {.method = 1, .bci = 7}};
	struct fixture *f = *state;
	struct half_java java = java_half(2, other);
	struct half_sample sample = kernel_half(0, 1, (uint64_t[]){HEAP + 0x4000 + 12});

	apply_code(f, HEAP + 0x4000, DUET_PC_EXACT | DUET_PC_ESTIMATED);
	sample.head.flags = DUET_SAMPLE_USER_COMPLETE;
	splice(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	assert_true(f->splice.verdict.is_estimated);
	assert_false(f->splice.verdict.is_unrecorded); /* there is nothing to advise */
}

/*
 * The other witness may end where native code called Java, and report other inlined methods for the topmost compiled
 * one.
 */
static void test_witness_that_sees_less(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(4, walked_frames);

	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT_WALK(f);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	sample.user[1] = LIBC + 9;
	java = java_half(4, walked_frames + 1);
	java.frames[0].method = 901;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_NATIVE, SPLICE_INLINED, SPLICE_COMPILED, SPLICE_INTERPRETED, SPLICE_NATIVE,
	       SPLICE_INTERPRETED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	assert_int_equal(f->splice.frames.items[2].method, 900);
	java.frames[1].method = 2;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_DISAGREED);
}

/*
 * The other witness ends early, or skips a method in its first instructions, or that method's caller. The walk has all
 * frames.
 */
static void test_witness_that_leaves_out_frames(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(2, walked_frames);

	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT_WALK(f);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_SAW_LESS);
	java = java_half(4, walked_frames);
	memmove(java.frames + 1, walked_frames + 2, 3 * sizeof(*java.frames));
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT_WALK(f);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_SAW_LESS);
	java = java_half(3, walked_frames); /* two of them */
	memmove(java.frames + 1, walked_frames + 3, 2 * sizeof(*java.frames));
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_DISAGREED);
	java = java_half(4, walked_frames); /* further down */
	java.frames[3] = walked_frames[4];
	java.frames[2] = walked_frames[3];
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_DISAGREED);
}

/* A method that the interpreter has entered, without a frame yet: the other witness sees its caller. */
static void test_entered_method_is_not_disputed(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(4, walked_frames + 1);

	sample.user[0] = 70;
	sample.ids[0] = DUET_ID_INTERPRETED;
	sample.ids[3] = 0;
	sample.user[1] = COMPILED + 16;
	sample.user[2] = CALL_STUB;
	sample.user[3] = LIBC + 16;
	sample.user[4] = CALL_STUB;
	sample.user[5] = LIBC + 16;
	java = java_half(3, walked_frames + 1);
	java.frames[2] = walked_frames[4];
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	assert_int_equal(f->splice.frames.items[0].method, 70);
	java.head.java_depth = 2; /* and ends early */
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	java.head.java_depth = 1;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_SAW_LESS);
}

/* With another method, or one frame more, AsyncGetCallTrace's frames follow the native ones above Java. */
static void test_witnesses_disagree(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(5, walked_frames);

	java.frames[3].method = 62;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_DISAGREED);
	EXPECT(f, SPLICE_NATIVE, SPLICE_JAVA_NATIVE, SPLICE_INLINED, SPLICE_COMPILED, SPLICE_INTERPRETED,
	       SPLICE_INTERPRETED);
	java = java_half(5, walked_frames);
	java.head.java_depth = 6;
	java.frames[5].method = 63;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_DISAGREED);
}

/* One of the witnesses lacks an id, so nothing is contradicted. */
static void test_witness_without_names(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(5, walked_frames);

	java.frames[1].method = java.frames[3].method = 0;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT_WALK(f);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	java = java_half(5, walked_frames);
	for (uint32_t i = 0; i < 7; i++)
		if (sample.ids[i] & DUET_ID_INTERPRETED)
			sample.user[i] = 0x5555000 | DUET_METHOD_BARE;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT_WALK(f);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
}

/* The walk has frames without names. */
static void test_truncated_witness(void **state)
{
	struct fixture *f = *state;
	struct walk_sample sample = walk_half(f);
	struct half_java java = java_half(3, walked_frames);

	java.head.flags = DUET_JAVA_TRUNCATED;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	EXPECT_WALK(f);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_AGREED);
	java.frames[2].method = 62;
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_DISAGREED);
	java = java_half(5, walked_frames);
	sample.head.flags = 0; /* a walk that is not whole is not compared */
	splice_walk(f, &sample, &java, JOIN_JOINED);
	assert_int_equal(f->splice.verdict.witnesses, SPLICE_ALONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_witnesses_agree, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_byte_code_indices, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_leaf_calls, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_inlined_frames_are_compared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_estimates_beside_recorded_scopes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_witness_that_sees_less, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_witness_that_leaves_out_frames, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_entered_method_is_not_disputed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_witnesses_disagree, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_witness_without_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_truncated_witness, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
