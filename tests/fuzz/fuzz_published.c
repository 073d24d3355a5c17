/* SPDX-License-Identifier: MIT */
/* What a process publishes of itself, as a parser gets it. */
#include "fuzz.h"
#include "profile/attributes.h"
#include "subject/published.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	void *payload = input_block(&input, size);
	struct published published = {.attributes = BUF_NONE};
	struct attribute attribute;
	const char *at;

	(void)published_parse(&published, payload, size);
	FUZZ_CHECK(published.attributes.len <= PUBLISHED_TEXT_MAX);
	FUZZ_CHECK(strlen(published.attributes.data) == published.attributes.len);
	at = published.attributes.data;
	while (attributes_next(&at, &attribute))
		FUZZ_CHECK(attribute.key_len + attribute.value_len + 2 <= PUBLISHED_TEXT_MAX);
	FUZZ_CHECK(at == published.attributes.data + published.attributes.len);
	published_release(&published);
	free(payload);
	return 0;
}
