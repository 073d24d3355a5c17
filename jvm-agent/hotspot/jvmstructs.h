/* SPDX-License-Identifier: MIT */
/*
 * HotSpot's own layout, as it exports it to debuggers (gHotSpotVMStructs): where the code heaps are, which code blob
 * holds a pc, a thread's frame anchor and OS thread id. The tables are read once. A field that this JDK lacks stays
 * unknown, and a function that needs it says so by its return value. Lookups are async-signal-safe.
 */
#pragma once

#include <stddef.h>

#include "duet_jvm.h"

struct code_blob {
	const char *name; /* in the JVM's memory; not checked: the blob may have been freed meanwhile */
	uintptr_t code_begin; /* 0: unknown */
	uintptr_t entry; /* of an nmethod, after the inline cache check; else 0 */
	uintptr_t frame_complete; /* the frame is built from this pc on; 0: unknown */
	uintptr_t start; /* of the blob's header */
	size_t bytes; /* header included */
	size_t frame_bytes; /* 0: no fixed frame */
};

/* Reads the tables of libjvm. Returns 0, or -ENOENT when this JVM exports none. */
int jvmstructs_open(void);
/* Reads again which code heaps there are. Returns false when there are none: the JVM is starting. */
bool jvmstructs_renew_heaps(void);

/* Stores the reserved address range of code heap i. Returns false past the last heap. */
bool jvmstructs_code_heap(unsigned int i, uintptr_t *ret_low, uintptr_t *ret_high);
/* Returns true if pc is in a code heap, which means in code that the JVM generated. */
bool jvmstructs_is_code(uintptr_t pc);
/* Returns true if pc and the `before` bytes in front of it can be read. Most of a heap's range is only reserved. */
bool jvmstructs_is_readable_code(uintptr_t pc, size_t before);
/* Returns true if all bytes are in the committed part of one code heap, or of its segment map: it never shrinks. */
bool jvmstructs_is_committed(uintptr_t address, size_t bytes);
/* Finds the blob that holds pc. The calling thread must be running there: that keeps the blob alive meanwhile. */
bool jvmstructs_find_blob(uintptr_t pc, struct code_blob *ret_blob);
/* The same for any pc. The blob may have been freed by the time this returns, and ret_blob->entry is 0. */
bool jvmstructs_blob_at(uintptr_t pc, struct code_blob *ret_blob);
/* Returns an nmethod's compilation id; 0: unknown. */
uint32_t jvmstructs_blob_id(const struct code_blob *blob);
/* Stores the name of a code blob, which is empty when it cannot be read. */
void jvmstructs_blob_name(const struct code_blob *blob, char *name, size_t size);
/* Returns true for the names of compiled Java: "nmethod" and "native nmethod". Stubs have other names. */
bool jvmstructs_is_nmethod(const char *name);
/* Finds the first used blob of heap i at or after *cursor, 0 at first, and moves it past. Returns false at the end. */
bool jvmstructs_next_blob(unsigned int i, uintptr_t *cursor, struct code_blob *ret_blob);

/* Returns the kernel's id of a JavaThread (java.lang.Thread.eetop), or 0. Safe after that was freed. */
int jvmstructs_thread_id(uintptr_t java_thread);

/* The same for a JavaThread that is not freed meanwhile, such as that of the caller. */
int jvmstructs_living_id(uintptr_t java_thread);
/* Stores the higher end of the JavaThread's stack, and its size; it must not be freed meanwhile. False: not known. */
bool jvmstructs_stack(uintptr_t java_thread, uintptr_t *ret_base, uintptr_t *ret_bytes);

/* The fields of a thread's last_Java_frame, which says where the thread left Java code. */
struct frame_anchor {
	uintptr_t *sp; /* points to 0: the thread has no Java frames */
	uintptr_t *pc; /* points to 0: the pc is the word below sp */
	uintptr_t *fp; /* the value may be stale, unless the frame is an interpreter frame */
};
bool jvmstructs_anchor(uintptr_t java_thread, struct frame_anchor *ret_anchor);
/* The same for Java frames below a call from native code, by its JavaCallWrapper, which is not read. */
bool jvmstructs_caller_anchor(uintptr_t wrapper, struct frame_anchor *ret_anchor);

/* Returns the address of a static field of HotSpot's class StubRoutines; 0: unknown. */
uintptr_t jvmstructs_stub_variable(void);

/*
 * Stores the part of the layout that recognises mounted virtual threads. Returns false when HotSpot does not export it.
 * *ret_reads_objects: references are addresses, so objects can be read (not with ZGC).
 */
bool jvmstructs_virtual(struct duet_jvm_virtual *ret, bool *ret_reads_objects);

/* Returns the address of one of the JVM's own counters (jcmd PerfCounter.print), 64 bits; 0 with -XX:-UsePerfData. */
uintptr_t jvmstructs_counter(const char *name);

/*
 * Stores what a walker outside this process needs. `version` is the Java version, which determines the interpreter's
 * frames. Fields that this JVM lacks are DUET_JVM_NO_FIELD. Returns false when fields are missing that a walk needs.
 */
bool jvmstructs_layout(struct duet_jvm_layout *ret_layout, int version);

/*
 * codelets.c: records in *ret what the walk needs for one of the interpreter's codelets, where a frame is not complete.
 * `name` is HotSpot's name of the codelet. The interpreter's bounds must be in *ret already.
 */
void codelet_publish(struct duet_jvm_layout *ret, const char *name, uintptr_t at, uint32_t bytes);

/*
 * perf_counter.c: HotSpot's own counters, which jcmd PerfCounter.print shows. Returns the address of the 64 bits that
 * hold this counter for good, or 0 when there is none. `memory`: start of HotSpot's counter memory (perfMemory.hpp).
 */
uintptr_t perf_counter(uintptr_t memory, const char *name);
/* The same for one entry, wherever that is; 0 when no entry of this counter is there. */
uintptr_t perf_counter_of_entry(uintptr_t entry, const char *name);

/* compiling.c: call once, and fills in all that the JVM exports; else *ret stays all 0. */
void compiling_open(void);
void compiling_publish(struct duet_jvm_compiling *ret);
