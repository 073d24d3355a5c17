/* SPDX-License-Identifier: MIT */
/* .duet files: the reader returns what the writer wrote, and notices truncation and damage. */
#include "fixtures/duet_files.h"

#include <errno.h>

#define START (sizeof(struct layout_start))

static struct buf why, warning;

static int setup(void **state)
{
	buf_init(&why);
	buf_init(&warning);
	return 0;
}

static int teardown(void **state)
{
	buf_release(&why);
	buf_release(&warning);
	return 0;
}

/* A profile with rows in every table and values in every field. */
static void full_profile(struct profile *p)
{
	uint32_t *host = (uint32_t *)&p->host, *texts, thread, frame, other;
	struct profile_owner owner = {.start_ticks = 12345, .pid = 7, .ns_pid = 1};
	char text[32];

	profile_of_everything(p);
	texts = &owner.executable;
	for (size_t i = 0; i < 14; i++) {
		snprintf(text, sizeof(text), "owner %zu", i);
		texts[i] = intern_str(&p->strings, text);
		snprintf(text, sizeof(text), "host %zu", i);
		host[i] = intern_str(&p->strings, text);
	}
	p->host.processors = 8;
	p->host.loader = 4711;
	p->host.memory_bytes = 1ull << 40;
	p->host.spawned_realtime_ns = 1700000000ull * 1000 * MS;
	p->host.spawned_boot_ns = 99 * MS;
	p->host.cpu_percent = 12.5;
	p->host.memory_percent = 99.75;
	thread = profile_virtual_thread(p, 100, 5, "alone", "java", profile_owner(p, &owner));
	other = profile_virtual_thread(p, 100, 6, "two", "java", profile_owner(p, &owner));
	assert_int_equal(profile_virtual_thread(p, 100, 7, "two", "java", profile_owner(p, &owner)), other);
	frame = frame_of(p, FRAME_CONTAINER, "a frame", "");
	ADD_STACK(p, thread, 3, frame);
	ADD_STACK(p, other, 2, frame);
	assert_int_equal(profile_event(p, "page-faults", PROFILE_COUNT, 3), 1);
	assert_int_equal(profile_add(p, &(struct profile_sample){.time_ns = 77, .weight = 3, .thread = thread,
								 .node = 1, .count = 2, .event = 1}),
			 0);
	profile_add_note(p, &(struct profile_note){.time_ns = 51, .kind = PROFILE_NOTE_PROPERTY, .pid = 100}, "key",
			 "");
	profile_add_note(p,
			 &(struct profile_note){.time_ns = 50 + MS,
						.numbers = {1, 2, 3, UINT64_MAX},
						.kind = PROFILE_NOTE_HEAP,
						.pid = 100},
			 NULL, NULL);
	assert_int_equal(profile_add_usage(p, &(struct profile_usage){.time_ns = 50 + 2 * MS,
								      .load_ppm = 1000000,
								      .written_bytes = UINT64_MAX,
								      .pid = 100,
								      .name = intern_str(&p->strings, "java"),
								      .command = intern_str(&p->strings, "java -v")}),
			 0);
	p->host.usages_ns = 1000 * MS;
	p->start_ns = 50;
	p->end_ns = 50 + 7500 * MS;
	p->start_realtime_ns = 1700000001ull * 1000 * MS;
	p->processes = PROFILE_IF_SEVERAL;
	p->is_private = true;
}

