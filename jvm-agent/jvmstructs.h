/* SPDX-License-Identifier: MIT */
/*
 * HotSpot's own layout, as it exports it to debuggers (gHotSpotVMStructs): where
 * the code heaps are, which code blob holds a pc, a thread's frame anchor and
 * OS thread id. Read once; a field that this JDK lacks stays unknown, and what
 * needs it says so by its return value. Lookups are async-signal-safe.
 */
#ifndef JVMSTRUCTS_H
#define JVMSTRUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_jvm.h"

struct code_blob {
	const char *name; /* unchecked: the blob may be gone by now */
	uintptr_t code_begin; /* 0: unknown */
	uintptr_t entry; /* of an nmethod, behind the inline cache check; else 0 */
	uintptr_t frame_complete; /* the frame is built from this pc on; 0: unknown */
	uintptr_t start; /* of the blob's header */
	size_t bytes; /* header included */
	size_t frame_bytes; /* 0: no fixed frame */
};

/* Reads the tables through libjvm's handle. 0, or -ENOENT when this JVM exports none. */
int jvmstructs_open(void *libjvm);

/* Reserved range of code heap i; false past the last. */
bool jvmstructs_code_heap(unsigned int i, uintptr_t *ret_low, uintptr_t *ret_high);
/* Is pc in any code heap, so JVM-generated code? */
bool jvmstructs_is_code(uintptr_t pc);
/* Can the `before` bytes in front of pc be read? Most of a heap's range is only reserved. */
bool jvmstructs_is_readable_code(uintptr_t pc, size_t before);
/* Are these bytes code, or of a code heap's map of it, and there? They stay: neither ever shrinks. */
bool jvmstructs_is_committed(uintptr_t address, size_t bytes);
/* The blob that holds the calling thread's pc (so that it stays alive meanwhile). */
bool jvmstructs_find_blob(uintptr_t pc, struct code_blob *ret_blob);
/* The same on any other thread: the blob may be gone by now, and its entry is not told. */
bool jvmstructs_blob_at(uintptr_t pc, struct code_blob *ret_blob);
/* Of an nmethod: the id of the compilation; 0: unknown. */
uint32_t jvmstructs_blob_id(const struct code_blob *blob);
/* Is it compiled Java? HotSpot calls those "nmethod" and "native nmethod", stubs by names of their own. */
bool jvmstructs_is_nmethod(const char *name);
/* The first used blob at or after *cursor in heap i (0 starts), *cursor moved behind it; false at the end. */
bool jvmstructs_next_blob(unsigned int i, uintptr_t *cursor, struct code_blob *ret_blob);

/* The kernel's id of a JavaThread (as java.lang.Thread.eetop gives it), or 0. Harmless when it is gone. */
int jvmstructs_thread_id(uintptr_t java_thread);

/* A thread's last_Java_frame: where it left Java code. */
struct frame_anchor {
	uintptr_t *sp;
	uintptr_t *pc;
};
bool jvmstructs_anchor(uintptr_t java_thread, struct frame_anchor *ret_anchor);

/*
 * What of the layout HotSpot exports to tell mounted virtual threads; false when it has none. *ret_reads_objects: its
 * references are addresses.
 */
bool jvmstructs_virtual(struct duet_jvm_virtual *ret, bool *ret_reads_objects);

/*
 * What a walker outside of this process needs; `version` of Java tells the interpreter's frames apart. Fields that this
 * JVM lacks are DUET_JVM_NO_FIELD. false when it tells nothing of use.
 */
bool jvmstructs_layout(struct duet_jvm_layout *ret_layout, int version);

#endif
