/* SPDX-License-Identifier: MIT */
/*
 * Makes one stack of the halves of a sample: the kernel frames, then the user frames in the order of the walk. A frame
 * of compiled code comes with the methods inlined into it. If the walk is not whole, AsyncGetCallTrace's frames follow
 * the native frames above Java. The frames are addresses and method ids; join/resolve.h gives them names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "join/join.h"
#include "proc/process.h"
#include "runtime/alike.h"
#include "sym/symbols.h"

enum splice_kind {
	SPLICE_KERNEL,
	SPLICE_NATIVE,
	SPLICE_STUB, /* JVM code that is not a method; its name is `text`, interned */
	SPLICE_COMPILED, /* this and the next three are Java: they have method and bci */
	SPLICE_INLINED,
	SPLICE_INTERPRETED,
	SPLICE_JAVA_NATIVE,
	SPLICE_MARK, /* stands for frames that are missing; `mark` says why */
	SPLICE_STATE, /* nothing is missing; `mark` says what the thread is about */
};

struct splice_frame {
	enum splice_kind kind;
	bool is_interpreted; /* SPLICE_JAVA_NATIVE: the interpreter has made the frame */
	bool is_return; /* address is a return address, not a pc */
	int32_t bci;
	uint32_t text;
	uint64_t address;
	uint64_t method;
	uint32_t check; /* of an interpreted method: duet_method_check(), or 0 */
	const char *mark; /* static */
};

static inline bool splice_is_java(enum splice_kind kind)
{
	return kind == SPLICE_COMPILED || kind == SPLICE_INLINED || kind == SPLICE_INTERPRETED ||
	       kind == SPLICE_JAVA_NATIVE;
}

/* Whether the two witnesses, the walk and AsyncGetCallTrace, found the same Java frames. */
enum splice_witnesses {
	SPLICE_ALONE, /* not compared: there was only one witness, or the walk was not whole */
	SPLICE_AGREED,
	SPLICE_SAW_LESS, /* AsyncGetCallTrace lacks only frames that it is known to leave out */
	SPLICE_DISAGREED,
	SPLICE_WITNESSES_MAX
};

/* How sure a stack is. */
struct splice_verdict {
	enum splice_witnesses witnesses; /* {0}: nothing was compared */
	enum alike names; /* whether two sources gave its Java frames the same names */
	enum alike bcis; /* whether the two witnesses, where they agreed, have the same byte code indices */
	bool is_estimated; /* the compiler has not recorded what is inlined at one of its pcs */
	bool is_unrecorded; /* the same, and -XX:+DebugNonSafepoints would make the compiler record more */
	bool is_missing_code; /* the code of a frame is unknown: not described yet, or unloaded */
};

struct splice {
	struct splice_verdict verdict;
	struct vec(struct duet_want) wants; /* code to ask the agent for */
	struct vec(struct splice_frame) frames; /* leaf first; reused from sample to sample */
};

/* Fills `splice`, {0} at first. `java`: NULL for an unjoined sample; `jvm`: NULL without an agent. 0 or -ENOMEM. */
int splice_stack(struct splice *splice, struct process *process, const struct jvm *jvm,
		 const struct duet_sample *sample, const struct duet_java_sample *java, enum join_outcome outcome);
/* Puts the method of the attribute, a checked DUET_ATTRIBUTE_COMPILING, above the compiler's function. 0 or -ENOMEM. */
int splice_add_compiled(struct splice *splice, struct symbols *symbols, struct process *process,
			const struct duet_attribute *compiling);
/* Makes a stack of one mark, which says why there is no stack. `mark` is static text. 0 or -ENOMEM. */
int splice_mark(struct splice *splice, const char *mark);
void splice_release(struct splice *splice);

/* Returns the mark for a failure code of AsyncGetCallTrace (forte.cpp), such as "[unknown_Java]"; NULL from 0 on. */
const char *splice_failure_mark(int32_t status);
