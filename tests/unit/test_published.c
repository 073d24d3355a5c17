/* SPDX-License-Identifier: MIT */
/* What a process, here this one, publishes of itself: found among its mappings, read whole or not at all, cleaned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/varint.h"
#include "duet_context.h"
#include "profile/attributes.h"
#include "subject/program.h"
#include "subject/published.h"

static struct duet_published *head;
static struct buf payload = BUF_NONE;

static void put(struct buf *to, unsigned int field, const void *bytes, size_t len)
{
	varint_add(to, field << 3 | 2);
	varint_add(to, len);
	buf_add(to, bytes, len);
}

static void put_text(struct buf *to, const char *key, const char *value)
{
	BUF(any);
	BUF(pair);

	put(&any, 1, value, strlen(value));
	put(&pair, 1, key, strlen(key));
	put(&pair, 2, any.data, any.len);
	put(to, 1, pair.data, pair.len);
}

/* Publishes a resource of these attributes. */
static void publish(const struct buf *attributes, uint64_t published_ns)
{
	buf_clear(&payload);
	put(&payload, 1, attributes->data, attributes->len);
	memcpy(head->signature, DUET_PUBLISHED_SIGNATURE, sizeof(head->signature));
	head->version = DUET_PUBLISHED_VERSION;
	head->payload_bytes = (uint32_t)payload.len;
	head->payload = (uintptr_t)payload.data;
	head->published_ns = published_ns;
}

static int setup(void **state)
{
	int file = memfd_create("OTEL_CTX", MFD_CLOEXEC);

	assert_true(file >= 0 && !ftruncate(file, sysconf(_SC_PAGESIZE)));
	head = mmap(NULL, sizeof(*head), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	close(file);
	assert_ptr_not_equal(head, MAP_FAILED);
	return 0;
}

static int teardown(void **state)
{
	munmap(head, sizeof(*head));
	buf_release(&payload);
	return 0;
}

static int read_it(struct published *ret, uint64_t address, uint64_t known_ns)
{
	const struct process process = {.pid = getpid(), .living = getpid(), .uid = getuid()};

	return published_read(ret, CHARGE_OWN(getpid()), &process, address, known_ns);
}

static void it_is_found_and_read(void **state)
{
	struct published published;
	BUF(attributes);

	put_text(&attributes, "service.name", "shop");
	put_text(&attributes, "service.version", "1.2");
	publish(&attributes, 5);
	assert_int_equal(read_it(&published, 0, 0), 0);
	assert_true(published.is_new);
	assert_int_equal(published.address, (uintptr_t)head);
	assert_int_equal(published.published_ns, 5);
	assert_string_equal(published.attributes.data, "service.name=shop\nservice.version=1.2\n");
	published_release(&published);
	/* the same again, by its address */
	assert_int_equal(read_it(&published, (uintptr_t)head, 5), 0);
	assert_false(published.is_new);
	assert_int_equal(published.published_ns, 5);
	published_release(&published);
	head->published_ns = 4; /* a time that goes back is a change, too */
	assert_int_equal(read_it(&published, (uintptr_t)head, 5), 0);
	assert_true(published.is_new);
	published_release(&published);
}

static void secrets_are_left_out(void **state)
{
	struct published published;
	BUF(attributes);
	BUF(again);

	put_text(&attributes, "db.password", "hunter2");
	put_text(&attributes, "process.command_line", "java --token abc -jar shop.jar");
	publish(&attributes, 5);
	assert_int_equal(read_it(&published, 0, 0), 0);
	assert_string_equal(published.attributes.data,
			    "db.password=[redacted]\nprocess.command_line=java --token [redacted] -jar shop.jar\n");
	/* of a file that has them as they were */
	attributes_redact("api_key=abc\nservice.name=shop\n", &again);
	assert_string_equal(again.data, "api_key=[redacted]\nservice.name=shop\n");
	published_release(&published);
}

static void expect(int result, uint64_t address)
{
	struct published published;

	assert_int_equal(read_it(&published, address, 0), result);
	assert_false(published.is_new);
	assert_string_equal(published.attributes.data, "");
	published_release(&published);
}

static void a_liar_publishes_nothing(void **state)
{
	static const uint64_t places[] = {0, 1, 1ull << 63, ~0ull, ~0ull << 12};
	BUF(attributes);

	put_text(&attributes, "service.name", "shop");
	publish(&attributes, 5);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		head->payload = places[i];
		expect(-EPROTO, 0);
		expect(-ENOENT, places[i] ? places[i] : 1);
	}
	publish(&attributes, 5);
	head->payload_bytes = PUBLISHED_MAX + 1;
	expect(-EPROTO, 0);
	publish(&attributes, 0);
	expect(-EAGAIN, 0);
	publish(&attributes, 5);
	head->version = 1;
	expect(-ENOENT, 0);
	publish(&attributes, 5);
	head->signature[7] = 'Y';
	expect(-ENOENT, 0);
	publish(&attributes, 5);
	payload.data[1] ^= 1; /* the resource ends elsewhere than it says */
	expect(-EPROTO, 0);
}

