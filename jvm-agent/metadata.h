/* SPDX-License-Identifier: MIT */
/*
 * Methods and their classes as HotSpot keeps them (metaspace), read with care: what is asked about may have been
 * unloaded, or never have been a method. Nothing is believed unless it proves itself: a method's constant pool names a
 * class, whose own constant pool names that class. No word from outside goes to JVMTI, which would trust it.
 *
 * A method goes by its jmethodID, or where it has none, by its address with DUET_METHOD_BARE.
 */
#ifndef METADATA_H
#define METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_agent.h"

/* A structure of the JVM's, copied in one go: each look into memory that may be gone is a system call. */
struct metadata_object {
	uintptr_t address;
	size_t bytes; /* as many as could be copied */
	unsigned char data[640]; /* an InstanceKlass has its fields within; what lies behind is read alone */
};

/* One that has proven itself. */
struct metadata_method {
	struct metadata_object itself, const_method, pool, holder;
};

/* `version` of Java. False when this JVM does not tell what is needed. */
bool metadata_open(void *libjvm, int version);

bool metadata_prove(uintptr_t address, struct metadata_method *ret);
/* As metadata_key() of what is proven; 0 when it is not. */
uint64_t metadata_prove_key(uintptr_t address);
/* By jmethodID, as long as that is an address (before JDK 26), or bare. */
bool metadata_find(uint64_t key, struct metadata_method *ret);
uint64_t metadata_key(const struct metadata_method *method);

/* What is shown of it; all but the modifiers is allocated, and NULL where there is none. */
struct metadata_names {
	char *class_signature; /* as of JVMTI: "Ljava/lang/String;" */
	char *name;
	char *signature;
	char *source;
	struct duet_line *lines; /* ascending bci */
	uint32_t line_count;
	uint32_t modifiers;
};

/* False, with nothing to release, when the first three cannot be read. */
bool metadata_names_read(const struct metadata_method *method, struct metadata_names *ret);
void metadata_names_release(struct metadata_names *names);
/* javac may write a LineNumberTable in any order. */
void metadata_sort_lines(struct duet_line *lines, size_t count);

#endif
