/* SPDX-License-Identifier: MIT */
/* Recordings of so many samples that writers merge them: nothing gets lost, and the file stays small. */
#include "fixtures/read_back.h"

#include <inttypes.h>
#include <zlib.h>

#include "writers/shared/ordered.h"
#include "writers/shared/path.h"

#define STACKS 3
#define SECOND 1000000000ull

static struct profile profile;
static uint32_t threads[2], stacks[STACKS];
static char *page; /* that was written last */

static int set_up(void **state)
{
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
	for (uint32_t i = 0; i < ORDERED_MAX + 7; i++)
		add(i, i % 5 == 0, i);
	profile.end_ns = ORDERED_MAX + 7;
	expect_short_perf_text();
}

/* A file may say that one sample stands for any number. */
static void perf_does_not_repeat_one_of_many(void **state)
{
	struct profile_sample sample = {.weight = 5, .thread = threads[0], .node = stacks[1], .count = 200000001};

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

/* Rows are those of the file. */
struct table {
	unsigned int step_ms;
	bool has_threads, has_stacks;
	uint64_t samples, rows, last_step, weight;
};

/* Reads series, then rows. The steps of a series rise. Returns the place behind them. */
static const unsigned char *read_table(const unsigned char *at, struct table *table)
{
	uint64_t count = number(&at), all = 0;
	uint64_t *rows = calloc(count + 1, sizeof(*rows));

	assert_non_null(rows);
	for (uint64_t i = 0; i < count; i++) {
		for (int skipped = table->has_threads + table->has_stacks; skipped; skipped--)
			(void)number(&at);
		rows[i] = number(&at);
		all += rows[i];
	}
	assert_int_equal(all, table->rows);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t step = 0;

		for (uint64_t row = 0; row < rows[i]; row++) {
			uint64_t more = number(&at);

			assert_true(!row || more);
			step += more;
		}
		if (step > table->last_step)
			table->last_step = step;
	}
	for (uint64_t row = 0; row < all; row++)
		table->samples += number(&at);
	for (uint64_t row = 0; row < all; row++) {
		uint64_t rest = number(&at);

		table->weight += rest % 2 ? -(rest + 1) / 2 : rest / 2;
	}
	free(rows);
	return at;
}

/* Weights are differences to 10 a sample of cpu, and to 1 of alloc. */
static void expect_table(const struct table *want, const struct table *got)
{
	assert_int_equal(got->step_ms, want->step_ms);
	assert_int_equal(got->has_threads, want->has_threads);
	assert_int_equal(got->has_stacks, want->has_stacks);
	assert_int_equal(got->samples, want->samples);
	assert_int_equal(got->rows, want->rows);
	assert_int_equal(got->last_step, want->last_step);
	assert_int_equal(got->weight, want->weight);
}

/* Reads the next table of this heat map, or returns NULL. */
static const char *next_head(const char *at, const char *end, struct table *table)
{
	char has_threads[6], has_stacks[6];

	at = strstr(at, "{\"stepMs\":");
	if (!at || at > end)
		return NULL;
	*table = (struct table){0};
	assert_int_equal(sscanf(at, "{\"stepMs\":%u,\"hasThreads\":%5[a-z],\"hasStacks\":%5[a-z],\"rows\":%" SCNu64 "}",
				&table->step_ms, has_threads, has_stacks, &table->rows),
			 4);
	table->has_threads = !strcmp(has_threads, "true");
	table->has_stacks = !strcmp(has_stacks, "true");
	return at + 1;
}

/* Checks the heat map of the next event. Returns the place behind it. */
static const char *expect_map(const char *text, const struct table *want, int count)
{
	const char *begin = strstr(text, "\"heat\":"), *rows, *head;
	unsigned char *bytes;
	const unsigned char *at;
	struct table got;
	char *packed;
	size_t len;
	int i = 0;

	assert_non_null(begin);
	rows = strstr(begin, "H4sI");
	assert_non_null(rows);
	packed = decoded(rows, &len);
	at = bytes = inflate_all(packed, len, 64 << 20);
	for (head = next_head(begin, rows, &got); head; head = next_head(head, rows, &got), i++) {
		assert_true(i < count);
		at = read_table(at, &got);
		expect_table(&want[i], &got);
	}
	assert_int_equal(i, count);
	free(bytes);
	free(packed);
	return rows;
}

static void expect_first_map(const struct table *want, int count)
{
	size_t len;

	page = written_file("heatmap", &profile, &len);
	(void)expect_map(page, want, count);
	free(page);
}

/* Later samples of an earlier time, as in merged recordings, are in the row of the earlier ones. */
static void heat_map_of_any_order(void **state)
{
	const struct table cpu = {10, true, true, 125000, 62500, 74998, 100000};
	const struct table alloc = {10, true, true, 25000, 12500, 74999, 275000};
	const char *rest;
	size_t len;

	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 75000; i++)
			add(i * SECOND / 100, i % 6 == 5, i);
	page = written_file("heatmap", &profile, &len);
	rest = expect_map(page, &cpu, 1);
	(void)expect_map(rest, &alloc, 1);
	free(page);
}

/*
 * There are too many samples for rows of 10 ms. In 100 ms there is one row by event and there are two by thread, which
 * is few enough. There are three by stack and six by thread and stack, which is too many: both tables need steps of
 * 200 ms. A table by stack with the same steps as that by both is left out.
 */
static void heat_map_with_longer_steps(void **state)
{
	enum { COUNT = 3400000 };
	const struct table want[] = {
		{100, true, false, COUNT, COUNT / 10 * 2, COUNT / 10 - 1, COUNT - 1},
		{200, true, true, COUNT, COUNT / 20 * 6, COUNT / 20 - 1, COUNT - 1},
	};

	for (uint32_t i = 0; i < COUNT; i++)
		add(i * (SECOND / 100), 0, i);
	expect_first_map(want, 2);
}

/* Each sample is of another stack: there are more series than rows are wanted. The picture is as fine as before. */
static void heat_map_of_more_stacks_than_rows(void **state)
{
	enum { FRAMES = 1440, COUNT = FRAMES * FRAMES };
	const struct table want[] = {
		{100, true, false, COUNT, COUNT / 10 * 2, COUNT / 10 - 1, COUNT},
		{43200000, true, true, COUNT, COUNT, 0, COUNT},
	};

	uint32_t frames[FRAMES];

	for (uint32_t i = 0; i < FRAMES; i++) {
		struct frame frame = {.kind = FRAME_NATIVE, .bci = -1};
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		frame.name = intern_str(&profile.strings, name);
		frames[i] = profile_frame(&profile, &frame);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t caller = profile_child(&profile, 0, frames[i / FRAMES]);

		stacks[i % STACKS] = profile_child(&profile, caller, frames[i % FRAMES]);
		add(i * (SECOND / 100), 0, i);
	}
	expect_first_map(want, 2);
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
		cmocka_unit_test_setup_teardown(heat_map_of_more_stacks_than_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stacks_that_are_cut, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
