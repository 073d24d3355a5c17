/* SPDX-License-Identifier: MIT */
/*
 * The constant pools of a JFR file: what events name by number. Numbers stay the same in the whole file, and each chunk
 * has the rows that its events name: each part of it has those that no part before it has.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "writers/shared/ordered.h"
#include "writers/shared/path.h"

/* Numbers of jdk.types.ThreadState. async-profiler's converter takes samples of the first as CPU time. */
enum jfr_thread_state { JFR_STATE_DEFAULT = 1, JFR_STATE_RUNNABLE, JFR_STATE_SLEEPING, JFR_STATES };

/* Numbers of jdk.types.GCWhen and of profiler.types.LogLevel, which async-profiler has from 0 on. */
enum jfr_gc_when { JFR_BEFORE_GC = 1, JFR_AFTER_GC, JFR_GC_WHENS };
enum jfr_log_level { JFR_LOG_TRACE = 1, JFR_LOG_DEBUG, JFR_LOG_INFO, JFR_LOG_WARN, JFR_LOG_ERROR, JFR_LOG_LEVELS };

enum { JFR_FLAG_OF_OPTION = 1, JFR_FLAG_ORIGINS }; /* numbers of jdk.types.FlagValueOrigin */

struct jfr_class {
	uint32_t name, source; /* symbols */
	bool is_of_jdk; /* or of no Java code: the JVM's own loader has it */
};

struct jfr_method {
	uint32_t class_id, name, descriptor;
	uint32_t modifiers;
};

/* Rows that are known by a text; id - 1 is their index. */
struct jfr_rows {
	struct intern ids;
	struct vec(uint32_t) parts; /* the last part that has each row */
};

/* A number for each row of a table of the profile. */
struct jfr_marks vec(uint32_t);

struct jfr_pools {
	const struct profile *profile;
	struct path_maker path;
	unsigned int type_base; /* is added to the numbers of types */
	bool is_plain; /* writer_jfr.is_plain */
	uint32_t first_row; /* writer_jfr.first_row */
	uint32_t part; /* from 1, counted on from chunk to chunk */
	uint32_t chunk; /* its first part */
	struct jfr_rows symbols, classes, methods, processes;
	struct jfr_rows texts; /* strings that events name by number */
	struct jfr_rows user_types; /* names of types that programs have registered */
	struct vec(struct jfr_class) class_rows;
	struct vec(struct jfr_method) method_rows;
	struct jfr_marks objects; /* by id of the class: an object of each */
	struct vec(uint32_t) process_threads; /* a thread of each process */
	struct jfr_marks frame_methods; /* by index of the frame; 0 = not known yet */
	struct threads threads;
	struct jfr_marks thread_ids, thread_parts; /* by the first index of the thread */
	struct map thread_numbers; /* those in use */
	struct jfr_marks stack_parts; /* by node */
	struct buf stacks; /* the rows of this part */
	uint32_t stack_count;
	uint32_t loader_part; /* the last part that has the class loader of the other classes */
	uint32_t pool_count; /* of the event that is being written */
	struct buf text;
	bool failed; /* out of memory */
};

/* Returns 0 or -ENOMEM; call jfr_pools_release() in both cases. */
int jfr_pools_init(struct jfr_pools *pools, const struct profile *profile, const struct writer_options *options);
void jfr_pools_release(struct jfr_pools *pools);
/* Makes room for what was added to the profile since. Returns 0 or -ENOMEM. */
int jfr_pools_extend(struct jfr_pools *pools);

/* The number by which an event names a row, which the chunk then has. 0 is none. */
uint32_t jfr_thread(struct jfr_pools *pools, uint32_t thread);
uint32_t jfr_stack(struct jfr_pools *pools, uint32_t thread, uint32_t node);
/* The method of a stack's leaf; call it after jfr_stack(). 0 for an empty stack. */
uint32_t jfr_leaf_method(struct jfr_pools *pools, uint32_t node);
uint32_t jfr_class_of(struct jfr_pools *pools, const char *name); /* a name with dots, of a class or an array */
uint32_t jfr_text_row(struct jfr_pools *pools, const char *text); /* a row of java.lang.String */
uint32_t jfr_user_type(struct jfr_pools *pools, const char *name);
uint32_t jfr_object_of(struct jfr_pools *pools, uint32_t class_number); /* an object that is still in use */

/*
 * Appends the event with the rows of the part, and begins the next part. `link` is the distance back to the event of
 * the part before in the chunk, 0 if there is none.
 */
void jfr_put_pools(struct jfr_pools *pools, struct buf *out, uint64_t ticks, uint64_t link);
void jfr_pools_end_chunk(struct jfr_pools *pools); /* the next part is the first of a chunk */
