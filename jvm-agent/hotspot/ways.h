/* SPDX-License-Identifier: MIT */
/* The instructions of a compilation, and which entries of its debug information are on the ways through them. */
#pragma once

#include "hotspot/instruction.h"
#include "hotspot/scopes.h"

#define NO_ENTRY UINT32_MAX

/* An entry that is met on a way through the code. */
struct seen {
	uint32_t entry; /* index in `pcs`, or NO_ENTRY */
	uint16_t blocks; /* number of branches, jumps and targets on the way */
	bool is_check; /* met at a branch */
	bool is_aside; /* from code that branches there: right for calls, less often for others; measured */
};

struct step {
	uint32_t offset, bytes;
	enum instruction_kind kind;
	uint32_t target; /* index of a step, or NO_ENTRY */
	bool is_target;
	uint32_t from; /* where it is the target: index of the first branch or jump to it */
	bool is_request; /* struct instruction */
	struct seen own, next, previous;
};

struct ways {
	struct step *items; /* ascending, without gaps */
	uint32_t count;
	uint32_t budget; /* null checks that may still be read */
	bool *is_call; /* of each entry: it is that of a call that returns, not of a trap */
	const struct scopes *of;
};

/* Finds the ways through the code of `scopes`, which must outlive them. Returns 0 or -ENOMEM. */
int ways_find(struct ways *ret, const struct scopes *scopes);
void ways_free(struct ways *ways);
/* Bytes that are no known instruction are passed one by one, and no way leads through them. */
struct instruction ways_read(const struct scopes *scopes, size_t at);
bool ways_is_safepoint(const struct scopes *of, uint32_t entry);
