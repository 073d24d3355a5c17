/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

#include <errno.h>

#include "recorder/report_shape.h"

static struct profile profile;
static struct buf why;

static int setup(void **state)
{
	buf_init(&why);
	return profile_init(&profile);
}

static int teardown(void **state)
{
	buf_release(&why);
	profile_release(&profile);
	return 0;
}

static uint32_t native(const char *name)
{
	return frame_of(&profile, FRAME_NATIVE, name, "libc.so.6");
}

static uint32_t jvm(const char *name)
{
	return frame_of(&profile, FRAME_JVM, name, "libjvm.so");
}

static uint32_t java(enum frame_kind kind, const char *name)
{
	return java_frame(&profile, kind, "A", name, "()V", 1);
}

static void add(const char *event, enum profile_unit unit, const uint32_t *frames, uint32_t depth)
{
	const struct profile_sample sample = {
		.time_ns = profile.samples.len,
		.weight = 10,
		.thread = profile_thread(&profile, 1, 1, "main", "java", 0),
		.node = profile_stack(&profile, frames, depth),
		.count = 1,
		.event = profile_event(&profile, event, unit, 1),
	};

	assert_int_equal(profile_add(&profile, &sample), 0);
}

#define ADD(event, unit, ...) \
	add(event, unit, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* A Java thread that calls the JVM, which calls Java again, and a thread of the JVM. */
static void add_threads(void)
{
	ADD("cpu", PROFILE_NS, native("start_thread"), jvm("JavaCalls::call_helper(x)"),
	    java(FRAME_INTERPRETED, "main"), jvm("InstanceKlass::initialize()"), jvm("JavaCalls::call_helper(x)"),
	    java(FRAME_COMPILED, "run"), java(FRAME_JAVA_NATIVE, "read"), native("read"),
	    frame_of(&profile, FRAME_KERNEL, "vfs_read", ""));
	ADD("cpu", PROFILE_NS, native("start_thread"), jvm("CompileBroker::loop()"));
}

static void expect(enum stack_shape stacks, const char *want)
{
	const struct report_shape shape = {.stacks = stacks, .wall_ns = 25};
	struct writer_options options;
	char *text;

	writer_options_default(&options);
	options.style.annotate = true;
	assert_int_equal(report_shape(&profile, &shape, writer_by_name("collapsed"), &why), 0);
	text = written("collapsed", &profile, &options);
	assert_string_equal(text, want);
	free(text);
}

static void stacks_begin_with_java(void **state)
{
	add_threads();
	expect(STACK_VM, "A.main_[0];A.run_[j];A.read_[j];read;vfs_read_[k] 1\nstart_thread;CompileBroker::loop() 1\n");
}

static void stacks_with_all_frames(void **state)
{
	add_threads();
	expect(STACK_VMX, "start_thread;CompileBroker::loop() 1\n"
			  "start_thread;JavaCalls::call_helper(x);call_stub;A.main_[0];InstanceKlass::initialize();"
			  "JavaCalls::call_helper(x);call_stub;A.run_[j];A.read_[j];read;vfs_read_[k] 1\n");
}

static void stacks_whose_code_is_not_known(void **state)
{
	add_threads();
	expect(STACK_FP, "A.main_[j];A.run_[j];A.read_[j];read;vfs_read_[k] 1\nstart_thread;CompileBroker::loop() 1\n");
}

static void stacks_without_native_frames(void **state)
{
	add_threads();
	expect(STACK_NO, "A.main_[j];A.run_[j];A.read_[j] 1\n[no_Java_frame] 1\n");
}

static void marks_and_classes_stay(void **state)
{
	ADD("alloc", PROFILE_BYTES, frame_of(&profile, FRAME_MARK, "[truncated]", ""), native("f"),
	    java(FRAME_COMPILED, "run"), frame_of(&profile, FRAME_CLASS, "int[]", ""));
	expect(STACK_VM, "[truncated];A.run_[j];int[]_[i] 1\n");
}

/* The interpreter calls the native method, or compiled code does. */
static void native_methods_have_types(void **state)
{
	const struct frame interpreted = {.kind = FRAME_JAVA_NATIVE,
					  .name = intern_str(&profile.strings, "read"),
					  .class_name = intern_str(&profile.strings, "A"),
					  .bci = FRAME_BCI_INTERPRETED};

	ADD("cpu", PROFILE_NS, profile_frame(&profile, &interpreted), native("f"));
	ADD("cpu", PROFILE_NS, java(FRAME_JAVA_NATIVE, "read"), native("f"));
	expect(STACK_VM, "A.read_[0];f 1\nA.read_[j];f 1\n");
}

static void words_of_cstack(void **state)
{
	assert_int_equal(stack_shape_of(NULL), STACK_VM);
	assert_int_equal(stack_shape_of("vm"), STACK_VM);
	assert_int_equal(stack_shape_of("dwarf"), STACK_VM);
	assert_int_equal(stack_shape_of("vmx"), STACK_VMX);
	assert_int_equal(stack_shape_of("fp"), STACK_FP);
	assert_int_equal(stack_shape_of("no"), STACK_NO);
}

/* ---- -j ---- */

static void expect_depth(uint32_t most, uint32_t kept, const char *want)
{
	const struct report_shape shape = {.stacks = STACK_VM, .most_frames = most, .kept_frames = kept};
	struct writer_options options;
	char *text;

	ADD("cpu", PROFILE_NS, java(FRAME_COMPILED, "a"), java(FRAME_COMPILED, "b"), java(FRAME_COMPILED, "c"));
	ADD("cpu", PROFILE_NS, java(FRAME_COMPILED, "a"), java(FRAME_COMPILED, "b"));
	writer_options_default(&options);
	assert_int_equal(report_shape(&profile, &shape, writer_by_name("collapsed"), &why), 0);
	text = written("collapsed", &profile, &options);
	assert_string_equal(text, want);
	free(text);
}

static void deep_stacks_keep_the_leaf(void **state)
{
	expect_depth(2, 0, "A.a;A.b 1\nA.b;A.c 1\n");
}

static void deep_stacks_keep_fewer_under_a_mark(void **state)
{
	expect_depth(2, 1, "A.a;A.b 1\n[truncated];A.c 1\n");
}

/* ---- events ---- */

static void waits_are_in_hooks(void **state)
{
	ADD("nativelock", PROFILE_NS, native("main"), native("___pthread_mutex_lock"));
	ADD("nativelock", PROFILE_NS, native("main"), native("pthread_rwlock_wrlock@@GLIBC_2.34"));
	ADD("nativelock", PROFILE_NS, native("main"), native("pthread_mutex_lock_full"));
	expect(STACK_VM, "main;pthread_mutex_lock_full 1\nmain;pthread_mutex_lock_hook 1\n"
			 "main;pthread_rwlock_wrlock_hook 1\n");
}

/* Each sample weighs 10; a period is 25. The root says that the thread was idle all the time. */
static void waits_count_once_a_period(void **state)
{
	assert_int_equal(profile_event(&profile, "wall", PROFILE_NS, 5), 0);
	for (int i = 0; i < 6; i++)
		ADD("wall", PROFILE_NS, frame_of(&profile, FRAME_STATE, "[idle]", ""), java(FRAME_COMPILED, "run"));
	expect(STACK_VM, "A.run_[j] 2\n");
	assert_int_equal(profile.samples.len, 2);
	assert_int_equal(profile.events.items[0].interval, 25);
}

/* They stand for a stack: without them it would be without any frame. */
static void other_states_are_shown(void **state)
{
	ADD("cpu", PROFILE_NS, frame_of(&profile, FRAME_STATE, "[duet_agent]", ""));
	ADD("cpu", PROFILE_NS, frame_of(&profile, FRAME_STATE, "[exiting]", ""), native("do_exit"));
	expect(STACK_VM, "[duet_agent] 1\n[exiting];do_exit 1\n");
}

static void traces_are_one_event(void **state)
{
	ADD("trace:A.a", PROFILE_NS, java(FRAME_COMPILED, "a"));
	ADD("trace:A.b:1ms", PROFILE_NS, java(FRAME_COMPILED, "b"));
	expect(STACK_VM, "A.a_[j] 1\nA.b_[j] 1\n");
	assert_int_equal(profile.events.len, 1);
}

static void freed_memory_is_told_in_jfr(void **state)
{
	const struct report_shape shape = {.stacks = STACK_VM};

	ADD("free", PROFILE_COUNT, native("x"));
	ADD("nativemem", PROFILE_BYTES, native("y"));
	assert_int_equal(report_shape(&profile, &shape, writer_by_name("jfr"), &why), 0);
	assert_int_equal(profile.samples.len, 2);
	expect(STACK_VM, "y 1\n");
}

static void first_event_in_one_text(void **state)
{
	ADD("cpu", PROFILE_NS, native("x"));
	ADD("alloc", PROFILE_BYTES, native("y"));
	expect(STACK_VM, "x 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stacks_begin_with_java, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks_with_all_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks_whose_code_is_not_known, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks_without_native_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(marks_and_classes_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(native_methods_have_types, setup, teardown),
		cmocka_unit_test(words_of_cstack),
		cmocka_unit_test_setup_teardown(deep_stacks_keep_the_leaf, setup, teardown),
		cmocka_unit_test_setup_teardown(deep_stacks_keep_fewer_under_a_mark, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_are_in_hooks, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_count_once_a_period, setup, teardown),
		cmocka_unit_test_setup_teardown(other_states_are_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(traces_are_one_event, setup, teardown),
		cmocka_unit_test_setup_teardown(freed_memory_is_told_in_jfr, setup, teardown),
		cmocka_unit_test_setup_teardown(first_event_in_one_text, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
