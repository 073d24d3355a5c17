/* SPDX-License-Identifier: MIT */
/* Walks of real JVMs, captured in tests/fixtures/walk, are repeated. They must give the same frames. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "collect/records/validate.h"
#include "duet_agent.h"
#include "fixtures/walk_corpus.h"

/* The file at hand. */
static struct corpus {
	struct corpus_memory memory;
	struct vec(struct walk_native) natives;
	struct duet_jvm_layout layout;
	struct walk_regs regs;
	struct vec(struct walk_frame) expected;
	char title[96];
	uint32_t walks;
	uint32_t failed; /* walks with another result */
	uint32_t java; /* frames of Java that the walks passed */
	bool is_quiet;
} corpus;

static inline int walk_read(const void *at, void *to, uint32_t bytes, uint64_t address)
{
	return corpus_get(&corpus.memory, address, to, bytes) ? 0 : -1;
}

/* Rows come from walk_native(), without a search. */
static inline const struct duet_unwind_row *walk_row(const void *at, uint32_t index)
{
	return NULL;
}

#include "fixtures/walk_turns.h"

static struct walk walk;

static int walk_native(uint64_t pc, struct walk_native *ret)
{
	for (size_t i = 0; i < corpus.natives.len; i++) {
		if (corpus.natives.items[i].pc != pc)
			continue;
		*ret = corpus.natives.items[i];
		return 1;
	}
	return 0;
}

/* ---- one walk ---- */

static void say(const char *what, size_t frame)
{
	if (!corpus.is_quiet)
		print_error("walk %u (%s): %s at frame %zu\n", corpus.walks, corpus.title, what, frame);
}

static bool frames_are_expected(void)
{
	for (size_t i = 0; i < walk.walked && i < corpus.expected.len; i++) {
		const struct walk_frame *expected = &corpus.expected.items[i];

		if (walk.sample.stack[i] == expected->address && walk.ids[i] == expected->id)
			continue;
		say("another frame", i);
		return false;
	}
	if (walk.walked == corpus.expected.len)
		return true;
	say(walk.walked < corpus.expected.len ? "ends early" : "goes on", walk.walked);
	return false;
}

static bool are_aligned(const uint16_t *offsets, size_t count, uint32_t bytes)
{
	for (size_t i = 0; i < count; i++)
		if (offsets[i] != DUET_JVM_NO_FIELD && offsets[i] % bytes)
			return false;
	return true;
}

/*
 * Returns true for a layout that the loader would give to BPF; also for one without a JVM. Fields must be aligned in C.
 */
static bool layout_is_sound(const struct duet_jvm_layout *layout)
{
	const uint16_t words[] = {layout->blob_name, layout->blob_code_begin, layout->nmethod_entry,
				  layout->const_pool};
	const uint16_t halves[] = {layout->blob_bytes,	  layout->blob_frame_words, layout->blob_code_offset,
				   layout->nmethod_stubs, layout->nmethod_id,	    layout->nmethod_original_pc};
	const uint16_t quarters[] = {layout->nmethod_entry_offset, layout->const_id, layout->const_code_bytes};
	static const struct duet_jvm_layout none;

	if (!memcmp(layout, &none, sizeof(none)))
		return true;
	return !(layout->blob_frame_complete % (layout->blob_frame_complete_width == 2 ? 2 : 4)) &&
	       are_aligned(words, sizeof(words) / sizeof(words[0]), 8) &&
	       are_aligned(halves, sizeof(halves) / sizeof(halves[0]), 4) &&
	       are_aligned(quarters, sizeof(quarters) / sizeof(quarters[0]), 2) &&
	       agent_record_check(DUET_AGENT_LAYOUT, layout, sizeof(*layout));
}

/* end NAME GUESSED */
static bool take_end(char *text)
{
	const char *name = strsep(&text, " "), *end;
	unsigned long guessed = text ? strtoul(text, NULL, 10) : 0;
	bool is_right;

	if (!layout_is_sound(&corpus.layout))
		return false;
	memset(&walk, 0, sizeof(walk));
	walk.java.layout = corpus.layout;
	walk_run(&walk, &corpus.regs);
	corpus.walks++;
	for (uint32_t i = 0; i < walk.walked; i++)
		corpus.java += walk.ids[i] != 0;
	is_right = frames_are_expected();
	end = corpus_ends[walk.sample.walk_end];
	if (is_right && (strcmp(name, end) || guessed != walk.sample.guessed_depth)) {
		say(end, walk.walked);
		is_right = false;
	}
	corpus.failed += !is_right;
	vec_clear(&corpus.expected);
	return true;
}