static void parse(struct published *ret, const struct buf *resource)
{
	BUF(context);

	put(&context, 1, resource->data, resource->len);
	*ret = (struct published){.attributes = BUF_NONE, .keys = BUF_NONE};
	assert_int_equal(published_parse(ret, context.data, context.len), 0);
}

static void texts_are_clean_and_short(void **state)
{
	struct published published;
	struct attribute found;
	char long_text[3000];
	BUF(resource);

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	put_text(&resource, "a=b\nc", "d\033[31m\ne=f");
	put_text(&resource, "a=b\nc", "a second value");
	put_text(&resource, "", "no key");
	put_text(&resource, "long", long_text);
	parse(&published, &resource);
	assert_null(strstr(published.attributes.data, "a second value"));
	assert_true(attributes_find(published.attributes.data, "a?b?c", &found));
	assert_int_equal(found.value_len, strlen("d?[31m?e=f"));
	assert_memory_equal(found.value, "d?[31m?e=f", found.value_len);
	assert_true(attributes_find(published.attributes.data, "long", &found));
	assert_int_equal(found.value_len, 1024);
	published_release(&published);
	for (int i = 0; i < 20; i++) {
		long_text[0] = (char)('a' + i);
		put_text(&resource, long_text, long_text);
	}
	parse(&published, &resource);
	assert_true(published.attributes.len > PUBLISHED_TEXT_MAX / 2 &&
		    published.attributes.len <= PUBLISHED_TEXT_MAX);
	published_release(&published);
}

static void bombs_end(void **state)
{
	static unsigned char bomb[PUBLISHED_MAX];
	struct published published = {.attributes = BUF_NONE, .keys = BUF_NONE};
	BUF(resource);

	memset(bomb, 0x0a, sizeof(bomb));
	assert_int_equal(published_parse(&published, bomb, sizeof(bomb)), -EPROTO);
	memset(bomb, 0xff, sizeof(bomb));
	assert_int_equal(published_parse(&published, bomb, sizeof(bomb)), -EPROTO);
	/* as many attributes as there is room for, each of its own key */
	for (uint32_t i = 0; resource.len < PUBLISHED_MAX - 64; i++) {
		char key[16];

		snprintf(key, sizeof(key), "%x", i);
		put_text(&resource, key, "");
	}
	published_release(&published);
	parse(&published, &resource);
	assert_true(published.attributes.len <= PUBLISHED_TEXT_MAX);
	published_release(&published);
}

/* ---- the attributes of threads ---- */

static void put_keys(struct buf *context, const char *const *keys, size_t count)
{
	BUF(list);
	BUF(any);
	BUF(pair);

	for (size_t i = 0; i < count; i++) {
		BUF(text);

		put(&text, keys[i] ? 1 : 5, keys[i] ? keys[i] : "", keys[i] ? strlen(keys[i]) : 0);
		put(&list, 1, text.data, text.len);
	}
	put(&any, 5, list.data, list.len);
	put(&pair, 1, DUET_CONTEXT_KEYS, strlen(DUET_CONTEXT_KEYS));
	put(&pair, 2, any.data, any.len);
	put(context, 2, pair.data, pair.len);
}

