/* SPDX-License-Identifier: MIT */
/* The Firefox Profiler's format: every index is of a row, and the stacks are those of the profile. */
#include "fixtures/read_back.h"

#include <jansson.h>

static json_t *column(json_t *thread, const char *table, const char *name)
{
	return json_object_get(json_object_get(thread, table), name);
}

static size_t length_of(json_t *thread, const char *table)
{
	return (size_t)json_integer_value(column(thread, table, "length"));
}

static int64_t number_at(json_t *numbers, size_t i)
{
	json_t *value = json_array_get(numbers, i);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* Each column of a table has as many rows as the table says. */
static void assert_columns(json_t *thread, const char *table)
{
	const char *name;
	json_t *values;

	json_object_foreach(json_object_get(thread, table), name, values) if (json_is_array(values))
		assert_int_equal(json_array_size(values), length_of(thread, table));
}

/* Appends "root;leaf" of a stack, which must lead to the root. */
static void add_stack_text(json_t *thread, int64_t stack, struct buf *out)
{
	json_t *prefix = column(thread, "stackTable", "prefix");
	int64_t frame = number_at(column(thread, "stackTable", "frame"), (size_t)stack), func, name;

	assert_in_range(stack, 0, length_of(thread, "stackTable") - 1);
	assert_true(number_at(prefix, (size_t)stack) < stack);
	if (number_at(prefix, (size_t)stack) >= 0) {
		add_stack_text(thread, number_at(prefix, (size_t)stack), out);
		buf_add_char(out, ';');
	}
	assert_in_range(frame, 0, length_of(thread, "frameTable") - 1);
	func = number_at(column(thread, "frameTable", "func"), (size_t)frame);
	assert_in_range(func, 0, length_of(thread, "funcTable") - 1);
	name = number_at(column(thread, "funcTable", "name"), (size_t)func);
	buf_add_str(out, json_string_value(json_array_get(json_object_get(thread, "stringArray"), (size_t)name)));
}

static double check_thread(json_t *thread, struct buf *stacks)
{
	static const char *const tables[] = {"frameTable", "funcTable", "stackTable", "samples"};
	json_t *times = column(thread, "samples", "time"), *weights = column(thread, "samples", "weight");
	double sum = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		assert_columns(thread, tables[i]);
	for (size_t i = 0; i < json_array_size(times); i++) {
		if (i)
			assert_true(json_number_value(json_array_get(times, i)) >=
				    json_number_value(json_array_get(times, i - 1)));
		sum += json_number_value(json_array_get(weights, i));
		add_stack_text(thread, number_at(column(thread, "samples", "stack"), i), stacks);
		buf_add_char(stacks, '\n');
	}
	return sum;
}

static void threads_and_tables(void **state)
{
	struct profile profile;
	json_t *root, *threads, *thread;
	struct buf stacks;
	double sum = 0;
	size_t len, i;
	char *file;

	profile_of_everything(&profile);
	buf_init(&stacks);
	file = written_file("firefox", &profile, &len);
	root = json_loadb(file, len, 0, NULL);
	assert_non_null(root);
	threads = json_object_get(root, "threads");
	assert_int_equal(json_array_size(threads), 2);
	json_array_foreach(threads, i, thread) sum += check_thread(thread, &stacks);
	assert_true(sum > 19 * 10 + 123.456 && sum < 19 * 10 + 123.457);
	assert_non_null(
		strstr(stacks.data, "start_thread;JavaThread::run();com/acme/Main.run;java/lang/String.equals\n"));
	assert_non_null(strstr(stacks.data, "java/io/FileInputStream.readBytes;libc.so.6+0x1234;vfs_read_[k]\n"));
	thread = json_array_get(threads, 0);
	assert_string_equal(json_string_value(json_object_get(thread, "name")), "main");
	assert_string_equal(json_string_value(json_object_get(thread, "pid")), "100");
	assert_string_equal(json_string_value(column(thread, "samples", "weightType")), "tracing-ms");
	json_decref(root);
	profile_release(&profile);
	buf_release(&stacks);
	free(file);
}

/* An event that is counted, beside one in bytes, and one without samples. */
static void events_are_threads(void **state)
{
	struct profile profile;
	uint32_t thread, frame;
	json_t *root, *threads;
	size_t len;
	char *file;

	assert_int_equal(profile_init(&profile), 0);
	(void)profile_event(&profile, "faults", PROFILE_COUNT, 1);
	(void)profile_event(&profile, "alloc", PROFILE_BYTES, 1);
	(void)profile_event(&profile, "lock", PROFILE_NS, 1);
	thread = profile_thread(&profile, 7, 7, "t", "p", 0);
	frame = frame_of(&profile, FRAME_NATIVE, "f", "");
	for (uint32_t event = 0; event < 2; event++)
		assert_int_equal(profile_add(&profile,
					     &(struct profile_sample){
						     .thread = thread,
						     .count = 1,
						     .weight = 5,
						     .event = event,
						     .node = profile_stack(&profile, &frame, 1),
					     }),
				 0);
	file = written_file("firefox", &profile, &len);
	root = json_loadb(file, len, 0, NULL);
	threads = json_object_get(root, "threads");
	assert_int_equal(json_array_size(threads), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(threads, 1), "name")), "t (alloc)");
	assert_true(json_is_true(json_object_get(json_array_get(threads, 1), "isMainThread")));
	assert_string_equal(json_string_value(column(json_array_get(threads, 0), "samples", "weightType")), "samples");
	assert_string_equal(json_string_value(column(json_array_get(threads, 1), "samples", "weightType")), "bytes");
	json_decref(root);
	profile_release(&profile);
	free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_and_tables),
		cmocka_unit_test(events_are_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