static void everything_comes_back(void **state)
{
	struct profile before, after;
	struct bytes file;

	full_profile(&before);
	file = bytes_of(&before);
	read_whole(&after, &file);
	assert_same_files(&before, &after);
	assert_int_equal(after.frames.len, before.frames.len);
	assert_int_equal(after.nodes.len, before.nodes.len);
	assert_int_equal(after.threads.len, before.threads.len);
	assert_int_equal(after.owners.len, before.owners.len);
	assert_int_equal(after.notes.len, before.notes.len);
	assert_string_equal(intern_text(&after.strings, after.notes.items[0].texts[0]), "key");
	assert_int_equal(after.notes.items[1].time_ns, after.start_ns + MS);
	assert_memory_equal(after.notes.items[1].numbers, before.notes.items[1].numbers, 4 * sizeof(uint64_t));
	assert_int_equal(after.usages.len, 1);
	assert_int_equal(after.usages.items[0].time_ns, after.start_ns + 2 * MS);
	assert_int_equal(after.usages.items[0].written_bytes, UINT64_MAX);
	assert_string_equal(intern_text(&after.strings, after.usages.items[0].command), "java -v");
	assert_int_equal(after.host.usages_ns, 1000 * MS);
	assert_memory_equal(after.nodes.items, before.nodes.items, before.nodes.len * sizeof(*before.nodes.items));
	assert_int_equal(after.samples.len, before.samples.len);
	assert_int_equal(after.samples.recent.items[0].time_ns,
			 before.start_realtime_ns + before.samples.recent.items[0].time_ns - before.start_ns);
	assert_int_equal(after.events.items[1].interval, 3);
	assert_int_equal(after.events.items[1].unit, PROFILE_COUNT);
	assert_int_equal(after.start_ns, before.start_realtime_ns);
	assert_int_equal(after.end_ns - after.start_ns, 7500 * MS);
	assert_int_equal(after.owners.items[before.owners.len - 1].start_ticks, 12345);
	assert_string_equal(intern_text(&after.strings, after.owners.items[before.owners.len - 1].pod_uid), "owner 13");
	assert_string_equal(intern_text(&after.strings, after.host.cloud_type), "host 13");
	assert_true(after.host.memory_percent == 99.75);
	assert_true(after.is_private);
	free(file.data);
	profile_release(&before);
	profile_release(&after);
}

static void an_empty_profile_comes_back(void **state)
{
	struct profile before, after;
	struct bytes file;

	assert_int_equal(profile_init(&before), 0);
	file = bytes_of(&before);
	read_whole(&after, &file);
	assert_int_equal(after.samples.len, 0);
	assert_same_files(&before, &after);
	free(file.data);
	profile_release(&before);
	profile_release(&after);
}

/* ---- files written step by step ---- */

struct growing {
	struct profile profile;
	struct bytes file;
	FILE *out;
	struct writer_stream *stream;
	size_t ends[1024]; /* of the chunks so far */
	size_t chunks;
};

static void grow_open(struct growing *g)
{
	*g = (struct growing){0};
	assert_int_equal(profile_init(&g->profile), 0);
	(void)profile_event(&g->profile, "cpu", PROFILE_NS, 0);
	g->out = open_memstream((char **)&g->file.data, &g->file.len);
	g->stream = writer_by_name("duet")->stream_open(&g->profile, NULL, g->out);
	assert_non_null(g->stream);
}

static void grow_append(struct growing *g, bool is_end)
{
	assert_int_equal(writer_by_name("duet")->stream_append(g->stream, is_end), 0);
	g->profile.samples.written = g->profile.samples.len;
	g->ends[g->chunks++] = g->file.len;
	assert_true(g->chunks < 1024);
}

static void grow_close(struct growing *g)
{
	writer_by_name("duet")->stream_close(g->stream);
	fclose(g->out);
	free(g->file.data);
	profile_release(&g->profile);
}

/* Adds a frame and a stack that are new, and some that other rounds add too. */
static void add_round(struct profile *p, unsigned round)
{
	char name[32];
	uint32_t frames[3], thread;

	snprintf(name, sizeof(name), "round %u", round);
	frames[0] = frame_of(p, FRAME_NATIVE, "start", "libc.so.6");
	frames[1] = java_frame(p, FRAME_COMPILED, "A", name, "()V", (int32_t)round);
	frames[2] = frame_of(p, FRAME_KERNEL, round % 2 ? "odd" : "even", "");
	thread = profile_virtual_thread(p, 1, round, "shared", "java", owner_of(p, 1, name));
	add_stack(p, thread, 3, frames, 3);
	p->end_ns = (round + 1) * 1000 * MS;
}

/* All samples up to the last complete chunk are read, and the warning says that later ones are missing. */
static void cut_anywhere_it_is_readable(void **state)
{
	struct growing g;

	grow_open(&g);
	for (unsigned round = 0; round < 6; round++) {
		add_round(&g.profile, round);
		grow_append(&g, round == 5);
	}
	fflush(g.out);
	for (size_t len = 0, whole = 0; len < g.file.len; len++) {
		struct profile got;
		int err;

		buf_clear(&why);
		buf_clear(&warning);
		while (g.ends[whole] <= len)
			whole++;
		err = read_bytes(&got, g.file.data, len, &why, &warning);
		assert_int_equal(err < 0, whole == 0);
		assert_int_equal(why.len != 0, whole == 0);
		assert_int_equal(warning.len != 0, whole != 0);
		assert_int_equal(got.samples.len, 3 * whole);
		if (whole) {
			assert_non_null(strstr(warning.data, "was cut short"));
			assert_int_equal(got.end_ns - got.start_ns, whole * 1000 * MS);
		}
		profile_release(&got);
	}
	grow_close(&g);
}

