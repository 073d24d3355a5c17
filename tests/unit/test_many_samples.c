/* SPDX-License-Identifier: MIT */
/* Recordings of so many samples that writers merge them: nothing gets lost, and the file stays small. */
#include "fixtures/read_back.h"

#include <zlib.h>

#include "out/ordered.h"
#include "out/path.h"

#define STACKS 3
#define SECOND 1000000000ull

static struct profile profile;
static uint32_t threads[2], stacks[STACKS];
static char *page; /* that was written last */

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(profile_init(&profile), 0);
	profile.start_realtime_ns = 1700000000 * SECOND;
	assert_int_equal(profile_event(&profile, "cpu", PROFILE_NS, 10), 0);
	assert_int_equal(profile_event(&profile, "alloc", PROFILE_BYTES, 1), 1);
	threads[0] = profile_thread(&profile, 1, 1, "main", "java", 0);
	threads[1] = profile_thread(&profile, 1, 2, "other", "java", 0);
	for (uint32_t i = 0; i < STACKS; i++) {
		char name[] = {(char)('a' + i), '\0'};
		struct frame frame = {.kind = FRAME_NATIVE, .name = intern_str(&profile.strings, name), .bci = -1};

		stacks[i] = profile_child(&profile, 0, profile_frame(&profile, &frame));
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	profile_release(&profile);
	return 0;
}

static void add(uint64_t time_ns, uint32_t event, uint32_t number)
{
	assert_int_equal(profile_add(&profile, &(struct profile_sample){.time_ns = time_ns,
									.weight = 10 + number % 3,
									.thread = threads[number % 2],
									.node = stacks[number % STACKS],
									.count = 1,
									.event = event}),
			 0);
}

static void expect_short_perf_text(void)
{
	struct profile copy;
	struct buf why;
	size_t len;
	char *bytes = written_file("perf", &profile, &len);

	assert_true(len < 4096);
	buf_init(&why);
	assert_int_equal(read_bytes(&copy, bytes, len, &why), 0);
	assert_same_in_all_styles(&profile, &copy);
	assert_int_equal(copy.samples.recent.items[0].time_ns, 1700000000 * SECOND);
	free(bytes);
	profile_release(&copy);
	buf_release(&why);
}

static void perf_is_merged_and_read_back(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ORDERED_MAX + 7; i++)
		add(i, i % 5 == 0, i);
	profile.end_ns = ORDERED_MAX + 7;
	expect_short_perf_text();
}

/* A file may say that one sample stands for any number. */
static void perf_does_not_repeat_one_of_many(void **state)
{
	struct profile_sample sample = {.weight = 5, .thread = threads[0], .node = stacks[1], .count = 200000001};

	(void)state;
	assert_int_equal(profile_add(&profile, &sample), 0);
	profile.end_ns = 1;
	expect_short_perf_text();
}

/* ---- the heat map's page ---- */

static int digit_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes base64 up to the first character that is none. The caller frees the bytes. */
static char *decoded(const char *text, size_t *ret_len)
{
	char *bytes = malloc(strlen(text));
	uint32_t bits = 0;

	assert_non_null(bytes);
	*ret_len = 0;
	for (size_t i = 0; digit_of(text[i]) >= 0; i++) {
		bits = bits << 6 | (uint32_t)digit_of(text[i]);
		if (i % 4)
			bytes[(*ret_len)++] = (char)(bits >> (6 - 2 * (i % 4)));
	}
	return bytes;
}

static unsigned char *inflate_all(const char *bytes, size_t len, size_t most)
{
	unsigned char *data = calloc(1, most);
	z_stream stream = {
		.next_in = (unsigned char *)bytes, .avail_in = (uInt)len, .next_out = data, .avail_out = (uInt)most};

	assert_non_null(data);
	assert_int_equal(inflateInit2(&stream, 31), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	inflateEnd(&stream);
	return data;
}

static uint64_t number(const unsigned char **at)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	for (; **at & 0x80; shift += 7)
		value |= (uint64_t)(*(*at)++ & 0x7f) << shift;
	return value | (uint64_t) * (*at)++ << shift;
}

/* Skips names and nodes. */
static const unsigned char *rows_of(const unsigned char *at)
{
	for (uint64_t names = number(&at); names; names--)
		at += number(&at);
	for (uint64_t nodes = 2 * number(&at); nodes; nodes--)
		(void)number(&at);
	return at;
}

