/* SPDX-License-Identifier: MIT */
#include "collect/tables/offers.h"

#include <string.h>

#include <bpf/bpf.h>

#define OWN_PART 2 /* those who have no share take half of the map, so that users always find room */

void offers_open(struct offers *offers, int fd, uint32_t most)
{
	*offers = (struct offers){.fd = fd, .most = most};
	room_set_size(ROOM_UNWIND_OFFERS, most);
}

void offers_release(struct offers *offers)
{
	if (offers->most)
		room_empty(ROOM_UNWIND_OFFERS);
	vec_release(&offers->list);
	map_release(&offers->by_file);
}

static uint64_t hash_of(const struct duet_mapped_file *file)
{
	return hash_bytes(file, sizeof(*file), 0);
}

static bool has_room(const struct offers *offers, const struct payer *payer)
{
	if (!payer->key && room_held(ROOM_UNWIND_OFFERS, payer) >= offers->most / OWN_PART)
		return false;
	return offers->list.len < offers->most && room_has(ROOM_UNWIND_OFFERS, payer, 1);
}

/* Returns an offer of the same payer, in turn, or NULL. */
static struct offer *own(struct offers *offers, const struct payer *payer)
{
	for (size_t n = 0; n < offers->list.len; n++) {
		size_t i = offers->next++ % offers->list.len;

		if (offers->list.items[i].payer.key == payer->key && !offers->list.items[i].is_shared)
			return &offers->list.items[i];
	}
	return NULL;
}

static void take_back(struct offers *offers, const struct offer *offer)
{
	(void)bpf_map_delete_elem(offers->fd, &offer->file);
	map_remove(&offers->by_file, hash_of(&offer->file));
	room_give(ROOM_UNWIND_OFFERS, &offer->payer, 1);
}

/* Returns where to note a new offer of this payer, or NULL. */
static struct offer *make_room(struct offers *offers, const struct payer *payer)
{
	struct offer *offer;

	if (has_room(offers, payer))
		return vec_push(&offers->list, (struct offer){0}) < 0 ? NULL
								       : &offers->list.items[offers->list.len - 1];
	offer = own(offers, payer);
	if (offer)
		take_back(offers, offer);
	else
		room_refuse(ROOM_UNWIND_OFFERS, payer);
	return offer;
}

static void replace(struct offers *offers, struct offer *at, const struct offer *by)
{
	if (!memcmp(&at->rows, &by->rows, sizeof(at->rows)))
		return;
	at->rows = by->rows;
	(void)bpf_map_update_elem(offers->fd, &at->file, &at->rows, BPF_ANY);
}

void offers_put(struct offers *offers, const struct offer *offer)
{
	uint64_t hash = hash_of(&offer->file), index;
	struct offer *at;

	if (offers->fd < 0)
		return;
	if (map_get(&offers->by_file, hash, &index)) {
		at = &offers->list.items[index];
		if (memcmp(&at->file, &offer->file, sizeof(at->file)) != 0)
			return; /* another one with the same hash */
		at->is_shared |= at->payer.key != offer->payer.key;
		return replace(offers, at, offer);
	}
	at = make_room(offers, &offer->payer);
	if (!at || map_put(&offers->by_file, hash, (uint64_t)(at - offers->list.items)) < 0)
		return;
	*at = (struct offer){.file = offer->file, .payer = offer->payer};
	room_add(ROOM_UNWIND_OFFERS, &offer->payer, 1);
	replace(offers, at, offer);
}
