/* SPDX-License-Identifier: MIT */
/* Records of an agent, one after the other: {type, length, payload}. */
#include "collect/records/validate.h"
#include "jvm_sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct symbols *symbols;
	struct input input = {data, size};
	struct jvm_sink sink;

	if (!symbols)
		symbols = symbols_new();
	jvm_sink_open(&sink, symbols);
	while (input.left) {
		uint16_t type = (uint16_t)input_number(&input, 1);
		uint32_t len = (uint32_t)input_number(&input, 2);
		void *payload = input_block(&input, len);

		if (agent_record_check(type, payload, len))
			jvm_sink_take(&sink, type, payload, len);
		free(payload);
	}
	jvm_sink_close(&sink);
	return 0;
}