static void names_keep_their_places(void **state)
{
	static const char *const keys[] = {"http.route", NULL, "a=b\nc\033", "user.id"};
	struct published published = {.attributes = BUF_NONE, .keys = BUF_NONE};
	static const char *many[DUET_CONTEXT_KEYS_MAX + 5];
	static char long_name[301];
	BUF(context);

	put_keys(&context, keys, 4);
	assert_int_equal(published_parse(&published, context.data, context.len), 0);
	assert_string_equal(published.keys.data, "http.route\n\na?b?c?\nuser.id\n");
	assert_string_equal(published.attributes.data, "");
	for (size_t i = 0; i < DUET_CONTEXT_KEYS_MAX + 5; i++)
		many[i] = "k";
	buf_clear(&context);
	put_keys(&context, many, DUET_CONTEXT_KEYS_MAX + 5);
	assert_int_equal(published_parse(&published, context.data, context.len), 0);
	assert_int_equal(published.keys.len, 2 * DUET_CONTEXT_KEYS_MAX);
	memset(long_name, 'x', sizeof(long_name) - 1);
	for (size_t i = 0; i < DUET_CONTEXT_KEYS_MAX; i++)
		many[i] = long_name;
	buf_clear(&context);
	put_keys(&context, many, DUET_CONTEXT_KEYS_MAX);
	assert_int_equal(published_parse(&published, context.data, context.len), 0);
	assert_int_equal(published.keys.len, PUBLISHED_TEXT_MAX / 256 * 256);
	published_release(&published);
}

static void expect_text(const char *bytes, size_t len, const char *keys, enum context_loss loss, const char *text)
{
	char copy[64];
	BUF(out);

	memcpy(copy + sizeof(copy) - len, bytes, len); /* at the end of the memory, for the sanitizers */
	assert_int_equal(context_text(copy + sizeof(copy) - len, len, keys, &out), loss);
	assert_string_equal(out.data, text);
}

#define EXPECT_TEXT(bytes, ...) expect_text(bytes, sizeof(bytes) - 1, __VA_ARGS__)

static void attributes_of_threads_are_bounded(void **state)
{
	static const char keys[] = "http.route\n\napi.token\nuser\n";
	static char long_key[PUBLISHED_TEXT_MAX], all[512];
	BUF(out);

	EXPECT_TEXT("", keys, CONTEXT_WHOLE, "");
	EXPECT_TEXT("\0\5/cart\3\1u", keys, CONTEXT_WHOLE, "http.route=/cart\nuser=u\n");
	/* the last one counts; the order is that of the names; one without a name is left out */
	EXPECT_TEXT("\3\1u\0\1a\1\1b\0\2cd", keys, CONTEXT_WHOLE, "http.route=cd\nuser=u\n");
	EXPECT_TEXT("\0\0", keys, CONTEXT_WHOLE, "http.route=\n");
	/* lengths that lie */
	EXPECT_TEXT("\0", keys, CONTEXT_CUT, "");
	EXPECT_TEXT("\0\1", keys, CONTEXT_CUT, "");
	EXPECT_TEXT("\0\1a\3", keys, CONTEXT_CUT, "http.route=a\n");
	EXPECT_TEXT("\0\1a\3\377b", keys, CONTEXT_CUT, "http.route=a\n");
	/* names that are not known */
	EXPECT_TEXT("\0\1a\4\1b", keys, CONTEXT_NO_KEY, "http.route=a\n");
	EXPECT_TEXT("\377\1b", keys, CONTEXT_NO_KEY, "");
	EXPECT_TEXT("\0\1b", "", CONTEXT_NO_KEY, "");
	/* what may not be shown */
	EXPECT_TEXT("\0\11a\0b\nc\033[d\xff\2\3abc", keys, CONTEXT_WHOLE,
		    "http.route=a?b?c?[d?\napi.token=[redacted]\n");
	memset(long_key, 'k', sizeof(long_key) - 2);
	long_key[sizeof(long_key) - 2] = '\n';
	expect_text("\0\5/cart", 7, long_key, CONTEXT_CUT, "");
	for (size_t i = 0; i < DUET_CONTEXT_KEYS_MAX; i++)
		all[2 * i] = (char)i;
	assert_int_equal(context_text(all, sizeof(all), keys, &out), CONTEXT_NO_KEY);
	assert_string_equal(out.data, "http.route=\napi.token=\nuser=\n");
}

