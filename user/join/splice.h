/* SPDX-License-Identifier: MIT */
/*
 * Kernel, native and Java halves of one sample, laid into one stack: kernel frames, then user frames in the order of
 * the physical walk, compiled code with what was inlined into it. Where the walk is not whole, AsyncGetCallTrace's
 * frames follow the native ones above Java. Still addresses and method ids; profile/resolve.h gives them names.
 */
#ifndef JOIN_SPLICE_H
#define JOIN_SPLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "join/join.h"
#include "proc/process.h"
#include "runtime/jvm.h"

enum splice_kind {
	SPLICE_KERNEL,
	SPLICE_NATIVE,
	SPLICE_STUB, /* JVM code that is no method: `text` is interned */
	SPLICE_COMPILED, /* the four Java kinds: method and bci */
	SPLICE_INLINED,
	SPLICE_INTERPRETED,
	SPLICE_JAVA_NATIVE,
	SPLICE_MARK, /* what could not be shown, `mark` says why */
};

struct splice_frame {
	enum splice_kind kind;
	bool is_return; /* address is a return address, not a pc */
	int32_t bci;
	uint32_t text;
	uint64_t address;
	uint64_t method;
	const char *mark; /* static */
};

static inline bool splice_is_java(enum splice_kind kind)
{
	return kind == SPLICE_COMPILED || kind == SPLICE_INLINED || kind == SPLICE_INTERPRETED ||
	       kind == SPLICE_JAVA_NATIVE;
}

/* What the walk and AsyncGetCallTrace say of the same Java frames. */
enum splice_witnesses {
	SPLICE_ALONE, /* there was only one of them, or the walk was not whole */
	SPLICE_AGREED,
	SPLICE_SAW_LESS, /* AsyncGetCallTrace left out what it is known to, and contradicts nothing else */
	SPLICE_DISAGREED,
	SPLICE_WITNESSES_MAX
};

struct splice {
	enum splice_witnesses witnesses;
	bool is_missing_code; /* a frame is of code that is not known: not yet, or not any more */
	struct vec(struct duet_want) wants; /* code that is not known yet */
	struct vec(struct splice_frame) frames; /* leaf first; reused from sample to sample */
};

/*
 * Fills splice->frames. `java` may be NULL as in join_handler; `jvm` is NULL for a process that is no
 * (attached) JVM. 0 or -ENOMEM.
 */
int splice_stack(struct splice *splice, struct process *process, const struct jvm *jvm,
		 const struct duet_sample *sample, const struct duet_java_sample *java, enum join_outcome outcome);
/* A stack that says only why there is none. `mark` is static text. 0 or -ENOMEM. */
int splice_mark(struct splice *splice, const char *mark);
void splice_release(struct splice *splice);

/* "[unknown_Java]" and so on for AsyncGetCallTrace's failure codes, forte.cpp; NULL for codes that are no failure. */
const char *splice_failure_mark(int32_t status);

#endif