static void grown_is_like_written_at_once(void **state)
{
	struct profile after;
	struct growing g;

	grow_open(&g);
	for (unsigned round = 0; round < 40; round++) {
		add_round(&g.profile, round);
		if (round == 39)
			profile_add_loss(&g.profile, 5, "lost");
		grow_append(&g, round == 39);
	}
	fflush(g.out);
	read_whole(&after, &g.file);
	assert_same_files(&g.profile, &after);
	assert_int_equal(profile_virtual_id(&after, 0), 0);
	profile_release(&after);
	grow_close(&g);
}

/* A row that the file has already is that of the program which is known later. Another process's stays unknown. */
static void a_program_is_known_later(void **state)
{
	struct profile_owner young = {.pid = 300, .start_ticks = 7}, other = {.pid = 300, .start_ticks = 8};
	struct profile after;
	struct growing g;
	size_t shops = 0, known = 0;

	grow_open(&g);
	profile_owner(&g.profile, &young);
	profile_owner(&g.profile, &other);
	grow_append(&g, false);
	young.service = intern_str(&g.profile.strings, "shop");
	young.attributes = intern_str(&g.profile.strings, "service.name=shop\n");
	young.application = intern_str(&g.profile.strings, "shop.jar");
	profile_owner(&g.profile, &young);
	grow_append(&g, true);
	fflush(g.out);
	read_whole(&after, &g.file);
	for (size_t i = 1; i < after.owners.len; i++) {
		const struct profile_owner *owner = &after.owners.items[i];

		shops += owner->pid == 300 && !strcmp(intern_text(&after.strings, owner->service), "shop") &&
			 !strcmp(intern_text(&after.strings, owner->application), "shop.jar");
		known += owner->service != 0;
	}
	assert_int_equal(shops, 2);
	assert_int_equal(known, 2);
	profile_release(&after);
	grow_close(&g);
}

/* The facts written at the end replace those written at the start. */
static void the_last_facts_count(void **state)
{
	struct profile after;
	struct growing g;

	grow_open(&g);
	profile_add_fact(&g.profile, "state", "it begins");
	grow_append(&g, false);
	vec_clear(&g.profile.facts);
	grow_append(&g, false);
	fflush(g.out);
	assert_int_equal(read_bytes(&after, g.file.data, g.file.len, &why, &warning), 0);
	assert_int_equal(after.facts.len, 2);
	assert_string_equal(intern_text(&after.strings, after.facts.items[0].value), "it begins");
	assert_string_equal(intern_text(&after.strings, after.facts.items[1].key), "incomplete");
	profile_release(&after);
	profile_add_fact(&g.profile, "state", "it is over");
	grow_append(&g, true);
	fflush(g.out);
	read_whole(&after, &g.file);
	assert_int_equal(after.facts.len, 1);
	assert_string_equal(intern_text(&after.strings, after.facts.items[0].value), "it is over");
	profile_release(&after);
	grow_close(&g);
}

/* Long enough for the tables to be repeated. `ret_part_0` is the offset of the last chunk with part 0. */
static void grow_long(struct growing *g, size_t *ret_part_0)
{
	struct layout_chunk chunk;

	grow_open(g);
	*ret_part_0 = 0;
	for (unsigned round = 0; round < 8; round++) {
		uint32_t thread = profile_thread(&g->profile, 1, round, "t", "p", 0);
		uint32_t frame = frame_of(&g->profile, FRAME_NATIVE, round % 2 ? "odd" : "even", "");

		for (uint64_t i = 0; i < 100000; i++)
			assert_int_equal(add_cpu_sample(&g->profile, profile_stack(&g->profile, &frame, 1), thread,
							hash_u64(i + round) >> 20, i),
					 0);
		grow_append(g, round == 7);
	}
	fflush(g->out);
	for (size_t at = START; at < g->file.len; at += sizeof(chunk) + chunk.body_bytes) {
		memcpy(&chunk, g->file.data + at, sizeof(chunk));
		if (!chunk.part)
			*ret_part_0 = at;
	}
}

