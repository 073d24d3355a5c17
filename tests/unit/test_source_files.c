/* SPDX-License-Identifier: MIT */
/* Source files in folders, and in jars that are made here byte by byte. */
#include "readers/source_files.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static char folder[] = "/tmp/duet-source.XXXXXX";

static int setup(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void put(const char *path, const void *bytes, size_t len)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	for (char *slash = strchr(whole + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(whole, 0700);
		*slash = '/';
	}
	file = fopen(whole, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

static int find(const char *path, const char *package, const char *file, struct buf *text)
{
	char whole[256], name[256];
	bool is_jar;
	int fd, err;

	snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	snprintf(name, sizeof(name), "%s%s%s", package, *package ? "/" : "", file);
	buf_clear(text);
	fd = source_files_open(whole, name);
	is_jar = fd == -ENOTDIR;
	if (is_jar)
		fd = source_files_open(whole, "");
	if (fd < 0)
		return fd;
	err = source_files_read(fd, is_jar ? name : NULL, text);
	close(fd);
	return err;
}

static void in_folders(void **state)
{
	struct buf text;

	buf_init(&text);
	put("a/com/acme/Main.java", "whole", 5);
	put("b/java.base/com/acme/Main.java", "module", 6);
	put("c/Main.java", "flat", 4);
	assert_int_equal(find("a", "com/acme", "Main.java", &text), 0);
	assert_string_equal(text.data, "whole");
	assert_int_equal(find("b", "com/acme", "Main.java", &text), 0);
	assert_string_equal(text.data, "module");
	assert_int_equal(find("c", "com/acme", "Main.java", &text), 0);
	assert_string_equal(text.data, "flat");
	assert_int_equal(find("a", "com/other", "Main.java", &text), -ENOENT);
	assert_int_equal(find("a", "/etc", "passwd", &text), -ENOENT);
	assert_int_equal(find("a", "com/../..", "passwd", &text), -ENOENT);
	assert_int_equal(find("a", "com/acme", "..", &text), -ENOENT);
	buf_release(&text);
}

/* ---- jars ---- */

static void put_number(struct buf *out, uint32_t number, int bytes)
{
	while (bytes--) {
		buf_add_char(out, (char)number);
		number >>= 8;
	}
}

static size_t deflated(const char *text, unsigned char *to, size_t size)
{
	z_stream stream = {.next_in = (unsigned char *)text,
			   .avail_in = (uInt)strlen(text),
			   .next_out = to,
			   .avail_out = (uInt)size};

	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	deflateEnd(&stream);
	return size - stream.avail_out;
}

/* A jar of one file, packed or not; `says` is the size that it tells. */
static void make_jar(struct buf *jar, const char *name, const char *text, bool is_packed, size_t says)
{
	unsigned char packed[256];
	size_t len = is_packed ? deflated(text, packed, sizeof(packed)) : strlen(text), directory;

	put_number(jar, 0x04034b50, 4);
	put_number(jar, 0, 22);
	put_number(jar, (uint32_t)strlen(name), 2);
	put_number(jar, 0, 2);
	buf_add_str(jar, name);
	buf_add(jar, is_packed ? (const void *)packed : text, len);
	directory = jar->len;
	put_number(jar, 0x02014b50, 4);
	put_number(jar, 0, 6);
	put_number(jar, is_packed ? 8 : 0, 2);
	put_number(jar, 0, 8);
	put_number(jar, (uint32_t)len, 4);
	put_number(jar, (uint32_t)says, 4);
	put_number(jar, (uint32_t)strlen(name), 2);
	put_number(jar, 0, 16);
	buf_add_str(jar, name);
	put_number(jar, 0x06054b50, 4);
	put_number(jar, 0, 8);
	put_number(jar, (uint32_t)(jar->len - 12 - directory), 4);
	put_number(jar, (uint32_t)directory, 4);
	put_number(jar, 0, 2);
}

static void in_jars(void **state)
{
	static const char source[] = "package com.acme;\nclass Main { /* the text of a class, of a class */ }\n";
	struct buf jar, text;

	for (int i = 0; i < 4; i++) {
		buf_init(&jar);
		buf_init(&text);
		make_jar(&jar, i < 2 ? "com/acme/Main.java" : "java.base/com/acme/Main.java", source, i % 2,
			 strlen(source));
		put("src.jar", jar.data, jar.len);
		assert_int_equal(find("src.jar", "com/acme", "Main.java", &text), 0);
		assert_string_equal(text.data, source);
		assert_int_equal(find("src.jar", "acme", "Other.java", &text), -ENOENT);
		assert_int_equal(find("src.jar", "m/acme", "Main.java", &text), -ENOENT);
		buf_release(&text);
		buf_release(&jar);
	}
}

/* Whatever is cut or changed, a jar is read or refused, and never more than it says. */
static void damaged_jars(void **state)
{
	struct buf jar, text;

	buf_init(&jar);
	buf_init(&text);
	make_jar(&jar, "Main.java", "class Main {} class Main {} class Main {}", true, 5);
	put("src.jar", jar.data, jar.len);
	assert_int_equal(find("src.jar", "", "Main.java", &text), -EBADMSG);
	for (size_t i = 0; i < jar.len * 8; i++) {
		jar.data[i / 8] = (char)(jar.data[i / 8] ^ 1 << i % 8);
		put("src.jar", jar.data, jar.len);
		assert_true(find("src.jar", "", "Main.java", &text) <= 0);
		assert_true(text.len <= 100);
		jar.data[i / 8] = (char)(jar.data[i / 8] ^ 1 << i % 8);
	}
	for (size_t len = 0; len < jar.len; len++) {
		put("src.jar", jar.data, len);
		assert_true(find("src.jar", "", "Main.java", &text) < 0);
	}
	buf_release(&text);
	buf_release(&jar);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_folders),
		cmocka_unit_test(in_jars),
		cmocka_unit_test(damaged_jars),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