/* ---- lines ---- */

static bool take_number(char **text, uint64_t *ret, int base)
{
	char *word = strsep(text, " "), *end;

	if (!word || !*word)
		return false;
	*ret = strtoull(word, &end, base);
	return !*end;
}

/* layout NAME VALUE... */
static bool take_layout(char *text)
{
	char *name = strsep(&text, " ");
	uint64_t value;

	for (size_t i = 0; i < CORPUS_FIELD_COUNT; i++) {
		const struct corpus_field *field = &corpus_fields[i];

		if (strcmp(field->name, name))
			continue;
		for (uint32_t k = 0; k < field->count; k++) {
			if (!take_number(&text, &value, 16))
				return false;
			memcpy(corpus_field_at(&corpus.layout, field, k), &value, field->width);
		}
		return !text;
	}
	return false;
}

/* native PC IS_FILE [CFA SAVED RULE] */
static bool take_native(char *text)
{
	uint64_t is_file, cfa, saved, rule;
	struct walk_native code = {0};

	if (!take_number(&text, &code.pc, 16) || !take_number(&text, &is_file, 10))
		return false;
	code.is_file = is_file != 0;
	if (text) {
		if (!take_number(&text, &cfa, 10) || !take_number(&text, &saved, 10) || !take_number(&text, &rule, 16))
			return false;
		code.has_row = 1;
		code.row = (struct duet_unwind_row){.cfa = (int16_t)cfa, .saved = (int8_t)saved, .rule = (uint8_t)rule};
	}
	return vec_push(&corpus.natives, code) == 0;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* memory ADDRESS BYTES */
static bool take_memory(char *text)
{
	uint8_t bytes[CORPUS_LINE_BYTES];
	uint64_t address;
	size_t count = 0;

	if (!take_number(&text, &address, 16) || !text)
		return false;
	for (; text[0] && text[1] && count < sizeof(bytes); text += 2) {
		int high = digit(text[0]), low = digit(text[1]);

		if (high < 0 || low < 0)
			return false;
		bytes[count++] = (uint8_t)(high << 4 | low);
	}
	return !*text && corpus_put(&corpus.memory, address, bytes, count) == 0;
}

static bool take_walk(char *text)
{
	snprintf(corpus.title, sizeof(corpus.title), "%s", text);
	return true;
}

/* regs PC R0 ... R15 */
static bool take_regs(char *text)
{
	if (!take_number(&text, &corpus.regs.pc, 16))
		return false;
	for (int i = 0; i < DUET_FRAME_REGISTERS; i++)
		if (!take_number(&text, &corpus.regs.general[i], 16))
			return false;
	return !text;
}

/* frame ADDRESS ID NAME; the name is for people */
static bool take_frame(char *text)
{
	struct walk_frame frame;
	uint64_t id;

	if (!take_number(&text, &frame.address, 16) || !take_number(&text, &id, 16))
		return false;
	frame.id = (uint32_t)id;
	return corpus.expected.len < DUET_MAX_USER_STACK && vec_push(&corpus.expected, frame) == 0;
}

static bool take_text(char *text)
{
	return *text;
}

static bool take_line(char *line)
{
	static const struct {
		const char *name;
		bool (*take)(char *text);
	} kinds[] = {
		{"jvm", take_text},	 {"kind", take_text},	  {"layout", take_layout},
		{"native", take_native}, {"memory", take_memory}, {"walk", take_walk},
		{"regs", take_regs},	 {"frame", take_frame},	  {"end", take_end},
	};
	char *name = strsep(&line, " ");

	for (size_t i = 0; line && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return kinds[i].take(line);
	return false;
}

static void forget(void)
{
	corpus_forget(&corpus.memory);
	vec_release(&corpus.natives);
	vec_release(&corpus.expected);
	memset(&corpus, 0, sizeof(corpus));
}

/* Repeats all walks in the text, up to a malformed line, and returns its number, or 0. Changes the text. */
static unsigned int replay(char *text)
{
	unsigned int number = 1;
	char *line;

	line = strsep(&text, "\n");
	if (strcmp(line, CORPUS_FIRST_LINE))
		return number;
	while ((line = strsep(&text, "\n"))) {
		number++;
		if (!*line && !text)
			return 0;
		if (!take_line(line))
			return number;
	}
	return number; /* the last line has no end */
}

/* ---- files ---- */

/* NUL-terminated; the caller frees it. */
static char *read_text(const char *path, size_t *ret_bytes)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;
	FILE *copy = open_memstream(&text, &size);

	assert_non_null(file);
	assert_non_null(copy);
	for (int c; (c = fgetc(file)) != EOF;)
		fputc(c, copy);
	fclose(file);
	fclose(copy);
	*ret_bytes = size;
	return text;
}

/* Beside the folder of this source. */
static void find_files(glob_t *files)
{
	char pattern[4096];
	const char *last = strrchr(__FILE__, '/');

	snprintf(pattern, sizeof(pattern), "%.*s/../fixtures/walk/*.walks", last ? (int)(last - __FILE__) : 1,
		 last ? __FILE__ : ".");
	assert_int_equal(glob(pattern, 0, NULL, files), 0);
}

static void skip_elsewhere(void)
{
	if (WALK_X86)
		return;
	print_message("skipped: the walks are of x86-64\n");
	skip();
}

static void test_every_walk(void **state)
{
	uint32_t walks = 0, java = 0, failed = 0;
	unsigned int bad_line;
	glob_t files;
	size_t bytes;

	skip_elsewhere();
	find_files(&files);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		char *text = read_text(files.gl_pathv[i], &bytes);

		forget();
		bad_line = replay(text);
		if (bad_line || corpus.failed || !corpus.walks)
			print_error("%s: line %u, %u of %u walks differ\n", strrchr(files.gl_pathv[i], '/') + 1,
				    bad_line, corpus.failed, corpus.walks);
		failed += corpus.failed + (bad_line != 0) + !corpus.walks;
		walks += corpus.walks;
		java += corpus.java;
		free(text);
	}
	forget();
	globfree(&files);
	print_message("%u walks, %u frames of Java\n", walks, java);
	assert_int_equal(failed, 0);
	assert_true(walks && java);
}

