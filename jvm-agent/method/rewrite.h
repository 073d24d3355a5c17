/* SPDX-License-Identifier: MIT */
/*
 * Class files with calls of the agent's probes inserted into methods. Only the code of these methods changes, and
 * constants are added: what a JVM allows of a class that is loaded (JVMTI RetransformClasses). The JVM keeps each
 * constant that a class has ever had, so the same ones are added each time: none of them is of one recording.
 */
#pragma once

#include "method/classfile.h"

/* The static methods of the helper class that are called, with their descriptors. */
#define PROBE_CALLED "called"
#define PROBE_CALLED_TYPE "(I)V" /* id */
#define PROBE_RETURNED "returned"
#define PROBE_RETURNED_TYPE "(JI)V" /* System.nanoTime() at the call, id */
#define PROBE_TIMED "timed" /* called by PROBE_RETURNED alone, when the threshold is reached */
#define PROBE_TIMED_TYPE "(JJI)V" /* System.nanoTime() at the call, duration in ns, id */
#define PROBE_CREATED "created"
#define PROBE_CREATED_TYPE "(Ljava/lang/Throwable;I)V" /* this, id */
#define PROBE_MADE "made" /* called by PROBE_CREATED alone, while the probe has an event; the same arguments */
#define PROBE_NEVER "never" /* ()V, native and without a function: natives.c */
/* A static field: for each probe, by the lower part of its id, the threshold in ns, or INT64_MAX: it has no event. */
#define PROBE_THRESHOLDS "thresholds"
#define PROBE_THRESHOLDS_TYPE "[J"
#define PROBE_PLACES 32 /* a power of 2; numbers of the lower part */

#define PROBE_NONE (-1) /* no id of a probe */
#define ACC_NATIVE 0x0100 /* of a method's access flags */
#define PROBES_MAX 16 /* in one method */

enum probe_kind {
	PROBE_CALL, /* PROBE_CALLED at the entry; for native methods, see natives.h */
	PROBE_TIME, /* PROBE_RETURNED before each return, and when an exception leaves the method */
	PROBE_CREATE, /* PROBE_CREATED before each return; only for constructors of java.lang.Throwable */
	PROBE_KINDS
};

struct probe {
	enum probe_kind kind;
	int16_t id; /* of probes_add() */
};

struct rewrite_method {
	struct class_text class, name, descriptor;
	bool is_native, is_intrinsic;
};

struct rewrite {
	const char *helper; /* name of the helper class, with slashes */
	/* Stores the probes for a method that has code, or is native, and returns their number, <= PROBES_MAX. */
	uint32_t (*choose)(void *context, const struct rewrite_method *method, struct probe probes[PROBES_MAX]);
	void *context;
	/* results */
	uint32_t methods; /* that have probes now */
	uint32_t left; /* that were chosen, but are left as they are: native, or too large */
};

/* Returns 1 and the new file, which the caller frees; 0: no change; -EINVAL: malformed; -ERANGE: too large; -ENOMEM. */
int rewrite_class(struct rewrite *rewrite, const uint8_t *bytes, uint32_t size, uint8_t **ret, uint32_t *ret_size);

/*
 * Writes the helper class, under this name (with slashes). Its methods are native but PROBE_CREATED and PROBE_RETURNED,
 * which compilers inline: a call that does not reach its threshold never leaves Java. Look at to->failed.
 */
void helper_class_write(const char *name, struct class_writer *to);
