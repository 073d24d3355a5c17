/* SPDX-License-Identifier: MIT */
/* An open-addressing hash map from a 64-bit key to a 64-bit value: an index, or a pointer that the caller owns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot;
struct map {
	struct map_slot *slots;
	uint8_t *tags; /* one tag per slot, in the same allocation */
	size_t len;
	size_t size;
	size_t used; /* live and deleted slots */
};

/* A zeroed struct map is a valid empty map. */
void map_release(struct map *map);
void map_release_owned(struct map *map); /* also frees the values, which are pointers */
size_t map_bytes(const struct map *map); /* memory in use */
/* The highest memory use while `more` keys are added: growing needs a second, larger table for a moment. */
size_t map_bytes_soon(const struct map *map, size_t more);
/* Adds a key or replaces its value. Returns 0 or -ENOMEM. */
int map_put(struct map *map, uint64_t key, uint64_t value);
bool map_get(const struct map *map, uint64_t key, uint64_t *ret_value);
bool map_remove(struct map *map, uint64_t key);
void *map_get_ptr(const struct map *map, uint64_t key); /* returns NULL when absent */
int map_put_ptr(struct map *map, uint64_t key, void *value);
/* In no particular order, from *cursor = 0; returns false at the end. The current key may be removed. */
bool map_next(const struct map *map, size_t *cursor, uint64_t *ret_key, uint64_t *ret_value);

/*
 * A well mixed 64-bit hash with a seed that is random for each process, so that nobody can choose bytes that have the
 * hash of others. Equal only within one process. Not thread-safe, like all functions of this file.
 */
uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed);
/* A well mixed hash without a seed: anybody can compute a value that has a given hash. */
uint64_t hash_u64(uint64_t value);

/* Estimates how many different things were seen, to about 10 %, in 40 KB: it keeps hashes with enough zero bits. */
struct distinct {
	struct map hashes; /* the hashes seen whose lowest `shift` bits are 0 */
	unsigned shift;
};

void distinct_add(struct distinct *distinct, uint64_t hash); /* needs a well mixed hash: hash_u64(), hash_bytes() */
uint64_t distinct_count(const struct distinct *distinct);
void distinct_release(struct distinct *distinct); /* leaves it empty */
