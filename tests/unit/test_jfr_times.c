/* SPDX-License-Identifier: MIT */
/* Times of samples in JFR files, written and read. */
#include "fixtures/read_back.h"

static int one_time(void *context, const struct profile_sample *sample)
{
	*(uint64_t *)context = sample->time_ns;
	return 0;
}

/* A sample's time is the end of its wait. The file has its start. */
static void waits_end_at_their_time(void **state)
{
	static const char *const names[] = {"span", "lock", "window"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct profile_sample sample = {.weight = 7 * MS, .count = 1};
		struct profile first, second;
		uint64_t time_ns = 0;
		struct buf why;
		size_t len;
		char *file;

		buf_init(&why);
		assert_int_equal(profile_init(&first), 0);
		first.start_realtime_ns = 1700000000 * (1000 * MS);
		first.end_ns = first.start_ns + 50 * MS;
		sample.time_ns = first.start_ns + 20 * MS;
		(void)profile_thread(&first, 100, 101, "main", "java", 0);
		(void)profile_event(&first, names[i], PROFILE_NS, 1);
		assert_int_equal(profile_add(&first, &sample), 0);
		file = written_file("jfr", &first, &len);
		assert_int_equal(read_bytes(&second, file, len, &why), 0);
		assert_int_equal(timeline_each(&second.samples, one_time, &time_ns), 0);
		assert_int_equal(time_ns - second.start_ns, 20 * MS);
		profile_release(&first);
		profile_release(&second);
		buf_release(&why);
		free(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_end_at_their_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
