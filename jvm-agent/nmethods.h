/* SPDX-License-Identifier: MIT */
/* Compiled methods as HotSpot keeps them: which method it is, and what the compiler inlined where. */
#ifndef NMETHODS_H
#define NMETHODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_agent.h"

/* False when this JVM does not tell what is needed. */
bool nmethods_open(void *libjvm, int version);

/* A record as it is sent: the head, then pcs and frames as the head counts them. */
struct nmethod_record {
	struct duet_code_load load;
	struct duet_code_pc *pcs;
	struct duet_java_frame *frames;
};

enum nmethod_result {
	NMETHOD_FOUND,
	NMETHOD_NONE, /* there is other code, or none */
	NMETHOD_GONE, /* another compilation, or none any more */
};

/*
 * The compilation with this id that holds pc; 0: whichever does. What would not fit `most_bytes` is cut: those pcs get
 * the method without inlining. Caller releases what was found.
 */
enum nmethod_result nmethods_find(uintptr_t pc, uint32_t id, size_t most_bytes, struct nmethod_record *ret);
void nmethods_release(struct nmethod_record *record);

/* The method of the code at pc, proven; false when there is none. */
struct metadata_method;
bool nmethods_method(uintptr_t pc, struct metadata_method *ret);

#endif
