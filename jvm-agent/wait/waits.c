/* SPDX-License-Identifier: MIT */
#include "wait/waits.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRIES 64
#define VISITED ((uintptr_t)1)

static struct waits_place *place_at(struct waits *waits, uint64_t key, uint32_t try)
{
	uint64_t hash = key * 0x9e3779b97f4a7c15ull;

	return &waits->places[((hash >> 32) + try) % WAITS_MAX];
}

bool waits_put(struct waits *waits, uint64_t key, void *value)
{
	for (uint32_t i = 0; i < TRIES; i++) {
		struct waits_place *place = place_at(waits, key, i);
		uint64_t empty = 0;

		if (__atomic_compare_exchange_n(&place->key, &empty, key, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			__atomic_store_n(&place->value, value, __ATOMIC_RELEASE);
			return true;
		}
	}
	return false;
}

/* Frees the place if it has a value. Returns it, or NULL if its visitor owns it now. */
static void *empty_place(struct waits_place *place)
{
	void *value = __atomic_exchange_n(&place->value, NULL, __ATOMIC_ACQ_REL);

	if (value)
		__atomic_store_n(&place->key, 0, __ATOMIC_RELEASE);
	return (uintptr_t)value & VISITED ? NULL : value;
}

/* A key may lie after a free place, or after one with it that waits_end() is about to free: neither ends the search. */
void *waits_take(struct waits *waits, uint64_t key)
{
	void *value = NULL;

	for (uint32_t i = 0; i < TRIES && !value; i++) {
		struct waits_place *place = place_at(waits, key, i);

		if (__atomic_load_n(&place->key, __ATOMIC_ACQUIRE) == key)
			value = empty_place(place);
	}
	return value;
}

void waits_end(struct waits *waits, void (*take)(void *context, void *value), void *context)
{
	for (uint32_t i = 0; i < WAITS_MAX; i++) {
		struct waits_place *place = &waits->places[i];
		void *value = __atomic_load_n(&place->key, __ATOMIC_RELAXED) ? empty_place(place) : NULL;

		if (value)
			take(context, value);
	}
}

static bool is_empty(const struct waits_place *place, const struct waits_place *end)
{
	while (place < end && !__atomic_load_n(&place->key, __ATOMIC_RELAXED))
		place++;
	return place == end;
}

/* Only whole pages: the first and the last one may hold other variables, too. */
void waits_trim(struct waits *waits)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t page = ((uintptr_t)waits + bytes - 1) / bytes * bytes, end = (uintptr_t)(waits + 1);

	for (; page + bytes <= end; page += bytes)
		if (is_empty((const void *)page, (const void *)(page + bytes)))
			madvise((void *)page, bytes, MADV_DONTNEED);
}

/* Returns true if the value is still kept. */
static bool visit_place(struct waits_place *place, void *value, void (*visit)(void *context, void *value),
			void *context)
{
	void *marked = (void *)((uintptr_t)value | VISITED);

	if (!__atomic_compare_exchange_n(&place->value, &value, marked, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return true; /* it was taken before the visit */
	visit(context, value);
	return __atomic_compare_exchange_n(&place->value, &marked, value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void waits_visit(struct waits *waits, void (*visit)(void *context, void *value),
		 void (*take)(void *context, void *value), void *context)
{
	for (uint32_t i = 0; i < WAITS_MAX; i++) {
		struct waits_place *place = &waits->places[i];
		void *value = NULL;

		if (__atomic_load_n(&place->key, __ATOMIC_RELAXED))
			value = __atomic_load_n(&place->value, __ATOMIC_ACQUIRE);
		if (value && !visit_place(place, value, visit, context))
			take(context, value);
	}
}
