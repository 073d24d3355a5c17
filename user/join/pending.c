/* SPDX-License-Identifier: MIT */
#include "join/pending.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "proc/room.h"
#include "runtime/jvm.h"

/* A request whose answer was lost is sent again after this time, see agent_want(). */
#define ASK_AGAIN_NS (5 * NS_PER_SEC)
#define WAKERS_MAX_BYTES (64u << 20)

struct pending_name;

struct pending_sample {
	struct held *held; /* owned */
	struct pending_samples *lacks; /* the list of what it waits for */
	struct pending_name *name; /* of that list; NULL: the waker or the kernel's records */
	TAILQ_ENTRY(pending_sample) all, link; /* in pending->samples, and in `lacks` */
};

/* A name or code that samples wait for. */
struct pending_name {
	struct pending_origin *origin;
	uint64_t key; /* in pending->names */
	struct duet_want want;
	struct jvm_moment then; /* of the record that lacks it */
	struct pending_samples samples;
	TAILQ_ENTRY(pending_name) link; /* in origin->names */
};

/* An agent or reader whose answers samples wait for. */
struct pending_origin {
	struct origin *origin; /* awaited */
	const struct jvm *jvm; /* of the origin */
	uint64_t records; /* jvm_records() when its names were looked for last */
	uint64_t asked_ns; /* when they were requested last */
	TAILQ_HEAD(, pending_name) names;
};

/* What a sample lacks. */
struct lack {
	bool waker, releases;
	struct origin *origin; /* of the name; NULL: none */
	const struct jvm *jvm; /* of the origin, as is … */
	struct duet_want want; /* … this, of a record of … */
	struct jvm_moment then; /* … this time */
	struct resolved own; /* the sample's own stack */
};

int pending_open(struct pending *pending, const struct pending_deps *of)
{
	*pending = (struct pending){.of = *of, .sink.of = of->sink, .max_bytes = JOIN_MAX_BYTES};
	TAILQ_INIT(&pending->samples);
	TAILQ_INIT(&pending->unwoken);
	TAILQ_INIT(&pending->unread);
	resolver_init(&pending->sink.resolver, of->sink.options, of->sink.profile, of->sink.symbols);
	pending->join = join_new(of->handler, of->context);
	return pending->join ? 0 : -ENOMEM;
}

void pending_set_max_bytes(struct pending *pending, size_t bytes)
{
	pending->max_bytes = bytes;
	join_set_max_bytes(pending->join, bytes);
}

/* ---- records of wakers ---- */

static void wakers_release(struct wakers *wakers)
{
	uint64_t id, value;

	for (size_t cursor = 0; map_next(&wakers->by_id, &cursor, &id, &value);)
		held_free((void *)(uintptr_t)value);
	map_release(&wakers->by_id);
}

static void wakers_remove(struct wakers *wakers, uint64_t id)
{
	struct held *held = map_get_ptr(&wakers->by_id, id);

	if (!held)
		return;
	map_remove(&wakers->by_id, id);
	room_give(ROOM_WAKERS, &held->payer, held->bytes);
	held_free(held);
}

/* Adds a copy of the decision, without its Java half. When there is no memory, it is lost and counted. */
static void wakers_add(struct wakers *wakers, const struct decision *decision, uint64_t now_ns)
{
	struct decision waker = *decision;
	struct held *held;

	waker.java = NULL;
	wakers_remove(wakers, waker.sample->waker);
	room_set_size(ROOM_WAKERS, WAKERS_MAX_BYTES);
	if (!room_take(ROOM_WAKERS, &waker.process->payer, waker.sample->head.size))
		return;
	held = held_new(&waker, now_ns);
	if (held && !map_put_ptr(&wakers->by_id, waker.sample->waker, held))
		return;
	held_free(held); /* counted when the sleeper's sample looks for it */
	room_give(ROOM_WAKERS, &waker.process->payer, waker.sample->head.size);
}

/* Returns NULL if it has not arrived, or if its process executed another program since. */
static const struct decision *wakers_find(const struct wakers *wakers, uint64_t id)
{
	const struct held *held = map_get_ptr(&wakers->by_id, id);

	return held && held_is_current(held) ? &held->decision : NULL;
}

/* Removes records that have waited too long. */
static void wakers_sweep(struct wakers *wakers, uint64_t now_ns)
{
	uint64_t id, value;

	if (now_ns < wakers->swept_ns + WAKERS_WAIT_NS)
		return;
	wakers->swept_ns = now_ns;
	for (size_t cursor = 0; map_next(&wakers->by_id, &cursor, &id, &value);)
		if (((const struct held *)(uintptr_t)value)->since_ns < now_ns - WAKERS_KEEP_NS)
			wakers_remove(wakers, id);
}

/* ---- names that are missing ---- */

