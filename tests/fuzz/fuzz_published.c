/* SPDX-License-Identifier: MIT */
/* What a process publishes of itself, as a parser gets it, and the attributes of its threads, as BPF reads them. */
#include "fuzz.h"
#include "profile/attributes.h"
#include "subject/published.h"

static void check_text(const struct buf *text)
{
	const char *at = text->data;
	struct attribute attribute;

	while (attributes_next(&at, &attribute))
		FUZZ_CHECK(attribute.key_len + attribute.value_len + 2 <= PUBLISHED_TEXT_MAX);
	FUZZ_CHECK(at == text->data + text->len);
	FUZZ_CHECK(text->len <= PUBLISHED_TEXT_MAX);
}

static void check_context(const void *bytes, size_t size, const char *keys)
{
	BUF(text);

	(void)context_text(bytes, size, keys, &text);
	check_text(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	void *payload = input_block(&input, size);
	struct published published = {.attributes = BUF_NONE, .keys = BUF_NONE};

	(void)published_parse(&published, payload, size);
	FUZZ_CHECK(published.attributes.len <= PUBLISHED_TEXT_MAX);
	FUZZ_CHECK(strlen(published.attributes.data) == published.attributes.len);
	check_text(&published.attributes);
	FUZZ_CHECK(published.keys.len <= PUBLISHED_TEXT_MAX);
	FUZZ_CHECK(strlen(published.keys.data) == published.keys.len);
	check_context(payload, size, published.keys.data);
	check_context(payload, size, "http.route\n\ntoken\nuser.id\n");
	published_release(&published);
	free(payload);
	return 0;
}