/* Returns the first file's text, for tests that damage it. */
static char *first_text(size_t *ret_bytes)
{
	glob_t files;
	char *text;

	skip_elsewhere();
	find_files(&files);
	text = read_text(files.gl_pathv[0], ret_bytes);
	globfree(&files);
	forget();
	return text;
}

/* A walk with another result must be noticed: without the first word of memory, or with another layout, walks fail. */
static void test_differences_show(void **state)
{
	static const char *const spoilt[] = {"\nlayout blob_frame_words ", "\nmemory ", "\nframe ", "\nregs ",
					     "\nlayout call_stub_return "};

	for (size_t i = 0; i < sizeof(spoilt) / sizeof(spoilt[0]); i++) {
		size_t bytes;
		char *text = first_text(&bytes), *at = strstr(text, spoilt[i]);

		assert_non_null(at);
		at += strlen(spoilt[i]);
		*at = *at == '1' ? '2' : '1';
		corpus.is_quiet = true;
		assert_int_equal(replay(text), 0);
		assert_true(corpus.failed);
		free(text);
	}
	forget();
}

static void test_cut_files(void **state)
{
	size_t bytes;
	char *text = first_text(&bytes);

	for (size_t cut = 0; cut < bytes; cut += 1 + bytes / 97) {
		char *copy = strndup(text, cut);

		corpus.is_quiet = true;
		replay(copy);
		forget();
		free(copy);
	}
	free(text);
}

/* Whatever the file says, the walk reads only what it contains. */
static void test_hostile_files(void **state)
{
	uint32_t random = 1;
	size_t bytes;
	char *text = first_text(&bytes);

	for (int round = 0; round < 60; round++) {
		char *copy = strndup(text, bytes);

		for (int i = 0; i < 40; i++) {
			random = random * 1103515245 + 12345;
			char *at = copy + (((uint64_t)random * bytes) >> 32);
			if (digit(*at) >= 0)
				*at = "0123456789abcdef"[random >> 8 & 15];
		}
		corpus.is_quiet = true;
		replay(copy);
		forget();
		free(copy);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_walk),
		cmocka_unit_test(test_differences_show),
		cmocka_unit_test(test_cut_files),
		cmocka_unit_test(test_hostile_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
