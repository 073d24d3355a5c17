/* SPDX-License-Identifier: MIT */
#include "join/resolve.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/counters.h"
#include "join/attributes.h"
#include "join/naming.h"

#define PROCESS_MAX_ROWS (1u << 19) /* frames and stack nodes that one process may add to the profile */
/* In a value of the cache, above the node: enum splice_witnesses, and enum alike of the names and of the indices. */
#define WITNESSES_SHIFT 32
#define NAMES_SHIFT 40
#define BCIS_SHIFT 48
#define ESTIMATED_SHIFT 56
#define SLEEP_FLAGS (DUET_SAMPLE_OFF_CPU | DUET_SAMPLE_IO | DUET_SAMPLE_FAULT | DUET_SAMPLE_IDLE)
#define TOO_MANY "[too_many_stacks]"
#define EPOCH_SHIFT 35 /* 34 s, then the caches are emptied: mappings and kernel modules change without a record */

/* Bits of the events that have a CPU: a sleep is on none, and the JVM's own events do not have it. */
static uint32_t events_on_cpu(const struct event_list *events)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < events->len; i++) {
		const struct event *event = events->items[i].event;

		if (event->program < DUET_PROGRAM_OFFCPU && !event->also_shows)
			bits |= 1u << i;
	}
	return bits;
}

void resolver_init(struct resolver *resolver, const struct options *options, struct profile *profile,
		   struct symbols *symbols)
{
	*resolver = (struct resolver){.options = options, .profile = profile, .symbols = symbols};
	if (options->cpus)
		resolver->cpu_events = events_on_cpu(&options->events);
	if (getrandom(&resolver->seed, sizeof(resolver->seed), GRND_NONBLOCK) < 0)
		/* early at boot there may be no randomness; the seed is then as random as the address */
		resolver->seed = (uintptr_t)resolver;
}

void resolver_release(struct resolver *resolver)
{
	if (!resolver)
		return;
	splice_release(&resolver->splice);
	vec_release(&resolver->rows);
	vec_release(&resolver->wants);
	map_release(&resolver->stacks);
	map_release(&resolver->addresses);
	distinct_release(&resolver->refused);
}

/* Returns the counter of the frames and stack nodes that the process's samples have added to the profile. */
static uint64_t *stack_rows(struct process *process)
{
	return process_state(process, PROCESS_OF_JOIN);
}

bool resolver_has_room(struct process *process)
{
	return *stack_rows(process) < PROCESS_MAX_ROWS;
}

void resolver_count(struct process *process, size_t rows)
{
	*stack_rows(process) += rows;
}

void resolver_forget_process(struct process *process)
{
	*stack_rows(process) = 0;
}

/* Hashes everything that the result of splice_stack() and the names depend on. */
static uint64_t stack_key(const struct naming *n, const struct decision *decision)
{
	const struct duet_sample *sample = decision->sample;
	const struct duet_java_sample *java = decision->java;
	uint64_t about[] = {
		(uintptr_t)n->process,
		n->process->maps_version,
		(uintptr_t)n->jvm,
		n->jvm ? jvm_changed_ns(n->jvm) : 0,
		decision->outcome,
		sample->flags & (DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_CALLED | SLEEP_FLAGS),
		n->sleep & DUET_SAMPLE_OFF_CPU && n->is_runnable,
		(uint64_t)sample->walk_end << 1 | (sample->left_out != 0),
		(uint64_t)sample->kernel_depth << 32 | (uint64_t)sample->user_depth << 16 | sample->no_signal,
		java ? (uint64_t)java->java_depth << 32 | java->flags : 0,
		java ? (uint64_t)(uint32_t)java->status : 0,
		(uint64_t)n->cpu << 32 | n->policy,
	};
	uint64_t key = hash_bytes(about, sizeof(about), n->resolver->seed);

	key = hash_bytes(sample->stack,
			 (sample->kernel_depth + sample->user_depth) * sizeof(uint64_t) +
				 sample->id_depth * sizeof(uint32_t),
			 key);
	if (java)
		key = hash_bytes(java + 1, java->java_depth * sizeof(struct duet_java_frame), key);
	if (n->object_class)
		key = hash_bytes(n->object_class + 1, n->object_class->bytes, key ^ n->object_class->about);
	if (n->resource)
		key = hash_bytes(n->resource + 1, n->resource->bytes, key);
	if (n->spent_on)
		key = hash_bytes(n->spent_on + 1, n->spent_on->bytes, key);
	if (n->span)
		key = hash_bytes(n->span, sizeof(*n->span) + n->span->bytes, key);
	return key;
}

static void count_nameless(const struct process *process, uint64_t frames)
{
	bool has_ended = frames && process_is_ending(process);

	loader_counters[has_ended ? DUET_LOADER_NAME_MISSING : DUET_LOADER_NAME_LATE] += frames;
}

/* Replaces the stack by a mark, without class, file and state: a process can invent any number of them. */
static int mark_too_many(struct naming *n)
{
	n->object_class = n->resource = n->spent_on = n->span = NULL;
	return splice_mark(n->splice, TOO_MANY);
}

/* Names the stack. If the profile is full and does not have the stack yet, the stack becomes a single mark. */
static int64_t name_bounded(struct naming *n, uint64_t key)
{
	int64_t node;
	int err;

	n->is_closed = profile_is_full(n->profile) && !naming_is_one_mark(n->splice);
	node = naming_stack(n);
	if (node >= 0 || !n->is_closed) {
		count_nameless(n->process, n->names_missing);
		return node;
	}
	loader_counters[DUET_LOADER_MEMORY_FULL]++;
	distinct_add(&n->resolver->refused, key);
	n->is_closed = n->is_final = false; /* not cached: there may be room later */
	err = mark_too_many(n);
	return err < 0 ? err : naming_stack(n);
}

