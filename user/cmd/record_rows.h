/* SPDX-License-Identifier: MIT */
/* The options of `duet record`, as given on the command line or in a configuration. */
#ifndef CMD_RECORD_ROWS_H
#define CMD_RECORD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "writers/writer.h"

#define RECORD_EVENT_OPTIONS 64 /* most rows of event_table */

struct record_range {
	uint64_t least_ns, most_ns; /* most is 0: no limit */
};

struct record_options {
	enum command_help help; /* first: see struct command */
	struct opt_strings pids;
	struct opt_strings events; /* the lists of -e */
	struct opt_strings files;
	struct opt_strings leave_alone;
	struct opt_strings traces;
	const char *event_options[RECORD_EVENT_OPTIONS]; /* by index in event_table; "" for a switch */
	const char *interval, *engine, *format, *pairing, *signals, *agent, *sleep_hook;
	const char *cgroup, *container, *comm, *by, *metrics, *group, *jfrsync;
	uint64_t duration_ns, max_memory, max_file;
	uint64_t window_ns, keep_age_ns, keep_bytes, proc_ns;
	double max_overhead;
	struct record_range off_cpu;
	uint32_t freq, depth, keep_files, jfropts, survivors;
	bool continuous, all;
	uint32_t only_cpu; /* 1 + the CPU; 0: each */
	bool host, all_user, no_attach, spark_names, verbose, wakers, ages, cpus, policies, receivers, tlab;
	bool alloc_native, offsets, holders;
	struct writer_options style;
};

extern const struct opt record_rows[];

#endif
