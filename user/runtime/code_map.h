/* SPDX-License-Identifier: MIT */
/*
 * Which code was at an address at a given time. The code cache reuses addresses, so each entry has a time at which it
 * was loaded and one at which it was unloaded. Entries stay after their unload while samples may still need them.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "runtime/jvm.h"

#define CODE_MAP_MAX_ENTRIES (1u << 17) /* HotSpot's default code cache, 240 MB, holds far fewer */

struct code_map {
	struct vec(struct jvm_code) sorted; /* by address */
	struct vec(struct jvm_code) recent; /* in order of arrival; merged into `sorted` at CODE_MAP_RECENT entries */
	uint64_t largest; /* bytes of the largest entry: bounds the backward search */
	uint64_t ended; /* number of entries that were unloaded or replaced */
	size_t inlining_bytes; /* of all entries */
	struct map compiled; /* method -> the newest struct inlining of its live entries, which are a list */
};

void code_map_release(struct code_map *map);
size_t code_map_bytes(const struct code_map *map);
/*
 * Adds an entry. Owns code->inlining from then on, and frees it after an error. Code that is already there is not added
 * again. Other live entries in the same range end at code->loaded_ns. 0, -ENOMEM or -ENOSPC.
 */
int code_map_add(struct code_map *map, const struct jvm_code *code);
/* Ends the life of an entry. Returns false if there is none, because no sample had needed this code. */
bool code_map_unload(struct code_map *map, const struct duet_code_unload *unload);
/* As jvm_code_at(). */
struct jvm_code *code_map_find(const struct code_map *map, uint64_t pc, uint64_t time_ns, uint32_t id);
/* As jvm_match_compiled(). */
uint32_t code_map_match(const struct code_map *map, const struct duet_java_frame *frames, uint32_t depth);
/* As jvm_move_strings(). */
void code_map_move_strings(struct code_map *map, struct intern_move *move);
/* Frees entries that were unloaded before `time_ns`, and those that were last used before the round. */
void code_map_forget(struct code_map *map, uint64_t time_ns, uint32_t round);
