/* SPDX-License-Identifier: MIT */
/* The constant pools of a chunk of a JFR file: threads, stacks, methods, classes, strings. */
#pragma once

#include "base/buf.h"
#include "profile/profile.h"
#include "readers/jfr/types.h"

enum jfr_pool {
	JFR_POOL_THREAD,
	JFR_POOL_PROCESS,
	JFR_POOL_CLASS,
	JFR_POOL_METHOD,
	JFR_POOL_SYMBOL,
	JFR_POOL_STRING,
	JFR_POOL_FRAME_TYPE,
	JFR_POOL_STACK_TRACE,
	JFR_POOL_OLD_OBJECT,
	JFR_POOL_USER_EVENT_TYPE,
	JFR_POOL_GC_WHEN,
	JFR_POOL_FLAG_ORIGIN,
	JFR_POOL_THREAD_STATE,
	JFR_POOL_STACK_FRAME, /* no pool: a structure in stack traces */
	JFR_POOL_TYPES
};

#define JFR_NO_ROW (UINT32_MAX - 1)

/* A constant is read once: it may be as long as the chunk, and millions of others may refer to it. */
struct jfr_constant {
	size_t at; /* offset in the chunk of the first byte after the key */
	/*
	 * Index of the row that was made from it, in the profile or in `meanings`; JFR_NO_ROW = it means none;
	 * UINT32_MAX = not looked at yet.
	 */
	uint32_t known;
};

/* A process, a class, or a method with its class. Strings of the profile. */
struct jfr_meaning {
	uint32_t name; /* of the process; of the class as the file has it; of the method */
	uint32_t class_name, java_name, source; /* of the method's class; java_name and source also of a class */
	uint32_t descriptor, modifiers; /* of the method */
	uint32_t pid, container;
	uint32_t frames[2]; /* of a class, inside and outside of buffers: frame of the profile, plus 1 */
};

/* A JVM that the file describes. */
struct jfr_jvm {
	uint32_t pid;
	uint32_t runtime, vm_flags; /* as in struct profile_owner */
};

struct jfr_constants {
	struct profile *profile;
	struct jfr_types *types;
	const unsigned char *bytes; /* the chunk */
	size_t len;
	const struct jfr_type *pool_types[JFR_POOL_TYPES]; /* NULL: the chunk has none */
	struct map keys[JFR_POOL_TYPES]; /* key -> index in `all` */
	struct vec(uint32_t) near[JFR_POOL_TYPES]; /* the same of small keys, by key; UINT32_MAX = none */
	struct vec(struct jfr_constant) all;
	struct vec(struct jfr_meaning) meanings; /* of constants in `all` */
	struct vec(uint32_t) stack; /* leaf first */
	struct buf text;
	uint32_t pid; /* of the JVM that made the recording; 0 = not known */
	struct vec(struct jfr_jvm) jvms; /* filled by the caller */
	struct map jvm_ids; /* pid -> index in jvms */
	uint32_t nobody; /* row of threads that the chunk does not have; UINT32_MAX = none yet */
	struct buf *why;
};

/* `types` must not move. */
void jfr_constants_init(struct jfr_constants *c, struct profile *profile, struct jfr_types *types, struct buf *why);
void jfr_constants_release(struct jfr_constants *c);
/* Begins a chunk whose types have been read. */
void jfr_constants_begin(struct jfr_constants *c, const unsigned char *bytes, size_t len);
/* Adds the pools of an event; the cursor is after the event's type. 0, or -errno with the cause in `why`. */
int jfr_constants_add(struct jfr_constants *c, struct jfr_cursor cursor);

/* The profile's string for a text that may be in the pool. */
uint32_t jfr_constants_string(struct jfr_constants *c, const struct jfr_text *text);
/* The profile's string for a row of a pool of texts, such as JFR_POOL_SYMBOL. 0: there is none. */
uint32_t jfr_constants_name(struct jfr_constants *c, enum jfr_pool pool, uint64_t key);
/*
 * Store the index of a thread, the node of a stack, the frame of an object's class, the node of a span's tag. Key 0
 * means none: a thread without a name, the empty stack, UINT32_MAX for a class, and the frame of spans without a tag.
 * Return 0, or -errno with the cause in `why`.
 */
int jfr_constants_thread(struct jfr_constants *c, uint64_t key, uint32_t *ret);
int jfr_constants_stack(struct jfr_constants *c, uint64_t key, uint32_t *ret_node);
int jfr_constants_class(struct jfr_constants *c, uint64_t key, bool is_outside, uint32_t *ret_frame);
int jfr_constants_span(struct jfr_constants *c, uint64_t key, uint32_t *ret_node);
/* The same for the class of an old object, and for the data of an event of the program's own, below its type. */
int jfr_constants_object(struct jfr_constants *c, uint64_t key, uint32_t *ret_frame);
int jfr_constants_user_event(struct jfr_constants *c, uint64_t type, const struct jfr_text *data, uint32_t *ret_node);