static struct pending_origin *find_or_add_origin(struct pending *pending, const struct lack *lack)
{
	struct pending_origin *of;

	for (size_t i = 0; i < pending->origins.len; i++)
		if (pending->origins.items[i]->origin == lack->origin)
			return pending->origins.items[i];
	of = calloc(1, sizeof(*of));
	if (!of || vec_push(&pending->origins, of) < 0) {
		free(of);
		return NULL;
	}
	of->origin = origin_await(lack->origin);
	of->jvm = lack->jvm;
	of->records = jvm_records(lack->jvm);
	of->asked_ns = clock_monotonic_ns();
	TAILQ_INIT(&of->names);
	return of;
}

static void forget_origin(struct pending *pending, struct pending_origin *of)
{
	size_t i = 0;

	while (pending->origins.items[i] != of)
		i++;
	pending->origins.items[i] = pending->origins.items[--pending->origins.len];
	origin_unawait(of->origin);
	free(of);
}

static struct pending_name *find_or_add_name(struct pending *pending, const struct lack *lack)
{
	const uint64_t about[] = {(uintptr_t)lack->origin, lack->want.key,
				  (uint64_t)lack->want.id << 32 | lack->want.unloads, lack->want.kind};
	uint64_t key = hash_bytes(about, sizeof(about), 0);
	struct pending_name *name = map_get_ptr(&pending->names, key);
	struct pending_origin *of;

	if (name)
		return name;
	of = find_or_add_origin(pending, lack);
	name = of ? calloc(1, sizeof(*name)) : NULL;
	if (!name || map_put_ptr(&pending->names, key, name) < 0) {
		free(name);
		if (of && TAILQ_EMPTY(&of->names))
			forget_origin(pending, of);
		return NULL;
	}
	*name = (struct pending_name){.origin = of, .key = key, .want = lack->want, .then = lack->then};
	TAILQ_INIT(&name->samples);
	TAILQ_INSERT_TAIL(&of->names, name, link);
	return name;
}

static void forget_name(struct pending *pending, struct pending_name *name)
{
	struct pending_origin *of = name->origin;

	map_remove(&pending->names, name->key);
	TAILQ_REMOVE(&of->names, name, link);
	if (TAILQ_EMPTY(&of->names))
		forget_origin(pending, of);
	free(name);
}

/* ---- what a sample lacks ---- */

static bool ask(struct pending *pending, struct origin *origin, const struct duet_want *wants, size_t count)
{
	return count && pending->of.ask(pending->of.context, origin, wants, count);
}

/* Requests the names of a record's stack. The first one that may arrive is what the sample lacks. */
static struct resolved look_for_names(struct pending *pending, const struct decision *of, struct lack *lack)
{
	struct resolved resolved = resolve_stack(&pending->sink.resolver, of);

	if (!ask(pending, of->origin, resolved.wants, resolved.want_count) || lack->origin)
		return resolved;
	lack->origin = of->origin;
	lack->jvm = of->jvm;
	lack->want = resolved.wants[0];
	lack->then = (struct jvm_moment){of->sample->head.time_ns, of->sample->unloads};
	return resolved;
}

static void look_for_holders(struct pending *pending, const struct decision *of, struct lack *lack)
{
	struct holding parts[HOLDERS_PARTS];
	size_t count = holders_split(&pending->holders, of, parts);

	for (size_t i = 0; i < count; i++)
		if (parts[i].by)
			(void)look_for_names(pending, parts[i].by, lack);
}

/* Requests all names at once, also if something else is missing. */
static struct lack look(struct pending *pending, const struct decision *of)
{
	const struct duet_sample *sample = of->sample;
	const struct decision *waker = sample->waker ? wakers_find(&pending->wakers, sample->waker) : NULL;
	bool has_holders = pending->of.sink.options->holders && holders_lock(sample);
	struct lack lack = {.waker = sample->waker && !waker};

	lack.releases = has_holders && sample->head.time_ns > pending->kernel_ns;
	if (waker)
		(void)look_for_names(pending, waker, &lack);
	if (has_holders && !lack.releases)
		look_for_holders(pending, of, &lack);
	lack.own = look_for_names(pending, of, &lack);
	return lack;
}

static bool is_nothing(const struct lack *lack)
{
	return !lack->waker && !lack->releases && !lack->origin;
}

/* Puts the sample into the list of what it lacks. Returns 0, or -ENOMEM: then it is in none. */
static int put(struct pending *pending, struct pending_sample *sample, const struct lack *lack)
{
	bool is_name = !lack->waker && !lack->releases;

	sample->name = is_name ? find_or_add_name(pending, lack) : NULL;
	if (is_name && !sample->name)
		return -ENOMEM;
	if (lack->waker && map_put_ptr(&pending->unwoken_ids, sample->held->decision.sample->waker, sample) < 0)
		return -ENOMEM;
	sample->lacks = is_name ? &sample->name->samples : lack->waker ? &pending->unwoken : &pending->unread;
	TAILQ_INSERT_TAIL(sample->lacks, sample, link);
	return 0;
}

