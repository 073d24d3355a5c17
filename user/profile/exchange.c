/* SPDX-License-Identifier: MIT */
#include "profile/exchange.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/mover.h"

/* Moves all events in their order, so that their indices stay. */
static void move_events(struct mover *m)
{
	for (size_t i = 0; i < m->from->events.len; i++) {
		struct profile_event event = m->from->events.items[i];

		event.name = mover_text(m, event.name);
		(void)vec_push(&m->to->events, event); /* out of memory: the event's samples are lost */
	}
}

struct exchange {
	struct mover mover;
	uint64_t lost;
};

static int move_sample(void *context, const struct profile_sample *sample)
{
	struct exchange *exchange = context;
	struct mover *m = &exchange->mover;
	struct profile_sample moved = *sample;

	moved.node = mover_node(m, sample->node);
	moved.thread = mover_thread(m, sample->thread);
	if (profile_add(m->to, &moved) < 0)
		exchange->lost++;
	return 0;
}

/* Samples that cannot be read back are counted as lost, like those for which there was no memory. */
static void move_samples(struct exchange *exchange)
{
	const struct profile *from = exchange->mover.from, *to = exchange->mover.to;
	uint64_t expected = from->later.len;

	if (timeline_each(&from->later, move_sample, exchange) < 0)
		exchange->lost = expected - to->samples.len - to->later.len;
	mover_release(&exchange->mover);
}

uint64_t profile_exchange(struct profile *profile, uint64_t until_ns, struct intern_move *move)
{
	struct profile fresh, old = *profile;
	struct exchange exchange = {.mover = {.from = &old, .to = &fresh, .strings = move}};

	(void)profile_init(&fresh); /* out of memory: the profile takes no samples */
	intern_release(&fresh.strings);
	fresh.strings = move ? *move->to : old.strings;
	if (move)
		move->to = &fresh.strings;
	fresh.until_ns = until_ns;
	fresh.processes = old.processes;
	fresh.is_private = old.is_private;
	move_events(&exchange.mover);
	move_samples(&exchange);
	old.strings = (struct intern){0};
	profile_release(&old);
	*profile = fresh;
	if (move)
		move->to = &profile->strings;
	return exchange.lost;
}
