/* SPDX-License-Identifier: MIT */
/* Reads compiled methods as HotSpot keeps them: the method, and what the compiler inlined at which pc. */
#pragma once

#include <stddef.h>

#include "duet_agent.h"

/* `version` is the Java version. Returns false when this JVM does not export what is needed. */
bool nmethods_open(int version);

/* A record as it is sent: the head, then pcs and frames; the head has their numbers. */
struct nmethod_record {
	struct duet_code_load load;
	struct duet_code_pc *pcs;
	struct duet_java_frame *frames;
	uint32_t check; /* of load.method: struct metadata_key */
};

enum nmethod_result {
	NMETHOD_FOUND,
	NMETHOD_NONE, /* no compiled method is at pc: other code, or none */
	NMETHOD_GONE, /* another compilation is at pc, or this one was freed while it was read */
};

/*
 * Reads the compilation with this id that holds pc; id 0: any. now_ns is CLOCK_MONOTONIC. Pcs that would not fit into
 * most_bytes are left out: the loader shows only the method there. On NMETHOD_FOUND the caller releases *ret.
 */
enum nmethod_result nmethods_find(uintptr_t pc, uint32_t id, uint64_t now_ns, size_t most_bytes,
				  struct nmethod_record *ret);
void nmethods_release(struct nmethod_record *record);

/* Finds the method whose compiled code is at pc, and proves it; returns false when there is none. */
struct metadata_method;
bool nmethods_method(uintptr_t pc, struct metadata_method *ret);
