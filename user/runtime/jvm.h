/* SPDX-License-Identifier: MIT */
/*
 * One JVM as its agent describes it: its code heaps, its thread names, and those methods, pieces of compiled code and
 * stubs that samples have met. It is filled from validated agent records (collect/records/validate.h) and used while
 * samples are joined. Strings are interned in the caller's table. The tables grow with the code that samples meet. When
 * there is no room, entries that no sample has met for the longest time are dropped; the loader can ask the agent for
 * them again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "duet_agent.h"
#include "duet_jvm.h"
#include "proc/allowance.h"

/* Limits of one JVM's tables; without them a hostile JVM could fill the loader's memory. */
#define JVM_MAX_BYTES (96u << 20)
#define JVM_MAX_HEAPS 16 /* HotSpot has three code heaps at most */
#define JVM_INLINING_DEPTH 256 /* frames of an inlining stack, as the agent reads them */

struct jvm;

struct jvm_method {
	uint32_t class_name; /* with dots: java.lang.String */
	uint32_t name;
	uint32_t signature;
	uint32_t source;
	uint32_t modifiers;
	uint32_t check; /* duet_method_check(); 0 with a jmethodID */
	uint64_t bare; /* struct duet_method::bare */
	uint32_t line_count;
	uint32_t used; /* the round of make_room() in which it was last used */
	const struct duet_line *lines; /* ascending bci */
};

/* A piece of code in the JVM's code cache: a compiled method or a stub. */
struct jvm_code {
	uint64_t address;
	uint64_t end; /* exclusive */
	uint64_t loaded_ns;
	uint64_t unloaded_ns; /* UINT64_MAX while it lives */
	uint64_t method; /* 0 for a stub */
	uint32_t stub_name; /* interned; 0 for a method */
	uint32_t id; /* id of the compilation; 0: unknown */
	uint32_t used; /* as in struct jvm_method */
	struct inlining *inlining; /* owned; NULL: no debug information */
};

/* `strings` must outlive the JVM, or be replaced by jvm_move_strings(). NULL when out of memory. */
struct jvm *jvm_new(struct intern *strings);
void jvm_free(struct jvm *jvm);
/* Call once, before any record: the payer's JVMs together have his share of ROOM_NAMES, and shrink to it. */
void jvm_set_payer(struct jvm *jvm, const struct payer *payer);

/* `other`: the same JVM from another source, or NULL; see runtime/alike.h. Call with NULL before it is freed. */
void jvm_set_other(struct jvm *jvm, const struct jvm *other);
const struct jvm *jvm_other(const struct jvm *jvm);

/* Applies one metadata record. 0; or -ENOMEM or, when the tables are full, -ENOSPC: then the record is lost. */
int jvm_apply(struct jvm *jvm, uint16_t type, const void *payload, uint32_t size);

/*
 * While `is_full`, the tables do not grow: new entries replace those that were not used for the longest time. Call it
 * periodically: it also shrinks the tables if they have more than their share of a room that is used up.
 */
void jvm_set_full(struct jvm *jvm, bool is_full);
/*
 * When a sample was taken. A reader from outside knows a method by its address, which may be another method's after
 * classes were unloaded: `unloads` decides which method it was, and the time if `unloads` is not known.
 */
struct jvm_moment {
	uint64_t time_ns;
	uint64_t unloads; /* struct duet_sample::unloads */
};
/* True if what a sample has hit then is gone: the agent said so, or classes were unloaded since. */
bool jvm_is_gone(const struct jvm *jvm, const struct duet_want *want, struct jvm_moment then);

/* Returns true if the name or code is not known, but the JVM may still answer a request for it. */
bool jvm_lacks(const struct jvm *jvm, const struct duet_want *want, struct jvm_moment then);
uint64_t jvm_records(const struct jvm *jvm); /* number of calls of jvm_apply() */

/* When classes were unloaded last, as the reader has noticed; 0: never. */
uint64_t jvm_unloaded_ns(const struct jvm *jvm);
/* The newest layout of the JVM's structures that the agent sent, or NULL if it sent none. */
const struct duet_jvm_layout *jvm_layout(const struct jvm *jvm);
/* The method that had this id at that time. NULL: unknown, or dropped. */
const struct jvm_method *jvm_method(const struct jvm *jvm, uint64_t id, struct jvm_moment then);
/* Returns false if the method is another one with the same id: `check` is duet_method_check(), or 0 if not known. */
static inline bool jvm_method_is(const struct jvm_method *method, uint32_t check)
{
	return !check || !method->check || check == method->check;
}
int32_t jvm_method_line(const struct jvm_method *method, int32_t bci); /* 0 = unknown */
bool jvm_owns_pc(const struct jvm *jvm, uint64_t pc); /* true inside a code heap */
/*
 * The code that was at `pc` at that time, or NULL. An `id` other than 0 is the compilation's id; it decides instead of
 * the time, because the JVM reports times late. Valid until the next jvm_apply().
 */
const struct jvm_code *jvm_code_at(const struct jvm *jvm, uint64_t pc, uint64_t time_ns, uint32_t id);
/*
 * Stores the inlining stack of the compiled code at `pc`, leaf first, the compiled method last, and the flags of its
 * entry (DUET_PC_…). Returns its depth, or 0 if there is no debug information for pc: what is inlined there is not
 * known. `is_return`: pc is a return address.
 */
uint32_t jvm_code_frames(const struct jvm_code *code, uint64_t pc, bool is_return,
			 struct duet_java_frame ret_frames[JVM_INLINING_DEPTH], uint32_t *ret_flags);
/*
 * The time (CLOCK_MONOTONIC) of the last change of code or methods. It grows with every change. Until the next change,
 * two samples for which jvm_is_current() and that have equal addresses have equal methods.
 */
uint64_t jvm_changed_ns(const struct jvm *jvm);
bool jvm_is_current(const struct jvm *jvm, struct jvm_moment then); /* true if no change is known since then */
bool jvm_is_interpreter(const struct jvm *jvm, const struct jvm_code *code); /* true for the template interpreter */
/*
 * The name of the thread that had this tid at that time: interned; 0 = unknown, or none that is known agrees with
 * `comm`, the name that the kernel has in the sample. Remembers what `comm` shows of the thread. "": it is not known.
 */
uint32_t jvm_thread_name(const struct jvm *jvm, uint32_t tid, uint64_t time_ns, const char *comm);
uint64_t jvm_thread_java_id(const struct jvm *jvm, uint32_t tid); /* of one with a name; 0: not known */

/* True if this is the return address in HotSpot's call stub, through which native code calls Java. */
bool jvm_is_call_stub(const struct jvm *jvm, uint64_t return_address);

/*
 * The number of frames, from frames[0] outward, that are one compiled method with the methods inlined into it. 0 if no
 * live compiled code has such an inlining stack: frames[0] then counts as interpreted.
 */
uint32_t jvm_match_compiled(const struct jvm *jvm, const struct duet_java_frame *frames, uint32_t depth);

/* Moves the strings to the table move->to, and changes the ids of all strings accordingly. */
void jvm_move_strings(struct jvm *jvm, struct intern_move *move);
/*
 * Drops code that was unloaded and threads that ended before `time_ns`; call it when no older sample is waiting. Also
 * drops facts that hold only for a moment: which methods and code no longer exist, and methods that had no id.
 */
void jvm_forget(struct jvm *jvm, uint64_t time_ns);
