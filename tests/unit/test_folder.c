/* SPDX-License-Identifier: MIT */
/* Which windows of a folder are read for a time. */
#include "fixtures/read_back.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "cmd/inputs.h"

#define DAY 1763596800ull /* 2025-11-20 */
#define MINUTE 60
#define NOON (12 * 3600)

static char folder[] = "/tmp/duet-folder-XXXXXX";

/* A window of a minute. */
static void make(uint64_t end, const char *extension)
{
	char path[128], stamp[32];
	time_t seconds = (time_t)end;
	struct profile p;
	struct tm tm;
	size_t len;
	char *bytes;
	FILE *file;

	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H-%M-%S", gmtime_r(&seconds, &tm));
	snprintf(path, sizeof(path), "%s/profile_%s.%s", folder, stamp, extension);
	assert_int_equal(profile_init(&p), 0);
	p.start_ns = p.start_realtime_ns = (end - MINUTE) * NS_PER_SEC;
	p.end_ns = end * NS_PER_SEC + NS_PER_SEC / 2;
	bytes = written_file("duet", &p, &len);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	fclose(file);
	free(bytes);
	profile_release(&p);
}

/* From 12:00 to 12:10 on two days, of which the second has a gap. */
static int setup(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	for (uint64_t day = 0; day < 2; day++)
		for (uint64_t minute = 1; minute <= 10; minute++)
			if (!day || minute < 5 || minute > 7)
				make(DAY + day * 86400 + NOON + minute * MINUTE, "duet");
	make(DAY + NOON, "jfr"); /* another format */
	make(DAY + NOON, "html");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static struct moment moment_of(const char *text)
{
	struct moment moment = {0};
	struct buf why;

	buf_init(&why);
	assert_int_equal(*text ? opt_moment(&moment, text, &why) : 0, 0);
	buf_release(&why);
	return moment;
}

/* `want`: day and minute of the end of each window. */
static void expect(const char *from_text, const char *to_text, const char *want)
{
	struct moment from = moment_of(from_text), to = moment_of(to_text);
	struct inputs inputs = {0}, chosen = {0};
	struct buf got;
	int err;

	buf_init(&got);
	assert_int_equal(inputs_expand(&inputs, (char *[]){folder}, 1, true), 0);
	err = inputs_choose(&inputs, &from, &to, &chosen);
	for (size_t i = 0; i < chosen.len; i++) {
		int day, minute;

		assert_int_equal(sscanf(chosen.items[i].path + strlen(folder), "/profile_2025-11-%dT12-%d-00.duet",
					&day, &minute),
				 2);
		buf_printf(&got, "%d:%d ", day, minute);
	}
	assert_string_equal(got.data, want);
	assert_int_equal(err, *want ? 0 : -ENOENT);
	buf_release(&got);
	vec_release(&chosen);
	inputs_release(&inputs);
}

static void windows_that_overlap(void **state)
{
	/* the last such time; a window's end is known to a second */
	expect("12:02", "12:03", "21:2 21:3 ");
	expect("12:02:30", "12:03:30", "21:3 21:4 ");
	expect("2025-11-20T12:05:30", "12:06:30", "20:6 20:7 ");
	expect("2025-11-20T12:09:30", "2025-11-21T12:00:30", "20:10 21:1 ");
	expect("12:05:30", "12:07:30", "21:8 ");
	expect("12:05:30", "12:03", "21:8 21:9 21:10 ");
	expect("-30s", "", "21:10 ");
	expect("30s", "90s", "20:1 20:2 ");
	expect("", "2025-11-20T12:01:30", "20:1 20:2 ");
	expect("12:08:30", "12:09:30", "21:9 21:10 ");
}

static void times_become_dates(void **state)
{
	struct moment from = moment_of("12:02"), to = moment_of("12:03");
	struct inputs inputs = {0}, chosen = {0};

	assert_int_equal(inputs_expand(&inputs, (char *[]){folder}, 1, true), 0);
	assert_int_equal(inputs_choose(&inputs, &from, &to, &chosen), 0);
	assert_int_equal(from.kind, MOMENT_DATE);
	assert_int_equal(to.kind, MOMENT_DATE);
	assert_int_equal(from.ns, (DAY + 86400 + NOON + 2 * MINUTE) * NS_PER_SEC);
	assert_int_equal(to.ns, from.ns + MINUTE * NS_PER_SEC);
	vec_release(&chosen);
	inputs_release(&inputs);
}

static void no_window_of_the_time(void **state)
{
	expect("2025-11-19T12:00", "2025-11-19T13:00", "");
	expect("2025-11-22T12:00", "", "");
	expect("12:05:30", "12:06", ""); /* the gap */
	expect("12:30", "12:40", ""); /* of the day before: the newest window ends before that */
	expect("", "2025-11-20T12:00:00", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_that_overlap),
		cmocka_unit_test(times_become_dates),
		cmocka_unit_test(no_window_of_the_time),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
