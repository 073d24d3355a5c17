/* SPDX-License-Identifier: MIT */
/* The options that shape the contents of output files, for all commands that write them. */
#pragma once

#include "base/opt.h"
#include "writers/writer.h"

/* Rows for a struct `type` with `struct writer_options style`, and `const char *` in the member `by_field`. */
/* clang-format off */
#define STYLE_ROW(type, letter, word, value, help, parse, field, ...) \
	{letter, word, value, help, parse, .offset = offsetof(type, field), .scope = OPT_OF_FILES, __VA_ARGS__}
#define STYLE_ROWS(type, by_field) \
	STYLE_ROW(type, 't', "threads", NULL, "a frame for each thread", opt_flag, style.threads, \
		.is_short = true), \
	STYLE_ROW(type, 0, "by", "LIST", "leading frames, outermost first, with commas", opt_string, by_field, \
		.choices = style_group_names), \
	STYLE_ROW(type, 's', "simple", NULL, "class names without packages", opt_flag, style.style.simple), \
	STYLE_ROW(type, 'g', "sig", NULL, "method signatures", opt_flag, style.style.signatures), \
	STYLE_ROW(type, 'a', "ann", NULL, "annotate frames: _[j] compiled, _[i] inlined, _[0] interpreted", opt_flag, \
		style.style.annotate), \
	STYLE_ROW(type, 'l', "lib", NULL, "library names before native frames", opt_flag, style.style.libraries), \
	STYLE_ROW(type, 'I', "include", "PATTERN", \
		"only stacks with a frame that matches; * at either end; repeatable", opt_strings, style.include, \
		.is_short = true), \
	STYLE_ROW(type, 'X', "exclude", "PATTERN", "no stacks with a frame that matches; repeatable", opt_strings, \
		style.exclude, .is_short = true), \
	STYLE_ROW(type, 0, "span", "PATTERN", \
		"only samples in a span of this tag or id; * at either end; repeatable", opt_strings, style.spans), \
	STYLE_ROW(type, 0, "trace-id", "PATTERN", "only samples of this trace; repeatable", opt_strings, \
		style.traces_of), \
	STYLE_ROW(type, 0, "attr", "KEY=PATTERN", "only samples whose attribute of this key matches; repeatable", \
		opt_strings, style.attributes), \
	STYLE_ROW(type, 0, "regex", NULL, "-I and -X are extended regular expressions for whole names", opt_flag, \
		style.regex), \
	STYLE_ROW(type, 0, "skip", "N", "without the N frames nearest the root", opt_u32, style.skip), \
	STYLE_ROW(type, 0, "classify", NULL, "a leading frame for the kind of work: [gc], [native] …", \
		opt_flag, style.classify), \
	STYLE_ROW(type, 0, "grain", "N", "count the samples of a stack in steps of N: smaller files", opt_u32, \
		style.grain), \
	STYLE_ROW(type, 0, "lines", NULL, "line numbers in Java frames", opt_flag, style.style.lines), \
	STYLE_ROW(type, 0, "bci", NULL, "indices of bytecodes in Java frames", opt_flag, style.style.bci), \
	STYLE_ROW(type, 0, "norm", NULL, "names without numbers that differ in each run: Main$$Lambda", opt_flag, \
		style.style.steady), \
	STYLE_ROW(type, 0, "dot", NULL, "dots in class names also in collapsed output", opt_flag, style.style.dotted), \
	STYLE_ROW(type, 0, "col-version", "1|2", "col without index and container (1), or with them (2, default)", \
		opt_u32, style.col_version), \
	STYLE_ROW(type, 0, "total", NULL, \
		"show weights (of cpu: CPU time) instead of numbers of samples", opt_flag, style.total), \
	STYLE_ROW(type, 0, "samples", NULL, "show numbers of samples (default)", opt_flag, style.samples), \
	STYLE_ROW(type, 0, "no-redact", NULL, "secrets in command lines and properties as they are, not [redacted]", \
		opt_flag, style.keeps_secrets), \
	STYLE_ROW(type, 0, "title", "TEXT", "title of the flame graph", opt_string, style.title), \
	STYLE_ROW(type, 0, "minwidth", "PERCENT", "no frames that are narrower, in the flame graph and the tree", \
		opt_percent, style.min_width), \
	STYLE_ROW(type, 0, "highlight", "REGEX", "what the flame graph has marked when it opens", opt_string, \
		style.highlight), \
	STYLE_ROW(type, 0, "jfr-cpu-time", NULL, "in JFR files, CPU time as jdk.CPUTimeSample (JDK 25)", opt_flag, \
		style.cpu_time), \
	STYLE_ROW(type, 0, "jfr-tlab", NULL, "in JFR files, allocations as jdk.ObjectAllocationInNewTLAB", opt_flag, \
		style.tlab), \
	STYLE_ROW(type, 0, "ratelimit", "LIST", "in JFR files, at most so many events a second: cpu:100,alloc:50", \
		style_rates, style.jfr.rate_limits), \
	STYLE_ROW(type, 0, "reverse", NULL, "flame graph and tree from the leaves: the callers of a frame", opt_flag, \
		style.reverse), \
	STYLE_ROW(type, 0, "inverted", NULL, "flame graph with the root at the top", opt_flag, style.inverted)
/* clang-format on */

int style_rates(void *field, const char *value, struct buf *why); /* a parser: [uint32_t[JFR_RATES]] */
void style_group_names(struct buf *out);
void style_format_names(struct buf *out);
/* Parses --by (NULL: not given) into style->by and checks the rest. Returns 0, or -EINVAL after reporting the error. */
int style_set(struct writer_options *style, const char *by);
/* Sets the depth given with -j. */
void style_set_depth(struct writer_options *style, uint32_t depth);
void style_release(struct writer_options *style);
