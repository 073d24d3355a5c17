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
