/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

#define MAP_MIN_SIZE 16

/* One byte per slot. Most slots with another key have another tag, so their keys need not be read. */
enum slot_tag { TAG_FREE, TAG_DELETED, TAG_LIVE /* and above: bits of the hash */ };

struct map_slot {
	uint64_t key, value;
};

uint64_t hash_u64(uint64_t value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdull;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ull;
	value ^= value >> 33;
	return value;
}

/*
 * A random seed. Without it, whoever writes the hashed bytes could choose bytes with the hash of others, or many that
 * fall into one slot. Early in boot, when the kernel has no randomness yet, the time is the seed.
 */
static uint64_t secret(void)
{
	static uint64_t seed;

	if (!seed && getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = hash_u64(clock_realtime_ns()) | 1;
	return seed;
}

uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
	const unsigned char *at = bytes;
	uint64_t hash = hash_u64((seed ^ secret()) + 0x9e3779b97f4a7c15ull) ^ len;
	uint64_t word;

	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = hash_u64(hash ^ word) + 0x9e3779b97f4a7c15ull;
	}
	if (len) {
		word = 0;
		memcpy(&word, at, len);
		hash ^= word;
	}
	return hash_u64(hash);
}

void map_release(struct map *map)
{
	if (!map)
		return;
	free(map->slots);
	*map = (struct map){0};
}

size_t map_bytes(const struct map *map)
{
	return map->size * (sizeof(*map->slots) + sizeof(*map->tags));
}

size_t map_bytes_soon(const struct map *map, size_t more)
{
	size_t slot = sizeof(*map->slots) + sizeof(*map->tags), size = map->size ? map->size : MAP_MIN_SIZE;

	if ((map->used + more) * 4 < map->size * 3)
		return map_bytes(map);
	while ((map->used + more) * 4 >= size * 3)
		size *= 2;
	return (size + size / 2) * slot;
}

/* Uses the high bits of the hash, because the low ones choose the slot. */
static uint8_t live_tag(uint64_t hash)
{
	return (uint8_t)(TAG_LIVE + (hash >> 57));
}

static uint64_t slot_hash(uint64_t key)
{
	return hash_u64(key ^ secret());
}

/* Returns the slot of `key`, or NULL. The search ends because there is always a free slot. */
static struct map_slot *slot_find(const struct map *map, uint64_t key)
{
	uint64_t hash = slot_hash(key);
	uint8_t tag = live_tag(hash);

	if (!map->size)
		return NULL;
	for (size_t i = hash & (map->size - 1);; i = (i + 1) & (map->size - 1)) {
		if (map->tags[i] == TAG_FREE)
			return NULL;
		if (map->tags[i] == tag && map->slots[i].key == key)
			return &map->slots[i];
	}
}

/* The key must be absent and there must be a free slot. */
static void slot_insert(struct map *map, uint64_t key, uint64_t value)
{
	uint64_t hash = slot_hash(key);
	size_t i = hash & (map->size - 1);

	while (map->tags[i] != TAG_FREE)
		i = (i + 1) & (map->size - 1);
	map->slots[i] = (struct map_slot){key, value};
	map->tags[i] = live_tag(hash);
	map->len++;
	map->used++;
}

/* Doubles the size when live slots fill half of it, else only drops the deleted slots. */
static int map_rehash(struct map *map)
{
	struct map grown = {.size = map->size ? map->size : MAP_MIN_SIZE};
	uint64_t key, value;
	size_t cursor = 0;

	if (map->len * 2 >= grown.size)
		grown.size *= 2;
	grown.slots = calloc(grown.size, sizeof(*grown.slots) + sizeof(*grown.tags));
	if (!grown.slots)
		return -ENOMEM;
	grown.tags = (uint8_t *)(grown.slots + grown.size);
	while (map_next(map, &cursor, &key, &value))
		slot_insert(&grown, key, value);
	free(map->slots);
	*map = grown;
	return 0;
}

int map_put(struct map *map, uint64_t key, uint64_t value)
{
	struct map_slot *slot = slot_find(map, key);

	if (slot) {
		slot->value = value;
		return 0;
	}
	if (map->used * 4 >= map->size * 3 && map_rehash(map) < 0)
		return -ENOMEM;
	slot_insert(map, key, value);
	return 0;
}

bool map_get(const struct map *map, uint64_t key, uint64_t *ret_value)
{
	const struct map_slot *slot = slot_find(map, key);

	if (slot)
		*ret_value = slot->value;
	return slot;
}

bool map_remove(struct map *map, uint64_t key)
{
	struct map_slot *slot = slot_find(map, key);

	if (!slot)
		return false;
	map->tags[slot - map->slots] = TAG_DELETED;
	map->len--;
	return true;
}

void *map_get_ptr(const struct map *map, uint64_t key)
{
	const struct map_slot *slot = slot_find(map, key);

	return slot ? (void *)(uintptr_t)slot->value : NULL;
}

int map_put_ptr(struct map *map, uint64_t key, void *value)
{
	return map_put(map, key, (uintptr_t)value);
}

void map_release_owned(struct map *map)
{
	uint64_t key, value;

	for (size_t cursor = 0; map_next(map, &cursor, &key, &value);)
		free((void *)(uintptr_t)value);
	map_release(map);
}

bool map_next(const struct map *map, size_t *cursor, uint64_t *ret_key, uint64_t *ret_value)
{
	while (*cursor < map->size) {
		size_t i = (*cursor)++;

		if (map->tags[i] < TAG_LIVE)
			continue;
		*ret_key = map->slots[i].key;
		*ret_value = map->slots[i].value;
		return true;
	}
	return false;
}

#define KEPT_MAX 1024

static bool is_drawn(const struct distinct *distinct, uint64_t hash)
{
	return !(hash & ((1ull << distinct->shift) - 1));
}

/* Drops about half of the hashes. */
static void draw_fewer(struct distinct *distinct)
{
	struct map before = distinct->hashes;
	uint64_t hash, value;

	distinct->hashes = (struct map){0};
	distinct->shift++;
	for (size_t cursor = 0; map_next(&before, &cursor, &hash, &value);)
		if (is_drawn(distinct, hash))
			(void)map_put(&distinct->hashes, hash, 0); /* when out of memory, the count is too low */
	map_release(&before);
}

void distinct_add(struct distinct *distinct, uint64_t hash)
{
	if (!is_drawn(distinct, hash))
		return;
	(void)map_put(&distinct->hashes, hash, 0);
	if (distinct->hashes.len > KEPT_MAX)
		draw_fewer(distinct);
}

uint64_t distinct_count(const struct distinct *distinct)
{
	return (uint64_t)distinct->hashes.len << distinct->shift;
}

void distinct_release(struct distinct *distinct)
{
	map_release(&distinct->hashes);
	distinct->shift = 0;
}
