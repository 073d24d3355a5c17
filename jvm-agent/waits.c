/* SPDX-License-Identifier: MIT */
#include "waits.h"

#include <stddef.h>

#define TRIES 64

/*
 * Only the key's thread sets both words. Whoever exchanges the value for NULL owns it, and only they free the place.
 * Pages that no thread has used cost no memory.
 */
static struct place {
	uint64_t key; /* 0: free */
	void *value;
} places[WAITS_MAX];

static struct place *place_at(uint64_t key, uint32_t try)
{
	uint64_t hash = key * 0x9e3779b97f4a7c15ull;

	return &places[((hash >> 32) + try) % WAITS_MAX];
}

bool waits_put(uint64_t key, void *value)
{
	for (uint32_t i = 0; i < TRIES; i++) {
		struct place *place = place_at(key, i);
		uint64_t empty = 0;

		if (__atomic_compare_exchange_n(&place->key, &empty, key, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			__atomic_store_n(&place->value, value, __ATOMIC_RELEASE);
			return true;
		}
	}
	return false;
}

static void *empty_place(struct place *place)
{
	void *value = __atomic_exchange_n(&place->value, NULL, __ATOMIC_ACQ_REL);

	if (value)
		__atomic_store_n(&place->key, 0, __ATOMIC_RELEASE);
	return value;
}

/*
 * A key may lie behind a place that has become free since, so free places do not end the search. Nor does a place that
 * has this key and no value: waits_forget() is about to free it.
 */
void *waits_take(uint64_t key)
{
	void *value = NULL;

	for (uint32_t i = 0; i < TRIES && !value; i++) {
		struct place *place = place_at(key, i);

		if (__atomic_load_n(&place->key, __ATOMIC_ACQUIRE) == key)
			value = empty_place(place);
	}
	return value;
}

void waits_forget(void (*release)(void *value))
{
	for (uint32_t i = 0; i < WAITS_MAX; i++) {
		void *value = __atomic_load_n(&places[i].key, __ATOMIC_RELAXED) ? empty_place(&places[i]) : NULL;

		if (value)
			release(value);
	}
}
