/* SPDX-License-Identifier: MIT */
/*
 * One JVM as its agent describes it: code heaps, thread names, and what samples met of its methods, compiled code and
 * stubs. Fed with validated agent records (collect/validate.h), asked while samples are joined. Strings are interned by
 * the caller's table.
 *
 * It grows with what samples meet. When there is no room, what none of them has met for the longest time is forgotten,
 * and can be asked for again.
 */
#ifndef RUNTIME_JVM_H
#define RUNTIME_JVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "duet_agent.h"
#include "duet_jvm.h"

/* What one JVM's tables may hold; a hostile one would fill the loader's memory. */
#define JVM_MAX_BYTES (96u << 20)
#define JVM_MAX_HEAPS 16 /* HotSpot has three code heaps at most */

/* What the tables of all JVMs together may hold. Where all is taken, those that have more than their share shrink. */
struct jvm_room {
	size_t max_bytes;
	size_t used;
	size_t jvms;
};

struct jvm;

struct jvm_method {
	uint32_t class_name; /* with dots: java.lang.String */
	uint32_t name;
	uint32_t signature;
	uint32_t source;
	uint32_t modifiers;
	uint32_t line_count;
	uint32_t used; /* round of forgetting in which it was last asked for */
	const struct duet_line *lines; /* ascending bci */
};

/* What a pc inside JVM code belongs to. */
struct jvm_code {
	uint64_t address;
	uint64_t end; /* exclusive */
	uint64_t loaded_ns;
	uint64_t unloaded_ns; /* UINT64_MAX while it lives */
	uint64_t method; /* 0 for a stub */
	uint32_t stub_name; /* interned; 0 for a method */
	uint32_t id; /* of the compilation; 0: unknown */
	uint32_t pc_count;
	uint32_t frame_count;
	uint32_t used; /* as a method's */
	struct duet_code_pc *pcs; /* ascending offset; owned, with the frames behind */
	struct duet_java_frame *frames;
};

struct jvm *jvm_new(struct intern *strings); /* NULL when out of memory */
void jvm_free(struct jvm *jvm);
/* Once, before any record. `room` outlives the JVM; its max_bytes may change. */
void jvm_share_room(struct jvm *jvm, struct jvm_room *room);

/* Takes in one metadata record. 0; -ENOMEM or, when the tables are full, -ENOSPC: the record is lost. */
int jvm_apply(struct jvm *jvm, uint16_t type, const void *payload, uint32_t size);

/*
 * While full, the tables do not grow: what is new takes the place of what was not used for the longest time. To be
 * called from time to time: tables that have more than their share of a full room shrink.
 */
void jvm_set_full(struct jvm *jvm, bool is_full);
/* Was this asked for, and the answer that it is not there any more? */
bool jvm_is_gone(const struct jvm *jvm, const struct duet_want *want);

/* How its Java frames are laid out, the newest the agent sent; NULL: it sent none. */
const struct duet_jvm_layout *jvm_layout(const struct jvm *jvm);
const struct jvm_method *jvm_method(const struct jvm *jvm, uint64_t id); /* NULL: not known, or not any more */
int32_t jvm_method_line(const struct jvm_method *method, int32_t bci); /* 0 = unknown */
bool jvm_owns_pc(const struct jvm *jvm, uint64_t pc); /* inside a code heap */
/*
 * The code that was at `pc` at that time, or NULL. An `id` that is not 0 says more exactly than the time, which
 * the JVM tells late, which compilation it was. Valid until the next jvm_apply().
 */
const struct jvm_code *jvm_code_at(const struct jvm *jvm, uint64_t pc, uint64_t time_ns, uint32_t id);
/*
 * The inlining stack of the compiled code at `pc` (leaf first, the compiled method last), or
 * NULL without debug information. `is_return`: pc is a return address, its
 * debug information stands at exactly that pc.
 */
const struct duet_java_frame *jvm_code_frames(const struct jvm_code *code, uint64_t pc, bool is_return,
					      uint32_t *ret_depth);
/*
 * When code or methods last came or went, CLOCK_MONOTONIC: grows with every change. Equal stacks of samples that are
 * not older mean equal methods until the next change.
 */
uint64_t jvm_changed_ns(const struct jvm *jvm);
bool jvm_is_interpreter(const struct jvm *jvm, const struct jvm_code *code); /* the template interpreter's blob */
uint32_t jvm_thread_name(const struct jvm *jvm, uint32_t tid); /* interned; 0 = unknown */

/* Does native code wait there for the Java code that it called? */
bool jvm_is_call_stub(const struct jvm *jvm, uint64_t return_address);

/*
 * How many frames, from frames[0] outward, are one compiled frame with what was inlined into it; 0 when
 * no live compiled code has such an inlining stack: the frame is then taken as interpreted.
 */
uint32_t jvm_match_compiled(const struct jvm *jvm, const struct duet_java_frame *frames, uint32_t depth);

/* The strings are in another table now: `move` tells where. */
void jvm_move_strings(struct jvm *jvm, struct intern_move *move);
/*
 * Forgets code that was unloaded before `time_ns`: no sample that old is waiting any more. And what holds for a moment
 * only: which methods and code were gone, and methods that had no id.
 */
void jvm_forget(struct jvm *jvm, uint64_t time_ns);

#endif
