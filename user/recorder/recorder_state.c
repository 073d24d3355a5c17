/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "recorder/recording.h"

uint64_t state_seconds(const struct recording *recording)
{
	uint64_t end_ns = recording->child ? clock_monotonic_ns() : recording->ended_ns;

	return (end_ns - recording->begun_ns) / NS_PER_SEC;
}

static void print_status(const struct recording *recording, struct buf *text)
{
	if (recording->child)
		buf_printf(text, "Profiling is running for %llu seconds\n",
			   (unsigned long long)state_seconds(recording));
	else
		buf_add_str(text, "Profiler is not active\n");
}

/* async-profiler's list. Programs read it by its headings. */
static void print_list(struct buf *text)
{
	buf_add_str(text, "Basic events:\n"
			  "  cpu\n  alloc\n  nativemem\n  lock\n  nativelock\n  wall\n  itimer\n  ctimer\n"
			  "Java method calls:\n"
			  "  ClassName.methodName\n"
			  "Perf events:\n"
			  "  cpu-clock\n  page-faults\n  context-switches\n  cycles\n  instructions\n"
			  "  cache-references\n  cache-misses\n  branch-instructions\n  branch-misses\n"
			  "  bus-cycles\n  ref-cycles\n  L1-dcache-load-misses\n  LLC-load-misses\n  dTLB-load-misses\n"
			  "  rNNN\n  pmu/event-descriptor/\n  mem:breakpoint\n  trace:tracepoint\n  kprobe:func\n"
			  "  uprobe:path\n");
}

struct recording_sums state_sums(struct recording *recording)
{
	struct recording_sums sums = {0};

	if (recording->parts.len)
		(void)recording_sum(recording, &sums);
	return sums;
}

/* Of async-profiler's metrics, reports those that exist here: there are no tables in the process. */
static void print_metrics(struct recording *recording, bool has_stats, struct buf *text)
{
	const struct recording_sums sums = state_sums(recording);

	buf_printf(text,
		   "mem_calltracestorage_kb %llu\n"
		   "samples_total %llu\n"
		   "calltracestorage_overflows_total %d\n",
		   (unsigned long long)(recording_bytes(recording) + 1023) >> 10, (unsigned long long)sums.samples,
		   recording_is_thin(recording));
	if (has_stats && sums.walk_ns && sums.samples)
		buf_printf(text, "stackwalk_ns_total %llu\nstackwalk_ns_avg %llu\n", (unsigned long long)sums.walk_ns,
			   (unsigned long long)(sums.walk_ns / sums.samples));
}

void state_print(struct recording *recording, const struct asprof_arguments *begun, enum asprof_action action,
		 struct buf *text)
{
	switch (action) {
	case ASPROF_STATUS:
		return print_status(recording, text);
	case ASPROF_MEMINFO:
		return buf_printf(text, "Recording: %llu kB\n",
				  (unsigned long long)(recording_bytes(recording) + 1023) >> 10);
	case ASPROF_LIST:
		return print_list(text);
	case ASPROF_METRICS:
		return print_metrics(recording, asprof_arguments_has(begun, "stats"), text);
	default:
		buf_add_str(text, ASPROF_VERSION_SPOKEN);
	}
}

void answer_log_write(const char *path, struct recorder_answer *answer, bool with_report)
{
	IO_FD(log) = io_open_own(path, O_WRONLY | O_APPEND, 0644);

	if (log < 0) {
		buf_printf(&answer->log, "[WARN] log=%s: %s; name another file\n", path, strerror(-log));
		return;
	}
	(void)io_write_all(log, answer->log.data, answer->log.len);
	if (with_report && answer->report >= 0) {
		(void)io_copy(answer->report, 0, io_bytes(answer->report), log);
		io_close(&answer->report);
	}
	buf_clear(&answer->log);
}
