/* SPDX-License-Identifier: MIT */
#include "proc/room.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "base/map.h"

#define SHARE 3 /* a payer may hold so many times what is free */
#define SPENT_MAX 8

struct account {
	struct payer payer;
	size_t held[ROOMS_COUNT];
	bool is_spent;
};

static struct {
	bool is_shared; /* there are processes of several users, or there may be */
	size_t limit[ROOMS_COUNT]; /* 0: none */
	size_t taken[ROOMS_COUNT];
	struct map accounts; /* payer.key -> struct account, of those who hold something */
	struct account *last; /* the one that was searched for last, or NULL */
	struct room_spent spent[SPENT_MAX];
	size_t spent_count, returned;
} rooms;

static size_t size_of(enum room room)
{
	return rooms.limit[room] ? rooms.limit[room] - 1 : SIZE_MAX;
}

void room_open(bool is_shared)
{
	map_release_owned(&rooms.accounts);
	memset(&rooms, 0, sizeof(rooms));
	rooms.is_shared = is_shared;
}

void room_set_size(enum room room, size_t size)
{
	rooms.limit[room] = size < SIZE_MAX ? size + 1 : 0;
}

static struct account *find(const struct payer *payer)
{
	if (!rooms.last || rooms.last->payer.key != payer->key)
		rooms.last = map_get_ptr(&rooms.accounts, payer->key);
	return rooms.last;
}

size_t room_held(enum room room, const struct payer *payer)
{
	const struct account *account = find(payer);

	return account ? account->held[room] : 0;
}

/* The first one is alone only until there is another. */
static bool has_share(const struct payer *payer)
{
	return payer->key && (rooms.is_shared || rooms.accounts.len > !!find(payer));
}

size_t room_limit(enum room room, const struct payer *payer)
{
	size_t others = rooms.taken[room] - room_held(room, payer), size = size_of(room);
	size_t left = size > others ? size - others : 0;

	return size < SIZE_MAX && has_share(payer) ? left - left / (SHARE + 1) : left;
}

size_t room_reserve(enum room room, const struct payer *payer)
{
	return has_share(payer) ? (room_held(room, payer) + SHARE - 1) / SHARE : 0;
}

bool room_is_over(enum room room, const struct payer *payer)
{
	return room_held(room, payer) > room_limit(room, payer);
}

bool room_has(enum room room, const struct payer *payer, size_t count)
{
	size_t held = room_held(room, payer), limit = room_limit(room, payer);

	return !count || (held <= limit && count <= limit - held);
}

void room_add(enum room room, const struct payer *payer, size_t count)
{
	struct account *account = count ? find(payer) : NULL;

	if (!account && count) {
		account = calloc(1, sizeof(*account));
		if (!account || map_put_ptr(&rooms.accounts, payer->key, account) < 0)
			return free(account); /* out of memory: he gets it for nothing */
		account->payer = *payer;
		rooms.is_shared |= rooms.accounts.len > 1;
	}
	if (!account)
		return;
	account->held[room] += count;
	rooms.taken[room] += count;
}

void room_refuse(enum room room, const struct payer *payer)
{
	static const char *const what[] = {
#define ROOM_TEXTS(name, what, effect) [2 * ROOM_##name] = what, effect,
		ROOMS(ROOM_TEXTS)
	};
	struct account *account = find(payer);

	if (!payer->key)
		return; /* there is no room for anybody */
	loader_counters[DUET_LOADER_ROOM_SPENT]++;
	if ((account && account->is_spent) || rooms.spent_count == SPENT_MAX)
		return;
	for (size_t i = 0; i < rooms.spent_count; i++)
		if (rooms.spent[i].uid == payer->uid)
			return;
	if (account)
		account->is_spent = true;
	rooms.spent[rooms.spent_count++] = (struct room_spent){payer->uid, what[2 * room], what[2 * room + 1],
							       room_held(room, payer), size_of(room)};
}

bool room_take(enum room room, const struct payer *payer, size_t count)
{
	if (!room_has(room, payer, count)) {
		room_refuse(room, payer);
		return false;
	}
	room_add(room, payer, count);
	return true;
}

static bool holds_nothing(const struct account *account)
{
	for (size_t i = 0; i < ROOMS_COUNT; i++)
		if (account->held[i])
			return false;
	return true;
}

static void give(struct account *account, enum room room, size_t count)
{
	if (count > account->held[room])
		count = account->held[room];
	account->held[room] -= count;
	rooms.taken[room] -= count;
	if (!holds_nothing(account))
		return;
	map_remove(&rooms.accounts, account->payer.key);
	rooms.last = NULL;
	free(account);
}

void room_give(enum room room, const struct payer *payer, size_t count)
{
	struct account *account = find(payer);

	if (account)
		give(account, room, count);
}

void room_empty(enum room room)
{
	uint64_t key, value;

	for (size_t cursor = 0; map_next(&rooms.accounts, &cursor, &key, &value);)
		give((void *)(uintptr_t)value, room, SIZE_MAX);
}

bool room_next_spent(struct room_spent *ret)
{
	if (rooms.returned == rooms.spent_count)
		return false;
	*ret = rooms.spent[rooms.returned++];
	return true;
}
