/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A per-CPU cache of facts about code and methods. It saves reads of the process's memory, which are most of the cost
 * of a walk. The cache is one map value with small entries: whatever a sample touches must be fetched into the CPU's
 * cache.
 *
 * Facts about Java are checked again after each safepoint, and after 10 ms at the latest. HotSpot unloads no class
 * without a safepoint. From JDK 20 on, it also needs a safepoint to free code in which a thread was seen. Up to JDK 19
 * the sweeper (sweeper.cpp) frees code between safepoints, but it first makes the code not entrant and passes over all
 * code three times.
 */
#pragma once

#include "unwind.bpf.h"

#define UNWIND_KNOWN_MS 10

/* When a fact was last proven: process, time, number of safepoints. Lower bits suffice to notice a change. */
struct unwind_proof {
	u32 process; /* lower bits of its start time */
	u32 time_ms;
	u32 safepoints; /* lower bits of duet_scratch's safepoints */
};

/* The frame of a compiled method at the return address of one of its calls. */
struct unwind_known_frame {
	u64 pc;
	struct unwind_proof proof;
	u32 id; /* id of the compilation */
	u32 id_back; /* the id lies this many bytes before pc, in the nmethod */
	u32 frame_bytes;
};
_Static_assert(sizeof(struct unwind_known_frame) == 32, "two of them are a line of the cache");

struct unwind_known_method {
	u64 at; /* Method */
	u64 const_at; /* ConstMethod */
	u64 id; /* jmethodID or duet_method_key() */
	struct unwind_proof proof;
	u32 code_bytes : 16;
	u32 check : DUET_METHOD_CHECK_BITS;
	u32 is_provable : 1;
};

/* Number of pairs (two entries with the same hash), as powers of 2. */
#define UNWIND_KNOWN_FRAMES 8
#define UNWIND_KNOWN_METHODS 6
#define UNWIND_KNOWN_NATIVE 7

struct unwind_known {
	struct unwind_known_frame frames[2 << UNWIND_KNOWN_FRAMES];
	struct unwind_known_method methods[2 << UNWIND_KNOWN_METHODS];
	struct unwind_found native[2 << UNWIND_KNOWN_NATIVE];
};
_Static_assert(sizeof(struct unwind_known) <= 32 << 10, "it must fit a per-CPU map, see struct duet_scratch");

DUET_MAP(unwind_known, PERCPU_ARRAY, DUET_MAX_LEVELS, u32, struct unwind_known);

/* Each level of struct duet_scratch has its own cache, so that no program finds an entry that is half written. */
static __always_inline struct unwind_known *unwind_known_get(u32 level)
{
	return bpf_map_lookup_elem(&unwind_known, &level);
}

/* Returns the index of the first entry of a pair. Multiplying by 2^64 / golden ratio spreads close addresses. */
static __always_inline u32 unwind_known_index(u64 address, u32 bits)
{
	u64 pair = address * 0x9e3779b97f4a7c15 >> (64 - bits);

	__asm__("" : "+r"(pair)); /* the mask below is for the verifier; without this the compiler would remove it */
	return (pair & ((1u << bits) - 1)) * 2;
}

static __always_inline struct unwind_proof unwind_proof_now(const struct walk_java *java)
{
	const struct duet_scratch *room = unwind_room(java);

	return (struct unwind_proof){
		.process = room->sample.start_ns,
		.time_ms = room->sample.head.time_ns >> 20,
		.safepoints = room->safepoints,
	};
}

/* Returns true if the proof is still valid: same safepoint count, and younger than UNWIND_KNOWN_MS. */
static __always_inline bool unwind_is_fresh(const struct unwind_proof *proof, const struct unwind_proof *now)
{
	return now->safepoints && now->safepoints == proof->safepoints &&
	       now->time_ms - proof->time_ms < UNWIND_KNOWN_MS;
}

/*
 * Returns true if the entry is valid; proves it again if necessary. Comparing the compilation's id is enough: an id is
 * never used twice, and code that has a frame is not freed.
 */
static __always_inline bool unwind_prove_frame(const struct walk_java *java, struct unwind_known_frame *known)
{
	struct unwind_proof now = unwind_proof_now(java);
	u32 id;

	if (known->proof.process != now.process)
		return false;
	if (unwind_is_fresh(&known->proof, &now))
		return true;
	if (walk_read(java, &id, sizeof(id), known->pc - known->id_back) || id != known->id)
		return false;
	known->proof = now;
	return true;
}

static __always_inline struct unwind_known_frame *unwind_find_frame(const struct walk_java *java, u64 pc)
{
	struct unwind_known *all = unwind_known_get(unwind_level(java));
	u32 index = unwind_known_index(pc, UNWIND_KNOWN_FRAMES);

	if (!all)
		return NULL;
	if (all->frames[index].pc != pc && all->frames[++index].pc != pc)
		return NULL;
	return unwind_prove_frame(java, &all->frames[index]) ? &all->frames[index] : NULL;
}

