/* SPDX-License-Identifier: MIT */
/* JFR files with chunks of several makers: what is read does not depend on their order. */
#include "fixtures/read_back.h"

#include "profile/jfr.h"

static void add(struct profile *p, uint32_t event, uint64_t weight, uint32_t count)
{
	uint32_t run = java_frame(p, FRAME_COMPILED, "a.Main", "run", "()V", 10);
	uint32_t object = frame_of(p, FRAME_CLASS, "java.lang.String", "");
	const struct profile_sample sample = {
		.time_ns = p->start_ns + p->samples.len * MS,
		.weight = weight,
		.thread = profile_thread(p, 1, 1, "main", "java", 0),
		.node = profile_stack(p, (uint32_t[]){run, object}, event ? 2 : 1),
		.count = count,
		.event = event,
	};

	assert_int_equal(profile_add(p, &sample), 0);
}

static void rename_all(char *bytes, size_t len, const char *from, const char *to)
{
	char *at = bytes;

	assert_int_equal(strlen(from), strlen(to));
	while ((at = memmem(at, len - (size_t)(at - bytes), from, strlen(from))))
		memcpy(at, to, strlen(to));
}

/* A chunk of the JDK's types, or of async-profiler's: without what duet tells of its events. */
static void add_chunk(struct buf *file, bool is_jdk)
{
	struct writer_options options;
	struct profile p;
	size_t len;
	FILE *out;
	char *bytes = NULL;

	assert_int_equal(profile_init(&p), 0);
	p.start_ns = p.start_realtime_ns = 1700000000 * (1000 * MS);
	(void)profile_event(&p, "cpu", PROFILE_NS, is_jdk ? 20 * MS : 10 * MS);
	(void)profile_event(&p, "alloc", PROFILE_BYTES, 1);
	for (int i = 0; i < 3; i++)
		add(&p, 0, is_jdk ? 20 * MS : 10 * MS, 1);
	add(&p, 1, is_jdk ? 1000 : 77, 1);
	writer_options_default(&options);
	options.tlab = !is_jdk;
	out = open_memstream(&bytes, &len);
	assert_int_equal(writer_by_name("jfr")->write(&p, &options, out), 0);
	fclose(out);
	rename_all(bytes, len, JFR_TYPE_FACT, "dukt.Fact");
	rename_all(bytes, len, JFR_TYPE_WEIGHT, "dukt.Weight");
	rename_all(bytes, len, "\3\5" JFR_SETTING_EVENT, "\3\5ev_nt");
	rename_all(bytes, len, JFR_SETTING_NAME, "ev_ntName");
	if (is_jdk)
		rename_all(bytes, len, "profiler.", "prefiler.");
	buf_add(file, bytes, len);
	free(bytes);
	profile_release(&p);
}

static uint64_t weight_of(const struct profile *p, const char *event)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->events.len; i++)
		if (!strcmp(intern_text(&p->strings, p->events.items[i].name), event))
			for (size_t k = 0; k < p->samples.recent.len; k++)
				sum += p->samples.recent.items[k].event == i ? p->samples.recent.items[k].weight : 0;
	return sum;
}

static void read_chunks(const struct buf *file, struct profile *ret)
{
	struct buf why;

	buf_init(&why);
	assert_int_equal(read_bytes(ret, file->data, file->len, &why), 0);
	assert_string_equal(why.data, "");
	buf_release(&why);
}

/* `order`: a letter a chunk, j: of the JDK, a: of async-profiler. */
static void expect_sums(const char *order, uint64_t cpu_ms, uint64_t alloc, uint64_t alloc_sample)
{
	struct profile p;
	struct buf file;

	buf_init(&file);
	for (const char *at = order; *at; at++)
		add_chunk(&file, *at == 'j');
	read_chunks(&file, &p);
	assert_int_equal(weight_of(&p, "cpu"), cpu_ms * MS);
	assert_int_equal(weight_of(&p, "alloc"), alloc);
	assert_int_equal(weight_of(&p, "alloc-sample"), alloc_sample);
	profile_release(&p);
	buf_release(&file);
}

static void order_of_chunks(void **state)
{
	expect_sums("j", 60, 1000, 0);
	expect_sums("a", 30, 77, 0);
	expect_sums("ja", 90, 77, 1000);
	expect_sums("aj", 90, 77, 1000);
	expect_sums("jaj", 150, 77, 2000);
	expect_sums("aja", 120, 154, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(order_of_chunks)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
