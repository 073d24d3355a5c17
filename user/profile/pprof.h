/* SPDX-License-Identifier: MIT */
/* What readers and writers of pprof and OTLP share, in addition to the messages of pprof.proto and otlp.proto. */
#pragma once

#include "pprof.pb-c.h"

/* Fields of OTLP's ProfilesData, ResourceProfiles and ScopeProfiles, and of its Dictionary. */
enum { DATA_RESOURCES = 1, DATA_DICTIONARY = 2 };
enum { RESOURCE_RESOURCE = 1, RESOURCE_SCOPES = 2 };
enum { SCOPE_SCOPE = 1, SCOPE_PROFILES = 2 };
enum table { TABLE_MAPPINGS = 1, TABLE_LOCATIONS, TABLE_FUNCTIONS, TABLE_LINKS, TABLE_STRINGS, TABLE_ATTRIBUTES,
	     TABLE_STACKS };

/* Fields of the message Profile. */
enum pprof_field {
	PPROF_VALUE_TYPES = 1,
	PPROF_SAMPLES = 2,
	PPROF_MAPPINGS = 3,
	PPROF_LOCATIONS = 4,
	PPROF_FUNCTIONS = 5,
	PPROF_STRINGS = 6,
	PPROF_TIME = 9,
	PPROF_DURATION = 10,
	PPROF_PERIOD_TYPE = 11,
	PPROF_PERIOD = 12,
	PPROF_COMMENTS = 13,
	PPROF_DEFAULT_TYPE = 14,
};

/*
 * Conventions of duet's own files. Code that is in no file has a mapping named after its kind: "[kernel]", "[compiled]"
 * and so on. A function's system name is that of the symbol, or of Java "java.lang.String.charAt(I)C".
 */
#define PPROF_KERNEL "[kernel]" /* a kernel module's name may follow, after a space */
/* Comments are facts, "key: value"; these keys have a meaning for the reader. */
#define PPROF_LOST "lost " /* "lost 12: text" */
#define PPROF_PROCESSES "process frames" /* "always" or "never" */

#define PPROF_LABEL_THREAD "thread"
#define PPROF_LABEL_TID "tid"
#define PPROF_LABEL_VIRTUAL "virtual_thread" /* Thread.threadId(), 0 if several share the name; instead of a tid */
#define PPROF_LABEL_PROCESS "process"
#define PPROF_LABEL_PID "pid"
#define PPROF_LABEL_CONTAINER "container"
#define PPROF_LABEL_TRACE "trace_id" /* hexadecimal digits, and so is the next */
#define PPROF_LABEL_SPAN "span_id"
#define PPROF_LABEL_TAG "span" /* the tag of the span that the sample was taken in */
#define PPROF_LABELS "thread tid virtual_thread process pid container trace_id span_id span" /* all of these */

/* Attributes of OTLP files that are duet's own: the semantic conventions have none for them. */
#define OTLP_VIRTUAL "duet.thread.virtual" /* of a sample: thread.id is Java's number of a virtual thread */
#define OTLP_SAMPLES "duet.samples" /* of a sample: for how many each value stands, if that is not one */
#define OTLP_SPAN "duet.span" /* of a sample: the tag of the span that it was taken in */
#define OTLP_CONTAINER "duet.container" /* of a resource: the container as duet shows it */
