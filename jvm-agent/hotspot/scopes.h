/* SPDX-License-Identifier: MIT */
/*
 * Which inlined methods the instructions between two entries of an nmethod's debug information belong to.
 *
 * Without -XX:+DebugNonSafepoints there are entries for calls and polls only, and HotSpot gives each instruction the
 * scope of the next entry. That is often the scope of other code: of what comes after an inlined loop, or of a rare
 * path that lies at the end. (With the option, that is so only for calls before a jump.) The ways through the code tell
 * more. A branch to a block that ends in a call belongs to
 * the scope of that call, because the compilers place the checks of an inlined method so: the block makes the check's
 * trap. So does an access that checks for null, by a table. An instruction has the scope of an entry on its way.
 * A call of a stub has the scope from whose byte code a way leads to it, see stub_callers.h.
 */
#pragma once

#include <stddef.h>

#include "duet_agent.h"
#include "hotspot/stub_callers.h"

enum scopes_calls {
	SCOPES_CALLS_NOTHING,
	SCOPES_CALLS_METHOD, /* which the compilers may replace by a stub */
	SCOPES_CALLS_RUNTIME, /* also stubs that do a part of its work, such as the barriers of garbage collectors */
};

#define SCOPES_CLASSES 32 /* most classes of one compilation in which implementations are looked for */

/* An nmethod's debug information, and its code; other bytes may follow that. */
struct scopes {
	uint64_t address; /* of the code */
	const uint8_t *code;
	size_t code_bytes;
	const uint8_t *tables; /* a part of the debug information that has the table of null checks somewhere */
	size_t table_bytes;
	const struct duet_code_pc *pcs; /* ascending; flags: SCOPES_…, at least one */
	uint32_t pc_count;
	struct duet_java_frame *frames; /* that the pcs refer to; others are added */
	uint32_t frame_count, most_frames;
	const uint8_t *metadata; /* addresses of methods and classes */
	size_t metadata_bytes;
	bool is_exact; /* the compiler has recorded where the scope changes */
	/* What the frame's byte code may call. */
	enum scopes_calls (*calls)(const struct duet_java_frame *frame);
	int (*stub_at)(uint64_t address); /* returns stub_callers_kind() */
	/* Which of the metadata are classes: receivers of virtual calls, and others. Returns their number. */
	uint32_t (*find_classes)(const struct scopes *scopes, uintptr_t classes[SCOPES_CLASSES]);
	void (*find_callers)(struct stub_callers *search, uint64_t method, int32_t begin, int32_t end);
};

/* A call or poll at which the JVM knows all values; else the entry is there for profilers only. */
#define SCOPES_SAFEPOINT (1u << 31)
#define SCOPES_NOTHING (1u << 30) /* stands for the method itself where the compiler has recorded nothing */

/*
 * Returns a table with an entry for each run of instructions with one scope, which the caller frees, and its length.
 * Returns NULL when out of memory, when it would have more than `most` entries, or without code. The entries have the
 * flags DUET_PC_…. At the offset of a safepoint's entry in the old table, the new one has the same scope.
 */
struct duet_code_pc *scopes_estimate(struct scopes *scopes, uint32_t most, uint32_t *ret_count);