static void take(struct pending *pending, struct pending_sample *sample)
{
	struct pending_name *name = sample->name;

	TAILQ_REMOVE(sample->lacks, sample, link);
	if (sample->lacks == &pending->unwoken)
		map_remove(&pending->unwoken_ids, sample->held->decision.sample->waker);
	sample->name = NULL;
	if (name && TAILQ_EMPTY(&name->samples))
		forget_name(pending, name);
}

/* ---- samples ---- */

static bool is_crowded(const struct pending *pending)
{
	return pending->count + join_held(pending->join) > JOIN_MAX_HELD ||
	       pending->bytes + join_held_bytes(pending->join) > pending->max_bytes;
}

/* Adds a sample to the profile. `own`: its stack as it was resolved just now. */
static void add(struct pending *pending, const struct decision *of, struct resolved own)
{
	const struct duet_sample *sample = of->sample;
	struct holding parts[HOLDERS_PARTS];
	const struct sink_company with = {
		.waker = sample->waker ? wakers_find(&pending->wakers, sample->waker) : NULL,
		.parts = parts,
		.part_count = pending->of.sink.options->holders ? holders_split(&pending->holders, of, parts) : 0,
	};

	sink_add(&pending->sink, of, own, &with);
	if (sample->waker)
		wakers_remove(&pending->wakers, sample->waker);
	if (pending->of.sink.options->holders)
		holders_add_wait(&pending->holders, of, clock_monotonic_ns());
}

static bool take_room(const struct held *held)
{
	if (!room_take(ROOM_WAITING, &held->payer, 1))
		return false;
	if (room_take(ROOM_WAITING_BYTES, &held->payer, held->bytes))
		return true;
	room_give(ROOM_WAITING, &held->payer, 1);
	return false;
}

static void give_room(const struct held *held)
{
	room_give(ROOM_WAITING, &held->payer, 1);
	room_give(ROOM_WAITING_BYTES, &held->payer, held->bytes);
}

static void free_sample(struct pending *pending, struct pending_sample *sample)
{
	TAILQ_REMOVE(&pending->samples, sample, all);
	pending->count--;
	pending->bytes -= sample->held->bytes;
	give_room(sample->held);
	origin_unawait(sample->held->decision.origin);
	held_free(sample->held);
	free(sample);
}

/* Takes a sample, which is in no list of what it lacks, out of the store. */
static void finish(struct pending *pending, struct pending_sample *sample, struct resolved own)
{
	add(pending, &sample->held->decision, own);
	free_sample(pending, sample);
}

/* Returns false when out of memory. */
static bool hold(struct pending *pending, const struct decision *decision, const struct lack *lack)
{
	struct pending_sample *sample = calloc(1, sizeof(*sample));
	bool has_room;

	if (!sample)
		return false;
	sample->held = held_new(decision, clock_monotonic_ns());
	has_room = sample->held && take_room(sample->held);
	if (!has_room || put(pending, sample, lack) < 0) {
		if (has_room)
			give_room(sample->held);
		held_free(sample->held);
		free(sample);
		return false;
	}
	origin_await(decision->origin);
	TAILQ_INSERT_TAIL(&pending->samples, sample, all);
	pending->count++;
	pending->bytes += sample->held->bytes;
	return true;
}

/* Looks again at a sample, because something has arrived. */
static void try_again(struct pending *pending, struct pending_sample *sample)
{
	struct lack lack;

	take(pending, sample);
	lack = look(pending, &sample->held->decision);
	if (is_nothing(&lack) || put(pending, sample, &lack) < 0)
		finish(pending, sample, lack.own);
}

static void give_up(struct pending *pending, struct pending_sample *sample)
{
	take(pending, sample);
	finish(pending, sample, resolve_stack(&pending->sink.resolver, &sample->held->decision));
}

/* ---- records ---- */

/* A thread that releases a lock may be interrupted at that moment: then the interrupt has woken the other thread. */
static void add_holder(struct pending *pending, const struct decision *holder)
{
	struct lack lack = {0};

	if (sink_is_interrupt(&pending->sink, holder))
		return;
	(void)look_for_names(pending, holder, &lack);
	holders_add(&pending->holders, holder, clock_monotonic_ns());
}

static void add_waker(struct pending *pending, const struct decision *waker)
{
	struct pending_sample *sample = map_get_ptr(&pending->unwoken_ids, waker->sample->waker);
	struct lack lack = {0};

	wakers_add(&pending->wakers, waker, clock_monotonic_ns());
	if (sample)
		try_again(pending, sample);
	else
		(void)look_for_names(pending, waker, &lack);
}

