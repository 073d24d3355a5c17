/* SPDX-License-Identifier: MIT */
/* The parts of perf script's text that the writer and the reader share. */
#pragma once

/* Comments at the beginning: duet's own, which other programs skip. */
#define PERF_TEXT_EVENT "# event: " /* NAME UNIT INTERVAL, without spaces in the name */
#define PERF_TEXT_PROCESS "# process: " /* PID NAME */
#define PERF_TEXT_COUNT "# samples: " /* N: of how many samples the next one is the sum */
#define PERF_TEXT_START "# start: " /* nanoseconds since 1970, then the length in nanoseconds */

/* Modules of frames. For other kinds, the module is the kind's name in brackets. */
#define PERF_TEXT_KERNEL "[kernel.kallsyms]"
#define PERF_TEXT_INLINED "inlined"
#define PERF_TEXT_MAP "/tmp/perf-" /* PID.map: compiled Java */
#define PERF_TEXT_UNKNOWN "[unknown]"
