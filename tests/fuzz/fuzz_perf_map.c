/* SPDX-License-Identifier: MIT */
/* /tmp/perf-PID.map as it grows: a first part, then all of it. */
#include "fuzz.h"
#include "sym/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_map map;
	int part = input_file(data, size / 2), all = input_file(data, size);

	map = (struct perf_map){0};
	perf_map_read(&map, part);
	perf_map_read(&map, all);
	FUZZ_CHECK(map.parsed_bytes <= size);
	for (uint64_t address = 0; address < 0x1000; address += 0x13)
		symbol_table_find(&map.table, address, NULL);
	perf_map_read(&map, part);
	symbol_table_release(&map.table);
	close(part);
	close(all);
	return 0;
}