void resolver_forget(struct resolver *r)
{
	map_release(&r->addresses);
	map_release(&r->stacks);
}

void resolver_new_profile(struct resolver *r)
{
	resolver_forget(r);
	distinct_release(&r->refused);
	r->kept = 0;
}

static void forget_old(struct resolver *r, uint64_t time_ns)
{
	if (r->stacks.len < NAMING_MAX_ROWS && time_ns >> EPOCH_SHIFT <= r->epoch)
		return;
	resolver_forget(r);
	r->epoch = time_ns >> EPOCH_SHIFT;
}

/* ---- one decision ---- */

static struct naming naming_of(struct resolver *r, const struct decision *of)
{
	const struct duet_sample *sample = of->sample;
	struct naming n = {
		.resolver = r,
		.profile = r->profile,
		.splice = &r->splice,
		.rows = &r->rows,
		.process = of->process,
		.jvm = of->jvm,
		.then = {sample->head.time_ns, sample->unloads},
		.sleep = sample->flags & SLEEP_FLAGS,
		.is_called = sample->flags & DUET_SAMPLE_CALLED,
		.is_runnable = of->is_runnable,
		.cpu = r->cpu_events >> sample->event & 1 ? sample->cpu : 0,
		.policy = r->options->bpf.policies ? sample->policy : 0,
		.object_class = attribute_find(sample, DUET_ATTRIBUTE_CLASS),
		.resource = attribute_find(sample, DUET_ATTRIBUTE_RESOURCE),
		.spent_on = attribute_find(sample, DUET_ATTRIBUTE_STATE),
		.span = attribute_find(sample, DUET_ATTRIBUTE_SPAN),
	};

	if (!n.span)
		n.span = attribute_find(sample, DUET_ATTRIBUTE_USER);
	return n;
}

/* Returns true if nothing in the JVM has changed since: an older sample may have hit code unloaded since. */
static bool is_current(const struct naming *n)
{
	return !n->jvm || jvm_is_current(n->jvm, n->then);
}

static void put_known(struct resolver *r, const struct resolved *resolved)
{
	const struct splice_verdict *verdict = &resolved->verdict;

	/* When out of memory, the stack is resolved again next time. */
	(void)map_put(&r->stacks, resolved->key,
		      (uint64_t)resolved->node | (uint64_t)verdict->witnesses << WITNESSES_SHIFT |
			      (uint64_t)verdict->names << NAMES_SHIFT | (uint64_t)verdict->bcis << BCIS_SHIFT |
			      (uint64_t)verdict->is_estimated << ESTIMATED_SHIFT);
}

/* Takes the stack from the cache. */
static bool find_known(const struct naming *n, struct resolved *resolved)
{
	uint64_t known;

	if (!is_current(n) || !map_get(&n->resolver->stacks, resolved->key, &known))
		return false;
	resolved->verdict = (struct splice_verdict){
		.witnesses = (enum splice_witnesses)(known >> WITNESSES_SHIFT & 0xff),
		.names = (enum alike)(known >> NAMES_SHIFT & 0xff),
		.bcis = (enum alike)(known >> BCIS_SHIFT & 0xff),
		.is_estimated = known >> ESTIMATED_SHIFT,
	};
	resolved->node = (uint32_t)known;
	return true;
}

/* Splices the stack. Adds none if the process has added too many: it must not use up the profile. */
static void splice_bounded(struct naming *n, const struct decision *of, struct resolved *resolved)
{
	struct resolver *r = n->resolver;
	int err;

	resolved->is_refused = !resolver_has_room(n->process);
	if (resolved->is_refused)
		err = mark_too_many(n);
	else
		err = splice_stack(n->splice, n->process, n->jvm, of->sample, of->java, of->outcome);
	resolved->node = err < 0 ? err : RESOLVED_NODE_UNKNOWN;
	resolved->verdict = n->splice->verdict;
	resolved->splice = ++r->splices;
}

struct resolved resolve_stack(struct resolver *r, const struct decision *decision)
{
	struct naming n = naming_of(r, decision);
	struct resolved resolved = {.key = stack_key(&n, decision)};

	forget_old(r, n.then.time_ns);
	vec_clear(&r->wants);
	if (find_known(&n, &resolved))
		return resolved;
	splice_bounded(&n, decision, &resolved);
	if (resolved.node == RESOLVED_NODE_UNKNOWN && n.jvm)
		naming_list_wants(&n);
	resolved.wants = r->wants.items;
	resolved.want_count = r->wants.len;
	return resolved;
}

int64_t resolve_node(struct resolver *r, const struct decision *decision, struct resolved *resolved)
{
	struct naming n;

	if (resolved->node != RESOLVED_NODE_UNKNOWN)
		return resolved->node;
	n = naming_of(r, decision);
	if (resolved->splice != r->splices)
		splice_bounded(&n, decision, resolved);
	if (resolved->is_refused) {
		loader_counters[DUET_LOADER_STACKS_FULL]++;
		(void)mark_too_many(&n);
	}
	if (resolved->node != RESOLVED_NODE_UNKNOWN)
		return resolved->node;
	n.is_final = !resolved->is_refused && !resolved->verdict.is_missing_code && !n.splice->wants.len;
	resolved->node = name_bounded(&n, resolved->key);
	if (resolved->node >= 0 && is_current(&n) && n.is_final)
		put_known(r, resolved);
	return resolved->node;
}
