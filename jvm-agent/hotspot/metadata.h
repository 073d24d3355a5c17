/* SPDX-License-Identifier: MIT */
/*
 * Reads methods and their classes as HotSpot keeps them (metaspace). Reads are careful: the method may have been
 * unloaded, or the address may never have been a method. An address counts as a method only when it is proven: the
 * method's constant pool names a class, and that class's own constant pool names the same class. Before JDK 26 no value
 * from outside is passed to JVMTI, which would trust it. A method's key is its jmethodID, or else duet_method_key().
 */
#pragma once

#include <stddef.h>

#include "duet_agent.h"

/* Copy of one of the JVM's structures, made at once: each read of memory that may be gone is a system call. */
struct metadata_object {
	uintptr_t address;
	size_t bytes; /* bytes that could be copied */
	unsigned char data[640]; /* room for all fields of an InstanceKlass; what follows them is read separately */
};

/* A proven method. */
struct metadata_method {
	struct metadata_object itself, const_method, pool, holder;
};

/* `by_address`: keys are always addresses, for who does not use jmethodIDs. Returns false if something is missing. */
bool metadata_open(int version, bool by_address);

bool metadata_prove(uintptr_t address, struct metadata_method *ret);
struct metadata_key {
	uint64_t method; /* jmethodID or duet_method_key() */
	uint32_t check; /* duet_method_check(); 0 with a jmethodID */
};

struct metadata_key metadata_key(const struct metadata_method *method);
/* Returns metadata_key() of the method at this address; zeros when it is not proven. */
struct metadata_key metadata_prove_key(uintptr_t address);
/* Proves the method with this key: a jmethodID, while that is an address (before JDK 26), or a duet_method_key(). */
bool metadata_find(uint64_t key, struct metadata_method *ret);
/* Returns the check that belongs to the key by which the method was found; it may have got a jmethodID since. */
uint32_t metadata_check(const struct metadata_method *method, uint64_t key);

/* The byte code at `bci`, none of HotSpot's own; 0 if it cannot be read: a frame may have no bci. */
uint8_t metadata_bytecode(const struct metadata_method *method, int32_t bci);
/* The same of all that can be read, which the caller frees. NULL: the JVM compiles no method of this size. */
uint8_t *metadata_code(const struct metadata_method *method, uint32_t *ret_bytes);
/*
 * Finds the method that an invoke calls, if it has run; of a virtual one that of the class it names. `operand` is what
 * follows the invoke, in the machine's byte order.
 */
bool metadata_callee(const struct metadata_method *method, uint16_t operand, struct metadata_method *ret);
bool metadata_is_class(uintptr_t address);
/*
 * Finds the method of a class, its own or one that it inherits, that implements `method` or overrides it. Each method
 * that is compared takes one of `budget`, the last of which stays.
 */
bool metadata_implementation(uintptr_t class, const struct metadata_method *method, uint32_t *budget,
			     struct metadata_method *ret);
/*
 * Returns the type of the field, or the types of the arguments and of the result, that an instruction names; of the
 * method itself for opcode 0. The caller frees it. NULL: it cannot be read.
 */
char *metadata_types(const struct metadata_method *method, uint8_t opcode, uint16_t operand);
/* Returns "Ljava/lang/System;arraycopy ", which the caller frees, or NULL. */
char *metadata_name(const struct metadata_method *method);

/* What duet shows of a method. The texts and lines are allocated, and NULL where the method has none. */
struct metadata_names {
	char *class_signature; /* as JVMTI gives it: "Ljava/lang/String;" */
	char *name;
	char *signature;
	char *source;
	struct duet_line *lines; /* ascending bci */
	uint32_t line_count;
	uint32_t modifiers;
	uint64_t bare; /* the method's duet_method_key(), also if its key is a jmethodID; 0: not read from memory */
};

/* Returns false, with nothing to release, when class, name or signature cannot be read. */
bool metadata_names_read(const struct metadata_method *method, struct metadata_names *ret);
void metadata_names_release(struct metadata_names *names);
/* Sorts by bci: javac may write a LineNumberTable in any order. */
void metadata_sort_lines(struct duet_line *lines, size_t count);