/* A name that is published later is found when a thread uses it; different attributes are bounded and counted. */
static void samples_have_the_attributes_of_threads(void **state)
{
	static const char *const keys[] = {"http.route", "user"};
	static const char route[] = "\0\5/cart\1\1u";
	struct process_table processes;
	struct profile profile;
	struct owners owners;
	struct process *process;
	uint32_t row, strings;
	uint64_t lacking;
	BUF(attributes);

	head->published_ns = 0;
	process_table_init(&processes);
	assert_int_equal(profile_init(&profile), 0);
	owners_open(&owners, &profile, false);
	process = process_get(&processes, getpid(), 0);
	(void)owners_row(&owners, process, NULL);
	lacking = loader_counters[DUET_LOADER_CONTEXT_LACKS];
	assert_int_equal(owners_context(&owners, process, route, sizeof(route) - 1, false), 0);
	assert_int_equal(loader_counters[DUET_LOADER_CONTEXT_LACKS], lacking + 1);
	publish(&attributes, 7);
	put_keys(&payload, keys, 1);
	head->payload = (uintptr_t)payload.data;
	head->payload_bytes = (uint32_t)payload.len;
	owners.looks_ns = 0;
	usleep(50000); /* names that lack are not looked for all the time */
	row = owners_context(&owners, process, route, sizeof(route) - 1, false);
	assert_string_equal(profile_text(&profile, row), "http.route=/cart\n");
	assert_int_equal(loader_counters[DUET_LOADER_CONTEXT_LACKS], lacking + 2);
	assert_int_equal(owners_context(&owners, process, route, 7, false), row);
	assert_int_equal(loader_counters[DUET_LOADER_CONTEXT_LACKS], lacking + 2);
	/* there is no room */
	strings = (uint32_t)profile.strings.strings.len;
	assert_int_equal(owners_context(&owners, process, "\0\1a", 3, true), 0);
	assert_int_equal(owners_context(&owners, process, route, 7, true), row);
	subject_of(process)->contexts = UINT32_MAX;
	assert_int_equal(owners_context(&owners, process, "\0\1b", 3, false), 0);
	assert_int_equal(loader_counters[DUET_LOADER_CONTEXT_LACKS], lacking + 4);
	assert_int_equal(profile.strings.strings.len, strings);
	owners_release(&owners);
	profile_release(&profile);
	process_table_release(&processes);
}

/* Samples have what their process has published before them, and later what it changed. */
static void samples_have_what_was_published(void **state)
{
	struct process_table processes;
	struct profile profile;
	struct owners owners;
	struct process *process;
	uint32_t first, second;
	BUF(attributes);

	head->published_ns = 0;
	process_table_init(&processes);
	assert_int_equal(profile_init(&profile), 0);
	owners_open(&owners, &profile, false);
	process = process_get(&processes, getpid(), 0);
	first = owners_row(&owners, process, NULL);
	assert_int_equal(profile.owners.items[first].service, 0);
	put_text(&attributes, "service.name", "shop");
	publish(&attributes, 7);
	subject_of(process)->look_ns = 0;
	second = owners_row(&owners, process, NULL);
	assert_string_equal(profile_text(&profile, profile.owners.items[second].service), "shop");
	/* and so have its earlier ones */
	assert_string_equal(profile_text(&profile, profile.owners.items[first].service), "shop");
	buf_clear(&attributes);
	put_text(&attributes, "service.name", "bank");
	publish(&attributes, 8);
	assert_true(subject_of(process)->look_ns <= clock_monotonic_ns() + NS_PER_SEC);
	subject_of(process)->look_ns = 0;
	second = owners_row(&owners, process, NULL);
	assert_string_equal(profile_text(&profile, profile.owners.items[second].service), "bank");
	assert_string_equal(profile_text(&profile, profile.owners.items[first].service), "shop");
	owners_release(&owners);
	profile_release(&profile);
	process_table_release(&processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_found_and_read, setup, teardown),
		cmocka_unit_test_setup_teardown(secrets_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(a_liar_publishes_nothing, setup, teardown),
		cmocka_unit_test(texts_are_clean_and_short),
		cmocka_unit_test(bombs_end),
		cmocka_unit_test_setup_teardown(samples_have_what_was_published, setup, teardown),
		cmocka_unit_test(names_keep_their_places),
		cmocka_unit_test(attributes_of_threads_are_bounded),
		cmocka_unit_test_setup_teardown(samples_have_the_attributes_of_threads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
