/* SPDX-License-Identifier: MIT */
/* /proc/PID/maps: the kernel writes the lines, the process chooses the paths in them. */
#include "fuzz.h"
#include "proc/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char *text = input_block(&input, size);
	struct maps maps = {0}, again = {0};

	FUZZ_CHECK(!maps_parse(&maps, text, size) && !maps_parse(&again, text, size) && maps_equal(&maps, &again));
	for (size_t i = 0; i < maps.list.len; i++) {
		const struct mapping *found = maps_find(&maps, maps.list.items[i].start);

		FUZZ_CHECK(maps.list.items[i].path && maps.list.items[i].start < maps.list.items[i].end);
		FUZZ_CHECK(!found || found->start <= maps.list.items[i].start);
	}
	maps_libjvm(&maps);
	maps_release(&maps);
	maps_release(&again);
	free(text);
	return 0;
}
