/* SPDX-License-Identifier: MIT */
/* Times, addresses and ages of samples in JFR files, written and read. */
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

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct profile_sample sample = {.weight = 7 * MS, .count = 1};
		struct profile first, second;
		uint64_t time_ns = 0;

		assert_int_equal(profile_init(&first), 0);
		first.start_realtime_ns = 1700000000 * (1000 * MS);
		first.end_ns = first.start_ns + 50 * MS;
		sample.time_ns = first.start_ns + 20 * MS;
		(void)profile_thread(&first, 100, 101, "main", "java", 0);
		(void)profile_event(&first, names[i], PROFILE_NS, 1);
		assert_int_equal(profile_add(&first, &sample), 0);
		read_back("jfr", &first, &second);
		assert_int_equal(timeline_each(&second.samples, one_time, &time_ns), 0);
		assert_int_equal(time_ns - second.start_ns, 20 * MS);
		profile_release(&first);
		profile_release(&second);
	}
}

static int note_thread(void *context, const struct profile_sample *sample)
{
	((uint32_t *)context)[sample->time_ns / MS % 100] = sample->thread;
	return 0;
}

/*
 * A thread that was renamed is one thread, under its last name, with the container that was known once; one of the same
 * id in another process, or of another program in the same process, is another.
 */
static void renamed_threads(void **state)
{
	static const struct {
		uint32_t pid;
		const char *name, *process;
		bool is_late; /* the process has ended: its cgroup is not known any more */
	} rows[] = {
		{100, "java", "java", true},	  {100, "main", "java", false},	   {200, "main", "java", false},
		{100, "worker-7", "java", false}, {100, "worker-7", "java", true}, {100, "sh", "sh", false},
	};
	struct profile first, second;
	const struct profile_owner *owner;
	uint32_t got[6], owners[2];

	assert_int_equal(profile_init(&first), 0);
	first.start_realtime_ns = 1700000000 * (1000 * MS);
	first.end_ns = first.start_ns + 50 * MS;
	(void)profile_event(&first, "cpu", PROFILE_NS, 10 * MS);
	owners[false] = profile_owner(&first, &(struct profile_owner){.pid = 100,
								      .cgroup = intern_str(&first.strings, "/c"),
								      .container = intern_str(&first.strings, "c")});
	owners[true] = profile_owner(
		&first, &(struct profile_owner){.pid = 100, .container = intern_str(&first.strings, "none")});
	for (uint32_t i = 0; i < 6; i++) {
		struct profile_sample sample = {.weight = 10 * MS, .count = 1, .time_ns = first.start_ns + i * MS};

		sample.thread = profile_thread(&first, rows[i].pid, 101, rows[i].name, rows[i].process,
					       owners[rows[i].is_late]);
		assert_int_equal(profile_add(&first, &sample), 0);
	}
	read_back("jfr", &first, &second);
	assert_int_equal(timeline_each(&second.samples, note_thread, got), 0);
	assert_int_equal(second.samples.len, 6);
	assert_true(got[0] == got[1] && got[1] == got[3] && got[3] == got[4] && got[2] != got[0]);
	assert_true(got[5] != got[0] && got[5] != got[2]);
	owner = &second.owners.items[second.threads.items[got[0]].owner];
	assert_string_equal(intern_text(&second.strings, owner->container), "c");
	assert_string_equal(intern_text(&second.strings, second.threads.items[got[0]].name), "worker-7");
	assert_int_equal(second.threads.items[got[2]].pid, 200);
	profile_release(&first);
	profile_release(&second);
}

static int note_address(void *context, const struct profile_sample *sample)
{
	((uint64_t *)context)[sample->event] = sample->address;
	return 0;
}

/* Addresses of memory and locks, and the ages of objects. */
static void addresses_and_ages(void **state)
{
	static const struct {
		const char *event;
		enum profile_unit unit;
		uint64_t address;
	} rows[] = {{"nativemem", PROFILE_BYTES, 0x7f1234567890},
		    {"lock", PROFILE_NS, 0x715001238},
		    {"nativelock", PROFILE_NS, 0x7fff12345678},
		    {"wait", PROFILE_NS, UINT64_MAX},
		    {"live", PROFILE_BYTES, 3456 * MS}};
	uint64_t got[sizeof(rows) / sizeof(*rows)] = {0};
	struct profile first, second;

	assert_int_equal(profile_init(&first), 0);
	first.start_realtime_ns = 1700000000 * (1000 * MS);
	first.end_ns = 5000 * MS;
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct profile_sample sample = {.time_ns = 4000 * MS, .weight = MS, .count = 1, .event = i};

		assert_int_equal(profile_event(&first, rows[i].event, rows[i].unit, 1), i);
		sample.thread = profile_thread(&first, 1, 2, "main", "java", 0);
		sample.node = profile_child(&first, 0, java_frame(&first, FRAME_COMPILED, "a.B", "run", "()V", 10));
		sample.address = rows[i].address;
		assert_int_equal(profile_add(&first, &sample), 0);
	}
	read_back("jfr", &first, &second);
	assert_int_equal(timeline_each(&second.samples, note_address, got), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(got[i], rows[i].address);
	profile_release(&first);
	profile_release(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_end_at_their_time),
		cmocka_unit_test(renamed_threads),
		cmocka_unit_test(addresses_and_ages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
