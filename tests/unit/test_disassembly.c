/* SPDX-License-Identifier: MIT */
/* The instructions of functions, from files that may be anybody's. */
#include "cmd/disassembly.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "cmd/inputs.h"
#include "cmd/work.h"

enum found { FOUND_NOTHING, FOUND_SOME, FOUND_NOPS };

struct search {
	const struct opt_strings *files;
	const char *name;
};

/* In the box: what is there, as an exit code. */
static int search(void *context)
{
	const struct search *search = context;
	struct disassembly disassembly = {.files = search->files};
	const struct code_text *code = disassembly_find(&disassembly, basename(search->files->items[0]), search->name);
	enum found found = code ? FOUND_SOME : FOUND_NOTHING;
	unsigned nops = 0;

	for (size_t i = 0; code && i < code->len; i++)
		nops += !strcmp(code->text.data + code->items[i].text_at, "nop");
	if (code && !code->items[0].offset && nops >= 3 && nops <= 16)
		found = FOUND_NOPS;
	disassembly_release(&disassembly);
	return found;
}

static enum found find_in(const char *path, const char *name)
{
	const char *paths[] = {path};
	const struct opt_strings files = {.items = paths, .len = 1};
	struct search context = {&files, name};
	const struct inputs none = {0};
	const struct work work = {.inputs = &none, .codes = &files, .run = search, .context = &context};
	int code = work_run(&work);

	assert_in_range(code, FOUND_NOTHING, FOUND_NOPS);
	return (enum found)code;
}

__attribute__((noipa, used)) static void disassembled_function(void)
{
	__asm__ volatile("nop\n\tnop\n\tnop");
}

static void own_function(void **state)
{
	if (system("objdump --version >/dev/null 2>&1"))
		skip();
	assert_int_equal(find_in("/proc/self/exe", "disassembled_function"), FOUND_NOPS);
	assert_int_equal(find_in("/proc/self/exe", "no_such_function"), FOUND_NOTHING);
	assert_int_equal(find_in("/proc/self/exe", "exe+0xfffffffffffffff0"), FOUND_NOTHING);
	assert_int_equal(find_in("/proc/self/exe", "exe+0x"), FOUND_NOTHING);
	assert_int_equal(find_in("/proc/self/nothing", "disassembled_function"), FOUND_NOTHING);
	assert_int_equal(find_in("/dev/zero", "disassembled_function"), FOUND_NOTHING);
	assert_int_equal(find_in("/proc/self", "disassembled_function"), FOUND_NOTHING);
}

/* A copy of this program, cut or with bytes changed, is refused or read, and does no harm. */
static void damaged_files(void **state)
{
	char path[] = "/tmp/duet-disassembly-XXXXXX", name[64];
	int fd = mkstemp(path), from = open("/proc/self/exe", O_RDONLY);
	struct stat st;
	char *bytes;

	assert_true(fd >= 0 && from >= 0 && !fstat(from, &st));
	bytes = malloc((size_t)st.st_size);
	assert_int_equal(pread(from, bytes, (size_t)st.st_size, 0), st.st_size);
	for (size_t at = 0; at < 64; at++) {
		char *copy = malloc((size_t)st.st_size);

		memcpy(copy, bytes, (size_t)st.st_size);
		copy[at] ^= (char)0xff;
		assert_int_equal(pwrite(fd, copy, (size_t)st.st_size, 0), st.st_size);
		(void)find_in(path, "no_such_function");
		free(copy);
	}
	for (off_t len = 0; len < st.st_size; len += 1 + st.st_size / 16) {
		assert_int_equal(ftruncate(fd, len), 0);
		snprintf(name, sizeof(name), "%s+0x1000", strrchr(path, '/') + 1);
		(void)find_in(path, name);
	}
	free(bytes);
	close(from);
	close(fd);
	unlink(path);
}

static void texts(void **state)
{
	struct code_text code = {0};
	char text[] = "\n/proc/self/fd/0:     file format binary\n\n0000000000001000 <.data>:\n"
		      "    1000:\tpush   %rbp\n    1001:\tjmp    0x1000\n    1001:\tagain\n    fff:\tbefore\n"
		      "    1003:\n zz:\tnothing\n ffffffffffffffff:\tfar\n    1004:\tret";

	buf_init(&code.text);
	assert_int_equal(disassembly_parse(text, 0x1000, NULL, &code), 0);
	assert_int_equal(code.len, 4);
	assert_string_equal(code.text.data + code.items[0].text_at, "push   %rbp");
	assert_string_equal(code.text.data + code.items[1].text_at, "jmp    0x1000");
	assert_int_equal(code.items[2].offset, 3);
	assert_string_equal(code.text.data + code.items[2].text_at, "");
	assert_string_equal(code.text.data + code.items[3].text_at, "ret");
	vec_release(&code);
	buf_release(&code.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_function),
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(texts),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
