/* SPDX-License-Identifier: MIT */
/*
 * The inlining stacks of one compilation: the methods at each of its pcs. A stack is a list of frames, leaf first, the
 * compiled method last. Stacks share the frames of their callers, and frames share the ids of their methods, so a pc
 * takes a dozen bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_agent.h"

#define INLINING_MATCH_DEPTH 64 /* deeper stacks have no hash; HotSpot inlines less deeply (MaxInlineLevel 15) */

struct inlining {
	struct inlining *newer, *older; /* for the owner: other compilations of the same method */
	uint32_t pc_count;
	uint32_t node_count; /* a node is a frame with its callers */
	uint32_t method_count;
	uint32_t stack_count;
	uint32_t width; /* bytes of a cell: 2 or 4 */
	/* Then the hashes of the stacks, ascending, uint32_t, and columns of cells, see enum column. */
	uint64_t methods[];
};

/*
 * Makes the table of a checked record. *ret is NULL if the record has no debug information; the caller frees it with
 * free(). Leaves out pcs whose stack is deeper than JVM_INLINING_DEPTH. Also leaves out pcs that share frames in
 * another way than the agent does, because they would take too long. 0 or -ENOMEM.
 */
int inlining_new(const struct duet_code_load *record, struct inlining **ret);
size_t inlining_bytes(const struct inlining *inlining); /* memory in use; 0 for NULL */
/*
 * Stores the stack of the first entry at this offset from the start of the code, or after it, and its flags
 * (DUET_PC_…). Returns its depth; 0: there is none, and the flags say whether an inlined method may be missing.
 */
uint32_t inlining_frames(const struct inlining *inlining, uint64_t offset, struct duet_java_frame *ret_frames,
			 uint32_t *ret_flags);
/* Returns the hash of a stack with one more caller. Begin with 0. */
uint64_t inlining_hash(uint64_t hash, const struct duet_java_frame *caller);
/* True if a pc has a stack with this hash. Another stack has the same hash by chance in one of 10^8 cases. */
bool inlining_has(const struct inlining *inlining, uint64_t hash);
