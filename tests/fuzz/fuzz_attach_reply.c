/* SPDX-License-Identifier: MIT */
/* The reply on HotSpot's attach socket, or that of a process that pretends to be HotSpot. */
#include "attach/hotspot.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char *text = input_block(&input, size);
	struct attach_target target = {.pid = 1, .ns_pid = 1};
	struct visit visit = {.target = &target};
	struct hotspot_reply reply;

	if (!hotspot_parse_reply(text, size, &reply)) {
		FUZZ_CHECK(memchr(reply.message, '\0', sizeof(reply.message)));
		FUZZ_CHECK(!hotspot_judge(&visit, &reply) || visit.why[0]);
	}
	free(text);
	return 0;
}
