/* SPDX-License-Identifier: MIT */
/*
 * Java objects of a JVM that is read from outside. Collectors move objects, and free the memory of the old copies. ZGC
 * marks references that it must update before Java code may use them: the object that such a reference leads to is in
 * doubt. The caller, who reads from one object to the next, checks the class of each object, and reads all of them a
 * second time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "duet_jvm.h"

#define OBJECTS_TEXT_MAX 1024 /* characters of a string; the rest is cut */
#define OBJECTS_TEXT_BYTES (3 * OBJECTS_TEXT_MAX + 1)

/* Offsets of the fields of java.lang.Thread that are read. */
struct objects_thread_fields {
	uint16_t name; /* a reference to a String */
	uint16_t tid; /* 64 bits: Thread.threadId() */
	uint16_t eetop; /* 64 bits: the address of its JavaThread; 0 when it has none */
};

/* `version` is the Java version. Returns false when this JVM does not export what is needed. */
bool objects_open(int version);
/*
 * Finds the layout of objects. Returns 0, -EAGAIN while the JVM has not loaded the classes of strings and threads, or
 * -ENOTSUP when they are not as in any version that is known.
 */
int objects_learn(void);
const struct objects_thread_fields *objects_thread_fields(void);
/* Fills in how the names of virtual threads are read. Sets nothing when references carry colours (ZGC). */
void objects_describe(struct duet_jvm_virtual *how);

/* Follows a reference to an object; 0: null. Sets *doubt if another object may be at that address by now. */
uintptr_t objects_follow(uintptr_t field, bool *doubt);
/* The same for a reference outside of the heap, which is never compressed. */
uintptr_t objects_follow_root(uintptr_t at, bool *doubt);
/* Copies a String as UTF-8, with a NUL. Returns false if there is no String. */
bool objects_text(uintptr_t string, char text[OBJECTS_TEXT_BYTES], bool *doubt);

/* The fields of a class, from the tables that the JVM keeps for it. In fields.c, for objects.c. */

/* `version` is the Java version. Returns false when this JVM does not export what is needed. */
bool fields_open(int version);
/*
 * Finds an instance field that the class itself declares. `klass` is the address of its InstanceKlass. Stores the
 * offset in an object. Returns false when there is no such field.
 */
bool fields_find(uintptr_t klass, const char *name, const char *signature, uint16_t *ret_offset);

/*
 * Where ZGC has moved objects to. In moved.c, for objects.c. After it has moved an object, references in other objects
 * keep the old address until the next collection marks through them, or the program loads them. ZGC keeps a table of
 * the new addresses as long.
 */

/*
 * Finds the tables in the JVM that is open. `offset_mask` has the bits of an address that say where in the heap an
 * object is. Returns false when they are not found; then moved_to() returns each address as it is.
 */
bool moved_learn(uintptr_t offset_mask);
/*
 * Returns the new address of the object that was at `address`, or `address` when no table has it. A table may be older
 * than the object that is at the address now, so the caller checks what it finds there.
 */
uintptr_t moved_to(uintptr_t address);