static void tables_are_repeated(void **state)
{
	struct profile after;
	struct growing g;
	size_t part_0;

	grow_long(&g, &part_0);
	assert_true(part_0 > START);
	read_whole(&after, &g.file);
	assert_same_file(writer_by_name("collapsed"), &g.profile, &after, 1); /* the repeated threads and stacks */
	assert_same_file(writer_by_name("text=full"), &g.profile, &after, 4);
	profile_release(&after);
	g.file.data[START + 100] ^= 1;
	assert_int_equal(read_bytes(&after, g.file.data, g.file.len, &why, &warning), 0);
	assert_non_null(strstr(warning.data, "are damaged"));
	assert_null(strstr(warning.data, "was cut short"));
	assert_true(after.samples.len >= 100000 && after.samples.len < 800000);
	profile_release(&after);
	grow_close(&g);
}

/* ---- damage ---- */

/* The reader returns what was written, or refuses it. */
static void every_flipped_bit_is_found(void **state)
{
	struct profile before, after;
	struct bytes file;

	full_profile(&before);
	file = bytes_of(&before);
	for (size_t bit = 0; bit < 8 * file.len; bit += bit < 8 * 100 ? 1 : 7) {
		buf_clear(&why);
		buf_clear(&warning);
		file.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_true(read_bytes(&after, file.data, file.len, &why, &warning) < 0);
		assert_true(why.len > 0);
		file.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
		profile_release(&after);
	}
	free(file.data);
	profile_release(&before);
}

static void a_newer_version_is_refused(void **state)
{
	const struct layout_start newer = {.magic = LAYOUT_MAGIC, .version = 2, .bytes = sizeof(newer)};
	struct profile after;

	assert_int_equal(read_bytes(&after, &newer, sizeof(newer), &why, &warning), -EPROTONOSUPPORT);
	assert_string_equal(why.data, "it is of version 2, this duet reads version 1: use a newer duet");
	profile_release(&after);
}

static void what_is_none_is_refused(void **state)
{
	const char *const texts[] = {"", "a;b;c 12\n", "\x89PNG\r\n\x1a\n", "\x7f" "ELF"};
	struct profile after;

	for (size_t i = 1; i < sizeof(texts) / sizeof(*texts); i++) {
		buf_clear(&why);
		if (read_bytes(&after, texts[i], strlen(texts[i]), &why, &warning) < 0)
			assert_true(why.len > 0);
		profile_release(&after);
	}
	buf_clear(&why);
	assert_int_equal(read_bytes(&after, "", 0, &why, &warning), -EINVAL);
	assert_string_equal(why.data, "the file is empty");
	profile_release(&after);
}

/* ---- files made by hand ---- */

/* A file of one chunk, section by section. */
struct made {
	struct buf body;
	struct layout_chunk chunk;
};

static void made_add(struct made *made, uint16_t type, uint32_t row_bytes, const void *bytes, size_t len)
{
	const struct layout_section section = {.type = type,
					       .row_bytes = row_bytes,
					       .raw_bytes = (uint32_t)len,
					       .stored_bytes = (uint32_t)len};

	buf_add(&made->body, &section, sizeof(section));
	buf_add(&made->body, bytes, len);
	made->chunk.sections++;
}

static int made_read(struct made *made, struct profile *ret_profile)
{
	const struct layout_start start = {.magic = LAYOUT_MAGIC, .version = LAYOUT_VERSION, .bytes = sizeof(start)};
	struct bytes file;
	struct buf all;
	int err;

	made->chunk.magic = LAYOUT_CHUNK_MAGIC;
	made->chunk.flags = LAYOUT_END;
	made->chunk.body_bytes = made->body.len;
	buf_init(&all);
	buf_add(&all, &start, sizeof(start));
	buf_add(&all, &made->chunk, sizeof(made->chunk));
	buf_add(&all, made->body.data, made->body.len);
	file = (struct bytes){(unsigned char *)all.data, all.len};
	mend_chunk(&file, START);
	buf_clear(&why);
	err = read_bytes(ret_profile, file.data, file.len, &why, &warning);
	buf_release(&all);
	return err;
}