/*
 * Steps from a compiled method that has called another one, if the cache has its frame at this pc. Returns false and
 * leaves pc, sp and fp unchanged if the cache has none, or if the step does not lead to Java code.
 */
static __always_inline bool unwind_known_step(struct walk_java *java, struct unwind_cursor *cursor)
{
	u64 pc = cursor->pc, sp = cursor->sp, fp = cursor->fp;
	const struct unwind_known_frame *known =
		cursor->is_return && !cursor->no_sp && !java->is_below_stub ? unwind_find_frame(java, pc) : NULL;

	if (!known)
		return false;
	if (java_return(cursor, known->frame_bytes - WALK_WORD, 0) != DUET_WALK_NONE ||
	    java_heap(&java->layout, cursor->pc) < 0) {
		cursor->pc = pc;
		cursor->sp = sp;
		cursor->fp = fp;
		return false;
	}
	java->code_id = known->id;
	return true;
}

/*
 * Adds the frame of the current blob to the cache. A pc in the stubs after the method's code is not cached: the method
 * is deoptimized there, and each of its frames has its own pc to continue at.
 */
static __always_inline void unwind_know_frame(const struct walk_java *java, u64 pc, u64 frame_bytes)
{
	u64 stubs = java->blob + java_field(java, java->layout.nmethod_stubs, 4);
	u64 id_at = java->blob - java->layout.block_header_bytes + java->layout.nmethod_id;
	struct unwind_known *all = unwind_known_get(unwind_level(java));
	u32 index = unwind_known_index(pc, UNWIND_KNOWN_FRAMES);

	if (!all || !java_is_compiled(java) || pc >= stubs)
		return;
	if (all->frames[index].pc != pc)
		all->frames[index + 1] = all->frames[index];
	all->frames[index] = (struct unwind_known_frame){
		.pc = pc,
		.proof = unwind_proof_now(java),
		.id = java_field(java, java->layout.nmethod_id, 4),
		.id_back = pc - id_at,
		.frame_bytes = frame_bytes,
	};
}

/*
 * Returns true if `id` points to a word that holds the address of the Method. A jmethodID does so as long as the Method
 * exists. Since JDK 26 (JDK-8268406) it is only a number, and this returns false.
 */
static __always_inline bool unwind_is_method(const struct walk_java *java, u64 id, u64 method)
{
	u64 word;

	return id && !walk_read_word(java, &word, id) && word == method;
}

static __always_inline bool unwind_prove_method(const struct walk_java *java, struct unwind_known_method *known)
{
	struct unwind_proof now = unwind_proof_now(java);

	if (known->proof.process != now.process)
		return false;
	if (unwind_is_fresh(&known->proof, &now))
		return true;
	if (!known->is_provable || !unwind_is_method(java, known->id, known->at))
		return false;
	known->proof = now;
	return true;
}

/* See java_find_method(). */
static __always_inline bool unwind_known_method(struct walk_java *java, u64 method)
{
	struct unwind_known *all = unwind_known_get(unwind_level(java));
	u32 index = unwind_known_index(method, UNWIND_KNOWN_METHODS);
	struct unwind_known_method *known;

	if (!all || (all->methods[index].at != method && all->methods[++index].at != method))
		return false;
	known = &all->methods[index];
	if (!unwind_prove_method(java, known))
		return false;
	java->const_at = known->const_at;
	java->code_bytes = known->code_bytes;
	java->found_method = known->id;
	java->found_check = known->check;
	return true;
}

/* Adds a found method to the cache. If it could not be proven, it is not tried again: each try is a page fault. */
static __always_inline void unwind_know_method(const struct walk_java *java, u64 method)
{
	struct unwind_known *all = unwind_known_get(unwind_level(java));
	u32 index = unwind_known_index(method, UNWIND_KNOWN_METHODS);
	struct unwind_proof now = unwind_proof_now(java);
	struct unwind_known_method *known;
	bool is_same;

	if (!all)
		return;
	if (all->methods[index].at != method && all->methods[index + 1].at != method)
		all->methods[index + 1] = all->methods[index];
	else if (all->methods[index].at != method)
		index++;
	known = &all->methods[index];
	is_same = known->at == method && known->proof.process == now.process;
	if (!is_same || known->is_provable)
		known->is_provable = unwind_is_method(java, java->found_method, method);
	known->at = method;
	known->const_at = java->const_at;
	known->id = java->found_method;
	known->proof = now;
	known->code_bytes = java->code_bytes;
	known->check = java->found_check;
}
