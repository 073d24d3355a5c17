/* SPDX-License-Identifier: MIT */
/* /proc/PID/stat and status, whose names the process chooses. */
#include "proc/process.c"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char *text = input_text(&input, size);
	struct process process = {.pid = 1};
	uint64_t number;
	uid_t real;

	stat_number(text, STAT_FLAGS, &number);
	stat_number(text, STAT_START, &number);
	stat_field(text, STAT_STATE);
	stat_comm(text, process.comm, sizeof(process.comm));
	FUZZ_CHECK(memchr(process.comm, '\0', sizeof(process.comm)));
	status_ids(text, "\nUid:", &real, &process.uid);
	status_ns_pid(text, &process.ns_pid);
	free(text);
	return 0;
}
