/* SPDX-License-Identifier: MIT */
/*
 * A stack as writers show it: the texts of its frames in the chosen style, with leading frames, after -j, --reverse and
 * the filters. Frames with the same text have the same label.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "writers/shared/filter.h"
#include "writers/writer.h"

/*
 * All stacks may have profile.most_frames, each PATH_DEEP of them, and all together PATH_DEEP_FRAMES in addition: in a
 * chain of frames with a sample at each, the frames of all stacks are the square of its length. Frames beyond that are
 * under the mark. Such stacks have no callers in common any more: all together keep PATH_CUT_FRAMES, and then each the
 * PATH_SHORT frames nearest the leaf.
 */
#define PATH_DEEP 1024
#define PATH_DEEP_FRAMES (64u << 20)
#define PATH_CUT_FRAMES (2u << 20)
#define PATH_SHORT 8
#define PATH_TRUNCATED "[truncated]" /* stands for the frames that are left out */

struct path_label {
	const char *text;     /* name and suffix; valid until path_labels_release() */
	uint32_t name_len;    /* bytes of the name, without the suffix */
	uint32_t rank;	      /* position among all texts in their order, after tree_sort() */
	enum frame_kind kind; /* of the first frame seen with this text */
	const char *module;   /* "" = none; valid as long as the profile */
	bool included;	      /* matches -I */
	bool excluded;	      /* matches -X */
	bool used;	      /* some node of the tree has it */
};

/* By id in texts; 0 is not used. A vec. */
struct path_labels {
	struct intern texts;
	struct path_label *items;
	size_t len;
	size_t size;
};

struct path_step {
	uint32_t label;
	const struct frame *frame; /* NULL for a frame that the writer adds */
};

struct path_maker {
	const struct profile *profile; /* not owned, like the two below it */
	const struct writer_options *options;
	struct path_labels *labels; /* the caller's, or `own` */
	struct path_labels own;
	struct filter include, exclude; /* of the options */
	struct vec(uint32_t) frame_labels;  /* by index of the frame */
	struct vec(struct path_step) steps; /* leaf first */
	struct vec(uint32_t) groups; /* scratch: frames of the stack that are leading frames of --by, outermost first */
	uint32_t group_count; /* how many each stack has */
	/*
	 * number of steps of the stack itself; the leading frames follow: thread, process, --by, and outside of these
	 * the CPU and the policy, which belong to the stack if there are no other leading frames
	 */
	size_t depth;
	struct buf text;
	uint64_t all_frames; /* of all stacks so far */
	uint64_t deep_frames; /* frames so far that were beyond PATH_DEEP */
	uint64_t cut_frames; /* frames of stacks that had no room for them */
};

int path_labels_init(struct path_labels *labels); /* 0 or -ENOMEM */
void path_labels_release(struct path_labels *labels);

/*
 * Labels all frames. Without `labels` the maker has its own, and stacks are not reversed. Returns 0, or -ENOMEM: then
 * there is nothing to release.
 */
int path_maker_init(struct path_maker *maker, struct path_labels *labels, const struct profile *profile,
		    const struct writer_options *options);
void path_maker_release(struct path_maker *maker);
/* Labels the frames that were added to the profile since. Returns 0 or -ENOMEM. */
int path_maker_extend(struct path_maker *maker);
/* The label of a step of the stack. */
static inline const struct path_label *path_label(const struct path_maker *maker, size_t step)
{
	return &maker->labels->items[maker->steps.items[step].label];
}

/*
 * Sets `steps` to the stack that ends at this node. With --reverse, the leading frames stay at the root. Returns 1, or
 * 0 if the filters exclude the stack, or -ENOMEM.
 */
int path_make(struct path_maker *maker, uint32_t thread, uint32_t leaf);
/* Returns the label of a frame that says why others are missing; 0 when out of memory. */
uint32_t path_mark(struct path_maker *maker, const char *text);

/*
 * Returns what kind of work a stack is, for --classify, with async-profiler's names: [gc], [jit] and [vm] for threads
 * of the JVM; [class_load], [class_init], [class_resolve], [class_verify], [lambda_init] for what loads code; else what
 * runs: [Interpreter], [compiled], [native], [vtable_stubs], [c2i_adapter], or [vm] for libjvm's code that Java called.
 * `steps` are leaf first; one without a frame is passed over.
 */
const char *category_of(const struct intern *strings, const struct path_step *steps, size_t depth);

/*
 * ---- room for stacks ----
 *
 * Limits the stacks in a format of text. Such a format has the names of all frames of each stack, so the file may be as
 * large as the square of the profile. Of a stack that has no room, the frames nearest the leaf are written, under
 * PATH_TRUNCATED. A quarter of `most` is for all stacks together, in addition to what each may take.
 */

#define STACK_ROOM_EACH 8192 /* bytes that each stack may take */
#define STACK_ROOM_ALL (1ull << 30) /* above this, or profile.most_text, each stack may take less */
#define STACK_ROOM_LITTLE 512
#define STACK_ROOM_ONE (8u << 20) /* of one stack, which is in memory whole: readers take no longer lines */

struct stack_room {
	uint64_t bytes; /* that the stack may take */
	uint64_t taken; /* by all stacks */
	uint64_t most; /* then each may take less, and after half as much again only the mark */
};

/* `most_text`: of the profile. */
static inline struct stack_room stack_room_new(uint64_t most_text)
{
	uint64_t most = most_text && most_text < STACK_ROOM_ALL ? most_text : STACK_ROOM_ALL;

	return (struct stack_room){.bytes = most / 4, .most = most};
}

/* Call before each stack. Returns the bytes that it may take. */
static inline uint64_t stack_room_next(struct stack_room *room)
{
	room->bytes += room->taken < room->most ? STACK_ROOM_EACH : STACK_ROOM_LITTLE;
	if (room->bytes > room->most / 4 + STACK_ROOM_EACH)
		room->bytes = room->most / 4 + STACK_ROOM_EACH;
	if (room->taken >= room->most / 2 * 3)
		room->bytes = 0;
	return room->bytes < STACK_ROOM_ONE ? room->bytes : STACK_ROOM_ONE;
}

/* Whether a stack shows its leaf even if that has no room: until all have taken so much. */
static inline bool stack_room_has_leaf(const struct stack_room *room)
{
	return room->taken < room->most;
}

/* Call after each stack with the bytes that it took, which may be a frame too much. */
static inline void stack_room_took(struct stack_room *room, uint64_t bytes)
{
	room->taken += bytes;
	room->bytes -= bytes < room->bytes ? bytes : room->bytes;
}
