/* SPDX-License-Identifier: MIT */
/* The names of files and peers of I/O calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "join/resource.h"

static struct {
	struct duet_attribute head;
	struct duet_resource resource;
	char text[DUET_MAX_RESOURCE_TEXT];
} attribute;

static void expect_name(enum duet_resource_kind kind, unsigned flags, uint16_t port, const char *text, size_t bytes,
			const char *expected)
{
	struct buf name;

	memset(&attribute, 0xff, sizeof(attribute));
	attribute.head = (struct duet_attribute){.type = DUET_ATTRIBUTE_RESOURCE,
						 .bytes = (uint16_t)(sizeof(struct duet_resource) + bytes)};
	attribute.resource = (struct duet_resource){
		.kind = (uint8_t)kind, .flags = (uint8_t)flags, .port = port, .text_bytes = (uint16_t)bytes};
	memcpy(attribute.text, text, bytes);
	buf_init(&name);
	resource_name(&attribute.head, &name);
	assert_string_equal(name.data, expected);
	buf_release(&name);
}

static void paths_begin_at_the_root(void **state)
{
	expect_name(DUET_RESOURCE_FILE, DUET_RESOURCE_WHOLE, 0, "messages\0log\0var\0", 17, "/var/log/messages");
	expect_name(DUET_RESOURCE_FILE, DUET_RESOURCE_WHOLE, 0, "a\0", 2, "/a");
	expect_name(DUET_RESOURCE_FILE, DUET_RESOURCE_WHOLE, 0, "", 0, "/");
	expect_name(DUET_RESOURCE_FILE, 0, 0, "messages\0log\0", 13, "…/log/messages");
	expect_name(DUET_RESOURCE_FILE, 0, 0, "", 0, "…");
	expect_name(DUET_RESOURCE_FILE, DUET_RESOURCE_WHOLE | DUET_RESOURCE_DELETED, 0, "a\0", 2, "/a (deleted)");
}

/* BPF writes none of these, but nothing else is known of the bytes. */
static void odd_paths_are_read_within_their_bytes(void **state)
{
	char longest[DUET_MAX_RESOURCE_TEXT], expected[2 + DUET_MAX_RESOURCE_TEXT] = "/";

	expect_name(DUET_RESOURCE_FILE, DUET_RESOURCE_WHOLE, 0, "b\0a", 3, "/a/b");
	expect_name(DUET_RESOURCE_FILE, DUET_RESOURCE_WHOLE, 0, "\0\0", 2, "/");
	memset(longest, 'x', sizeof(longest));
	memset(expected + 1, 'x', sizeof(longest));
	expect_name(DUET_RESOURCE_FILE, DUET_RESOURCE_WHOLE, 0, longest, sizeof(longest), expected);
}

static void peers_have_address_and_port(void **state)
{
	expect_name(DUET_RESOURCE_INET, 0, 5432, "\x0a\0\0\x01", 4, "10.0.0.1:5432");
	expect_name(DUET_RESOURCE_INET6, 0, 80, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16, "[::1]:80");
	expect_name(DUET_RESOURCE_INET, 0, 1, "\x7f", 1, "127.0.0.0:1");
	expect_name(DUET_RESOURCE_INET6, 0, 80, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16, "10.0.0.1:80");
	expect_name(DUET_RESOURCE_INET, DUET_RESOURCE_OWN, 80, "\0\0\0\0", 4, "[own 0.0.0.0:80]");
}

static void others_have_a_name(void **state)
{
	char full[DUET_MAX_UNIX_PATH], expected[6 + DUET_MAX_UNIX_PATH] = "unix:";

	expect_name(DUET_RESOURCE_UNIX, 0, 0, "/run/a\0\0", 8, "unix:/run/a");
	expect_name(DUET_RESOURCE_UNIX, 0, 0, "\0name", 5, "unix:@name");
	expect_name(DUET_RESOURCE_UNIX, 0, 0, "\0a\0b", 4, "unix:@a@b");
	expect_name(DUET_RESOURCE_UNIX, 0, 0, "\0", 1, "[unix socket]");
	expect_name(DUET_RESOURCE_UNIX, 0, 0, "", 0, "[unix socket]");
	expect_name(DUET_RESOURCE_PIPE, 0, 0, "", 0, "[pipe]");
	expect_name(DUET_RESOURCE_NAME, 0, 0, "[eventfd]\0", 10, "[eventfd]");
	expect_name(DUET_RESOURCE_SOCKET, 0, 0, "", 0, "[socket]");
	expect_name(DUET_RESOURCE_SOCKET, 0, 16, "", 0, "[netlink socket]");
	memset(full, 'y', sizeof(full));
	memset(expected + 5, 'y', sizeof(full));
	expect_name(DUET_RESOURCE_UNIX, 0, 0, full, sizeof(full), expected);
}

static void expect_request(uint8_t request, unsigned flags, const char *expected)
{
	struct buf text;

	attribute.head = (struct duet_attribute){
		.type = DUET_ATTRIBUTE_RESOURCE, .bytes = sizeof(struct duet_resource)};
	attribute.resource = (struct duet_resource){
		.kind = DUET_RESOURCE_NOTHING, .flags = (uint8_t)flags, .request = request};
	buf_init(&text);
	resource_request(&attribute.head, &text);
	assert_string_equal(text.data, expected);
	buf_clear(&text);
	resource_name(&attribute.head, &text);
	assert_string_equal(text.data, "");
	buf_release(&text);
}

static void requests_have_their_kind(void **state)
{
	expect_request(0, 0, "");
	expect_request(1 + 22, 0, "[io_uring read]");
	expect_request(1 + 13, DUET_RESOURCE_BY_KERNEL, "[io_uring accept, by the kernel's thread]");
	expect_request(1, 0, "[io_uring 0]");
	expect_request(255, 0, "[io_uring 254]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_begin_at_the_root),
		cmocka_unit_test(odd_paths_are_read_within_their_bytes),
		cmocka_unit_test(peers_have_address_and_port),
		cmocka_unit_test(others_have_a_name),
		cmocka_unit_test(requests_have_their_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
