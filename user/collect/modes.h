/* SPDX-License-Identifier: MIT */
/* The events that BPF can sample: one row each. */
#ifndef COLLECT_MODES_H
#define COLLECT_MODES_H

#include <stddef.h>
#include <stdint.h>

struct mode {
	const char *name; /* -e NAME */
	const char *help;
	uint64_t default_interval_ns;
	uint32_t perf_type; /* PERF_TYPE_* */
	uint64_t perf_config;
	const char *program; /* its BPF program, in bpf/mode_<name>.bpf.c */
	const char *program_cookie; /* the same with bpf_send_signal_task */
};

extern const struct mode modes[]; /* ends with a row without name */
const struct mode *mode_by_name(const char *name);

#endif
