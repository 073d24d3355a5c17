/* SPDX-License-Identifier: MIT */
/*
 * Answers the loader's questions about methods and code from the JVM's memory, with records in the ring. Only methods
 * that samples hit are named, not the tens of thousands that are loaded or compiled. Nothing here is called by a signal
 * handler; all of it is called by one thread.
 */
#ifndef ANSWERS_H
#define ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "metadata.h"
#include "nmethods.h"
#include "ring.h"

struct answers {
	struct ring *ring;
	/* Finds names that memory does not show. NULL: there is no other source. */
	bool (*other_names)(void *context, uint64_t key, struct metadata_names *ret);
	void *context;
};

/* Answers a WANT for a method: writes a DUET_AGENT_METHOD record, or DUET_AGENT_GONE. */
void answer_method(const struct answers *answers, uint64_t key);
/*
 * Writes the DUET_AGENT_METHOD record without being asked, unless the loader got it lately or the method is gone.
 * Returns true when a record was written.
 */
bool answer_unasked(const struct answers *answers, uint64_t key);
/*
 * Writes the DUET_AGENT_CODE_LOAD record of a compilation in which a sample has hit `pc`; records of the methods that
 * it names come before it. Takes ownership of the record.
 */
void answer_compiled(const struct answers *answers, struct nmethod_record *record, uint64_t pc);
/* Writes a DUET_AGENT_STUB record if a blob is at `pc` that is no compiled method; else returns false. */
bool answer_blob(const struct answers *answers, uint64_t pc, uint64_t now_ns);
/* Writes a DUET_AGENT_STUB record. */
void answer_stub(const struct answers *answers, const struct duet_stub *stub, const char *name);
/* Writes the code heaps' address ranges, DUET_AGENT_CODE_HEAP. */
void answer_heaps(const struct answers *answers);
/* Writes DUET_AGENT_GONE, and counts the compilation as gone. */
void answer_code_gone(const struct answers *answers, uint64_t pc, uint32_t id);
/* Forgets which records were sent: the next loader has none of them, or this one may have forgotten them. */
void answers_forget_told(void);

#define STUB_NAME_BYTES 104

#endif
