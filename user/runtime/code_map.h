/* SPDX-License-Identifier: MIT */
/*
 * Which code was at an address at a time. Addresses are recycled by the code
 * cache, so each entry has a life; entries that may still be asked for stay after
 * their unload.
 */
#ifndef RUNTIME_CODE_MAP_H
#define RUNTIME_CODE_MAP_H

#include "base/map.h"
#include "base/vec.h"
#include "runtime/jvm.h"

#define CODE_MAP_MAX_ENTRIES (1u << 17) /* HotSpot's default code cache, 240 MB, holds far fewer */

struct code_map {
	struct vec(struct jvm_code) sorted; /* by address */
	struct vec(struct jvm_code) recent; /* in order of arrival, merged when there are CODE_MAP_RECENT */
	uint64_t largest; /* bytes of the largest entry: bounds the search backwards */
	uint64_t ended; /* entries that something else took the place of, or that were unloaded */
	size_t debug_bytes; /* of all entries' pcs and frames, with their share of `inlining` */
	struct map inlining; /* hash of an inlining stack -> live entries that have it */
};

void code_map_release(struct code_map *map);
size_t code_map_bytes(const struct code_map *map);
/*
 * Takes over code->pcs. What is there already is added once. What else lives in the same range ends at code->loaded_ns.
 * 0, -ENOMEM or -ENOSPC (pcs freed).
 */
int code_map_add(struct code_map *map, const struct jvm_code *code);
/* False: of code that nobody had asked for. */
bool code_map_unload(struct code_map *map, const struct duet_code_unload *unload);
struct jvm_code *code_map_find(const struct code_map *map, uint64_t pc, uint64_t time_ns, uint32_t id);
uint32_t code_map_match(const struct code_map *map, const struct duet_java_frame *frames, uint32_t depth);
void code_map_move_strings(struct code_map *map, struct intern_move *move);
void code_map_forget(struct code_map *map, uint64_t time_ns);
/* What was last asked for before this round. */
void code_map_forget_unused(struct code_map *map, uint32_t round);

#endif