/* Reads an event's columns. Steps never go back. Returns the sum of the values. */
static uint64_t sum_of(const unsigned char **at, uint64_t *ret_rows, uint64_t *ret_last_step)
{
	uint64_t sum = 0;

	*ret_rows = number(at);
	*ret_last_step = 0;
	for (uint64_t i = 0; i < *ret_rows; i++) {
		uint64_t step = number(at);

		assert_true(step < UINT32_MAX);
		*ret_last_step += step;
	}
	for (uint64_t i = 0; i < 2 * *ret_rows; i++)
		(void)number(at);
	for (uint64_t i = 0; i < *ret_rows; i++)
		sum += number(at);
	return sum;
}

static void expect_map(uint64_t step_ms, const uint64_t samples[2], const uint64_t rows[2],
		       const uint64_t last_steps[2])
{
	size_t len;
	char *packed, step[32];
	unsigned char *bytes;
	const unsigned char *at;

	page = written_file("heatmap", &profile, &len);
	snprintf(step, sizeof(step), "\"stepMs\":%u,", (unsigned int)step_ms);
	assert_non_null(strstr(page, step));
	assert_non_null(strstr(page, "H4sI"));
	packed = decoded(strstr(page, "H4sI"), &len);
	bytes = inflate_all(packed, len, 64 << 20);
	at = rows_of(bytes);
	for (int event = 0; event < 2; event++) {
		uint64_t ret_rows, ret_last;

		assert_int_equal(sum_of(&at, &ret_rows, &ret_last), samples[event]);
		assert_int_equal(ret_rows, rows[event]);
		if (ret_rows)
			assert_int_equal(ret_last, last_steps[event]);
	}
	free(bytes);
	free(packed);
	free(page);
}

/* Later samples of an earlier time, as in merged recordings, are in the row of the earlier ones. */
static void heat_map_of_any_order(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 6000; i++)
			add(i * SECOND / 100, i % 6 == 5, i);
	expect_map(10, (uint64_t[]){10000, 2000}, (uint64_t[]){5000, 1000}, (uint64_t[]){5998, 5999});
}

/* A sample in each step of 10 ms is too much: 20 ms have two, of different threads and stacks, 100 ms have six rows. */
static void heat_map_with_longer_steps(void **state)
{
	const uint64_t count = 5000000;

	(void)state;
	for (uint32_t i = 0; i < count; i++)
		add(i * (SECOND / 100), 0, i);
	expect_map(200, (uint64_t[]){count, 0}, (uint64_t[]){count / 20 * 6, 0}, (uint64_t[]){count / 20 - 1, 0});
}

/* ---- deep stacks ---- */

/* Each cut stack has frames of its own in a tree: when they are many, they are short, and are counted. */
static void stacks_that_are_cut(void **state)
{
	struct path_labels labels;
	struct writer_options options;
	struct path_maker path;
	uint64_t cut = 0, short_ones = 0;
	uint32_t node = 0;

	(void)state;
	for (uint32_t i = 0; i < 20000; i++)
		node = profile_child(&profile, node, profile.nodes.items[stacks[i % STACKS]].frame);
	writer_options_default(&options);
	options.cut = &cut;
	assert_int_equal(path_labels_init(&labels), 0);
	assert_int_equal(path_maker_init(&path, &labels, &profile, &options), 0);
	for (node = STACKS + 1; node < profile.nodes.len; node++) {
		assert_int_equal(path_make(&path, 0, node), 1);
		short_ones += path.depth == PATH_SHORT + 1 && node > PATH_DEEP;
	}
	assert_in_range(cut - short_ones, PATH_CUT_FRAMES / PATH_DEEP - 20, PATH_CUT_FRAMES / PATH_DEEP + 1);
	assert_true(short_ones > 5000);
	assert_string_equal(labels.items[path.steps.items[PATH_SHORT].label].text, PATH_TRUNCATED);
	path_maker_release(&path);
	path_labels_release(&labels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(perf_is_merged_and_read_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(perf_does_not_repeat_one_of_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(heat_map_of_any_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(heat_map_with_longer_steps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stacks_that_are_cut, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