void pending_add(struct pending *pending, const struct decision *decision)
{
	struct lack lack;

	if (decision->sample->role == DUET_ROLE_HOLDER)
		return add_holder(pending, decision);
	if (decision->sample->role != DUET_ROLE_SAMPLE)
		return add_waker(pending, decision);
	lack = look(pending, decision);
	if (is_nothing(&lack) || is_crowded(pending) || !hold(pending, decision, &lack))
		add(pending, decision, lack.own);
}

/* ---- time ---- */

/* Looks at each sample of the list once. Those that lack the same again come after `last`. */
static void try_all(struct pending *pending, struct pending_samples *list)
{
	struct pending_sample *last = TAILQ_LAST(list, pending_samples), *sample, *next;

	for (sample = TAILQ_FIRST(list); sample; sample = next) {
		next = sample == last ? NULL : TAILQ_NEXT(sample, link);
		try_again(pending, sample);
	}
}

/* Looks for the names of an origin if it has written records since, and requests again what it did not answer. */
static void try_names(struct pending *pending, struct pending_origin *of, uint64_t now_ns)
{
	bool answers = pending->of.ask(pending->of.context, of->origin, NULL, 0);
	struct pending_name *name, *next;

	if (answers && jvm_records(of->jvm) == of->records && now_ns < of->asked_ns + ASK_AGAIN_NS)
		return;
	of->records = jvm_records(of->jvm);
	of->asked_ns = now_ns;
	for (name = TAILQ_FIRST(&of->names); name; name = next) {
		next = TAILQ_NEXT(name, link); /* NULL: `of` may be freed with the last name */
		if (!answers || !jvm_lacks(of->jvm, &name->want, name->then))
			try_all(pending, &name->samples);
		else
			(void)ask(pending, of->origin, &name->want, 1);
	}
}

static void try_unread(struct pending *pending)
{
	struct pending_sample *sample, *next;

	for (sample = TAILQ_FIRST(&pending->unread); sample; sample = next) {
		next = TAILQ_NEXT(sample, link);
		if (sample->held->decision.sample->head.time_ns <= pending->kernel_ns)
			try_again(pending, sample);
	}
}

/* Adds the samples that have waited long enough, and the oldest ones while there are too many. */
static void give_up_oldest(struct pending *pending, uint64_t now_ns)
{
	struct pending_sample *sample;

	while ((sample = TAILQ_FIRST(&pending->unwoken)) && now_ns > sample->held->since_ns + WAKERS_WAIT_NS)
		give_up(pending, sample);
	while ((sample = TAILQ_FIRST(&pending->samples)) &&
	       (now_ns > sample->held->since_ns + PENDING_WAIT_NS || is_crowded(pending)))
		give_up(pending, sample);
}

void pending_run(struct pending *pending, uint64_t now_ns)
{
	for (size_t i = pending->origins.len; i-- > 0;) /* one that is forgotten is replaced by the last */
		if (i < pending->origins.len)
			try_names(pending, pending->origins.items[i], now_ns);
	try_unread(pending);
	give_up_oldest(pending, now_ns);
	join_run(pending->join, now_ns);
	wakers_sweep(&pending->wakers, now_ns);
	holders_sweep(&pending->holders, now_ns);
}

void pending_flush(struct pending *pending, const struct process *process)
{
	struct pending_sample *sample, *next;

	join_flush(pending->join, process);
	for (sample = TAILQ_FIRST(&pending->samples); sample; sample = next) {
		next = TAILQ_NEXT(sample, all);
		if (!process || sample->held->decision.process == process)
			give_up(pending, sample);
	}
}

void pending_release(struct pending *pending)
{
	struct pending_sample *sample;

	join_free(pending->join);
	while ((sample = TAILQ_FIRST(&pending->samples))) {
		take(pending, sample);
		free_sample(pending, sample);
	}
	map_release(&pending->names);
	map_release(&pending->unwoken_ids);
	vec_release(&pending->origins);
	wakers_release(&pending->wakers);
	holders_release(&pending->holders);
	resolver_release(&pending->sink.resolver);
}

uint64_t pending_oldest_ns(const struct pending *pending)
{
	uint64_t oldest_ns = join_oldest_ns(pending->join);
	const struct pending_sample *sample;

	TAILQ_FOREACH(sample, &pending->samples, all)
	{
		uint64_t time_ns = sample->held->decision.sample->head.time_ns;

		oldest_ns = time_ns < oldest_ns ? time_ns : oldest_ns;
	}
	return oldest_ns;
}

bool pending_has_dead(const struct pending *pending)
{
	const struct pending_sample *sample;

	TAILQ_FOREACH(sample, &pending->samples, all)
	{
		if (sample->held->decision.process->exited)
			return true;
	}
	return false;
}

size_t pending_count(const struct pending *pending)
{
	return join_held(pending->join) + pending->count;
}
