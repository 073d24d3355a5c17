/* SPDX-License-Identifier: MIT */
/* Records as they might stand in the BPF ring: {length, bytes}, checked, joined and named. */
#include "collect/records/validate.h"
#include "jvm_sink.h"

static void take(struct jvm_sink *sink, const struct duet_record *record)
{
	if (record->type == DUET_RECORD_SAMPLE)
		join_sample(sink->join, &sink->origin,
			    deep_stacks_join(&sink->parts, (const struct duet_sample *)record), sink->time_ns++);
	else if (record->type == DUET_RECORD_FRAMES)
		deep_stacks_add(&sink->parts, (const struct duet_frames_record *)record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct symbols *symbols;
	struct input input = {data, size};
	struct jvm_sink sink;

	if (!symbols)
		symbols = symbols_new();
	jvm_sink_open(&sink, symbols);
	while (input.left) {
		size_t len = input_number(&input, 2);
		void *record = input_block(&input, len);

		if (record_check(record, len))
			take(&sink, record);
		free(record);
	}
	jvm_sink_close(&sink);
	return 0;
}
