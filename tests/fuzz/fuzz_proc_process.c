/* SPDX-License-Identifier: MIT */
/* /proc/PID/stat and status, whose names the process chooses. */
#include "proc/process.c"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char *text = input_text(&input, size);
	struct process process = {.pid = 1};
	struct proc_stat stat;
	uid_t real;

	if (!proc_stat_parse(&stat, text))
		FUZZ_CHECK(stat.state && memchr(stat.comm, '\0', sizeof(stat.comm)));
	status_ids(text, "\nUid:", &real, &process.uid);
	status_ns_pid(text, &process.ns_pid);
	free(text);
	return 0;
}