static void unknown_sections_and_fields_are_skipped(void **state)
{
	struct made made = {0};
	struct profile after;
	struct layout_node node[2] = {{.up = 1}, {0}}; /* a row of 16 bytes, the last eight of a later version */
	uint32_t frame[2] = {4000, 1}; /* a row of an earlier version; the kind is of a later one */
	uint32_t sample[9] = {5, 0, 6, 0, 0, 1, 1, 0, 0xffffffff};
	uint32_t event[4] = {2, 999, 1, 0}, thread[4] = {1, 2, 1, 1};
	unsigned char texts[] = "\4\0\0\0name\3\0\0\0cpu";

	buf_init(&made.body);
	made_add(&made, LAYOUT_TEXTS, 0, texts, sizeof(texts) - 1);
	made_add(&made, 1000, 5, "12345", 5);
	made_add(&made, LAYOUT_EVENTS, 16, event, sizeof(event));
	made_add(&made, LAYOUT_FRAMES, 8, frame, sizeof(frame));
	made_add(&made, LAYOUT_THREADS, 16, thread, sizeof(thread));
	made_add(&made, LAYOUT_NODES, 16, node, sizeof(node));
	made_add(&made, LAYOUT_SAMPLES, 36, sample, sizeof(sample));
	assert_int_equal(made_read(&made, &after), 0);
	assert_string_equal(warning.data, "");
	assert_int_equal(after.samples.len, 1);
	assert_int_equal(after.frames.items[0].kind, FRAME_NATIVE);
	assert_string_equal(intern_text(&after.strings, after.frames.items[0].name), "name");
	assert_int_equal(after.events.items[0].unit, PROFILE_COUNT);
	profile_release(&after);
	buf_release(&made.body);
}

/* The checksums are right, the contents are not. */
static void numbers_out_of_range_are_refused(void **state)
{
	static const struct {
		uint16_t type;
		uint32_t row_bytes, numbers[8];
		size_t len;
	} bad[] = {
		{LAYOUT_NODES, 8, {0, 0}, 8}, /* its own parent */
		{LAYOUT_NODES, 8, {2, 0}, 8}, /* a parent above the root */
		{LAYOUT_NODES, 8, {1, 0}, 8}, /* a frame that is not there */
		{LAYOUT_NODES, 0, {1, 0}, 8},
		{LAYOUT_NODES, 3, {1, 0}, 8},
		{LAYOUT_NODES, 5000, {0}, 0},
		{LAYOUT_THREADS, 32, {1, 1, 0, 0, 5}, 32}, /* an owner that is not there */
		{LAYOUT_SAMPLES, 32, {1, 0, 1, 0, 0, 0, 1, 0}, 32}, /* no event, no thread */
		{LAYOUT_TEXTS, 0, {100}, 4},
		{LAYOUT_TEXTS, 0, {0}, 3},
		{LAYOUT_TEXTS, 0, {UINT32_MAX}, 8},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct made made = {0};
		struct profile after;

		buf_init(&made.body);
		made_add(&made, bad[i].type, bad[i].row_bytes, bad[i].numbers, bad[i].len);
		assert_int_equal(made_read(&made, &after), -EBADMSG);
		assert_non_null(strstr(why.data, "the chunk at byte 16 is invalid"));
		profile_release(&after);
		buf_release(&made.body);
	}
}

/* Sizes over the limits are refused before memory is allocated. */
static void sizes_are_bounded(void **state)
{
	struct layout_section section = {.type = LAYOUT_NODES, .coding = LAYOUT_DEFLATE, .row_bytes = 8};
	struct made made = {0};
	struct profile after;

	buf_init(&made.body);
	section.raw_bytes = LAYOUT_SECTION_MAX + 8;
	buf_add(&made.body, &section, sizeof(section));
	made.chunk.sections = 1;
	assert_int_equal(made_read(&made, &after), -EBADMSG);
	profile_release(&after);
	made.chunk.sections = LAYOUT_SECTIONS_MAX + 1;
	assert_true(made_read(&made, &after) < 0);
	profile_release(&after);
	buf_release(&made.body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_profile_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(cut_anywhere_it_is_readable, setup, teardown),
		cmocka_unit_test_setup_teardown(grown_is_like_written_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_program_is_known_later, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_facts_count, setup, teardown),
		cmocka_unit_test_setup_teardown(tables_are_repeated, setup, teardown),
		cmocka_unit_test_setup_teardown(every_flipped_bit_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(a_newer_version_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_none_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_sections_and_fields_are_skipped, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_out_of_range_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(sizes_are_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
