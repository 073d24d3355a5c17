/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * What a thread works for, as its program publishes it: OpenTelemetry's "Thread Context" (OTEP 4947). An ELF file of
 * the process exports the thread-local variable DUET_CONTEXT_SYMBOL. It is a pointer to a record, or NULL. Only the
 * thread itself writes its record, and it is read only while the thread is interrupted or by itself.
 */
#pragma once

#include "duet_types.h"

#define DUET_CONTEXT_SYMBOL "otel_thread_ctx_v1"
#define DUET_CONTEXT_VALID 1

/* Both in the order of bytes of W3C's Trace Context; all 0: the thread has none. */
struct duet_context {
	uint8_t trace_id[16];
	uint8_t span_id[8];
};
DUET_ASSERT_SIZE(struct duet_context, 24);

/*
 * Begins a record in the program's memory. Attributes follow, one after the other: the index of its name, the length of
 * its value, and the value, UTF-8. The program publishes the names beside the attributes of its resource, as an array
 * of the name DUET_CONTEXT_KEYS. It only grows. Of several attributes of one name, the last one counts.
 */
struct duet_context_record {
	struct duet_context context;
	uint8_t valid; /* DUET_CONTEXT_VALID; anything else: there is no context, or it is being written */
	uint8_t trace_flags;
	uint16_t attribute_bytes; /* of all attributes */
};
DUET_ASSERT_SIZE(struct duet_context_record, 28);

#define DUET_CONTEXT_KEYS "threadlocal.attribute_key_map"
#define DUET_CONTEXT_KEYS_MAX 256
#define DUET_CONTEXT_ATTRIBUTES 612 /* bytes; what more a record has is not read: 640 bytes in all are recommended */

/* How the variable is found. The ELF file's relocation says which. Distances are from the thread pointer. */
enum duet_context_place {
	DUET_CONTEXT_NOWHERE,
	DUET_CONTEXT_FIXED, /* `at` is the distance, as of a variable of the executable */
	DUET_CONTEXT_DISTANCE, /* the word at the address `at` is the distance */
	DUET_CONTEXT_INDEX, /* at `at` are the number of the module in the thread's vector, and an offset */
	/* at `at` + 8 is a distance, or the address of what INDEX has at `at` */
	DUET_CONTEXT_DESCRIPTOR,
	DUET_CONTEXT_PLACES
};

struct duet_context_source {
	uint64_t at;
	uint32_t place; /* enum duet_context_place */
	uint32_t is_musl; /* 1: the vector is musl's, 0: glibc's */
};
DUET_ASSERT_SIZE(struct duet_context_source, 16);

#define DUET_CONTEXT_SOURCES 4 /* files of a process that export the variable; others are not read */

/* Where a process has it. Value of the map `contexts`, key = tgid in the loader's pid namespace. */
struct duet_context_sources {
	uint64_t start_ticks; /* as in struct duet_jvm_target */
	struct duet_context_source of[DUET_CONTEXT_SOURCES]; /* the first that is NOWHERE ends them */
};
DUET_ASSERT_SIZE(struct duet_context_sources, 8 + DUET_CONTEXT_SOURCES * sizeof(struct duet_context_source));

#define DUET_CONTEXT_MODULES 65536 /* most modules of a vector, which the program may have overwritten */
#define DUET_CONTEXT_DISTANCES (1ll << 24) /* no distance is longer, and no address lower */

/*
 * What a program says of itself: OpenTelemetry's "Process Context" (OTEP 4719). This begins a mapping of the process,
 * whose name begins as below. The program may change it at any time.
 */
#define DUET_PUBLISHED_NAMES {"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"}
#define DUET_PUBLISHED_SIGNATURE "OTEL_CTX"
#define DUET_PUBLISHED_VERSION 2

struct duet_published {
	char signature[8]; /* DUET_PUBLISHED_SIGNATURE without its NUL */
	uint32_t version;
	uint32_t payload_bytes; /* of protobuf: ProcessContext */
	uint64_t published_ns; /* CLOCK_BOOTTIME, another one with each change; 0: it is being changed */
	uint64_t payload; /* its address */
};
DUET_ASSERT_SIZE(struct duet_published, 32);
