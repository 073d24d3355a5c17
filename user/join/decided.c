/* SPDX-License-Identifier: MIT */
#include "join/decided.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/text.h"
#include "join/attributes.h"
#include "runtime/jvm.h"
#include "subject/owners.h"

#define COMM_AGE_NS (NS_PER_SEC / 10) /* a thread may rename itself */

int decided_open(struct decided *decided, const struct decided_parts *of)
{
	*decided = (struct decided){.of = *of, .max_bytes = JOIN_MAX_BYTES};
	resolver_init(&decided->resolver, of->profile, of->symbols);
	decided->join = join_new(of->handler, of->context);
	return decided->join ? 0 : -ENOMEM;
}

void decided_release(struct decided *decided)
{
	join_free(decided->join);
	nameless_release(&decided->nameless);
	wakers_release(&decided->wakers);
	holders_release(&decided->holders);
	resolver_release(&decided->resolver);
}

void decided_set_max_bytes(struct decided *decided, size_t bytes)
{
	decided->max_bytes = bytes;
	join_set_max_bytes(decided->join, bytes);
}

/* ---- into the profile ---- */

static uint32_t known_thread(struct decided *decided, struct process *process, uint32_t tid, const char *name,
			     const char *comm)
{
	uint32_t owner = subject_of(process)->owner;
	uint32_t thread = profile_known_thread(decided->of.profile, (uint32_t)process->pid, tid, name, comm, owner);

	if (thread != UINT32_MAX && decided->of.profile->threads.items[thread].pid != (uint32_t)process->pid)
		loader_counters[DUET_LOADER_THREADS_FULL]++;
	return thread;
}

/* An agent's sample has no cgroup. */
static uint32_t owner_row(struct decided *decided, struct process *process, const struct duet_sample *sample)
{
	bool is_bpfs = decided->has_bpf && !(sample->flags & DUET_SAMPLE_CALLED);

	return owners_row(decided->of.owners, process, is_bpfs ? sample : NULL);
}

/*
 * Returns the row of the virtual thread that was mounted. The carrier's own name is used only for work that the carrier
 * does itself.
 */
static uint32_t virtual_thread(struct decided *decided, struct process *process, const struct duet_sample *sample)
{
	const struct duet_virtual_thread *thread = &sample->virtual_thread;
	char name[2 * DUET_MAX_VIRTUAL_NAME + 1];

	text_from_java(name, thread->name, thread->name_bytes, thread->is_utf16);
	if (profile_is_full(decided->of.profile))
		return known_thread(decided, process, PROFILE_VIRTUAL, *name ? name : PROFILE_NO_NAME,
				    sample->process_comm);
	return profile_virtual_thread(decided->of.profile, (uint32_t)process->pid, thread->id, name,
				      sample->process_comm, owner_row(decided, process, sample));
}

static const char *read_comm(struct decided *decided, const struct process *process, uint32_t tid)
{
	struct decided_comm *comm = &decided->comm;
	uint64_t now_ns = clock_monotonic_ns();

	if (comm->pid == process->pid && comm->tid == tid && now_ns - comm->read_ns < COMM_AGE_NS)
		return comm->text;
	*comm = (struct decided_comm){.pid = process->pid, .tid = tid, .read_ns = now_ns};
	process_read_thread_comm(process->pid, (pid_t)tid, comm->text, sizeof(comm->text));
	return comm->text;
}

static uint32_t sample_thread(struct decided *decided, struct process *process, const struct jvm *jvm,
			      const struct duet_sample *sample)
{
	uint32_t tid = sample->head.tid;
	uint32_t name = jvm ? jvm_thread_name(jvm, sample->ns_tid, sample->head.time_ns, sample->comm) : 0;
	char own[DUET_COMM_LEN] = "";
	const char *text = name ? intern_text(&decided->of.profile->strings, name) : own;
	const char *comm;

	memcpy(own, sample->comm, strnlen(sample->comm, sizeof(own) - 1));
	own[text_join_surrogates(own, strlen(own))] = '\0'; /* a JVM may have named it */

	if (sample->virtual_thread.id)
		return virtual_thread(decided, process, sample);
	if (!text[0]) /* a thread of the JVM itself, sampled by a timer engine */
		text = read_comm(decided, process, tid);
	/* Use the process's name at the time of the sample: by now the process may run another program. */
	comm = sample->process_comm;
	if (profile_is_full(decided->of.profile))
		return known_thread(decided, process, tid, text, comm);
	return profile_thread(decided->of.profile, (uint32_t)process->pid, tid, text, comm,
			      owner_row(decided, process, sample));
}

/* The thread's name, and its process if that is not the sleeper's. */
static void name_waker(struct decided *decided, const struct decision *waker, const struct process *sleeper,
		       struct buf *who)
{
	const struct profile *profile = decided->of.profile;
	const char *name = waker->sample->comm, *process = waker->sample->process_comm;
	bool is_stranger = waker->sample->role == DUET_ROLE_STRANGER;
	bool is_other = is_stranger ? strcmp(name, process) != 0 : waker->process != sleeper;
	uint32_t thread;

	if (waker->sample->role == DUET_ROLE_WAKER || waker->sample->role == DUET_ROLE_HOLDER) {
		thread = sample_thread(decided, waker->process, waker->jvm, waker->sample);
		if (thread != UINT32_MAX)
			name = intern_text(&profile->strings, profile->threads.items[thread].name);
	}
	buf_add_str(who, name);
	if (is_other)
		buf_printf(who, " (%s)", process);
}

/* Returns the node of the stack `node` with the waker's stack after it, or `node` if the profile has no room for it. */
static int64_t append_waker(struct decided *decided, const struct decision *of, int64_t node,
			    const struct decision *waker, int64_t waker_node)
{
	struct profile *profile = decided->of.profile;
	size_t rows = profile->frames.len + profile->nodes.len;
	struct buf who;

	if (profile_is_full(profile) || !resolver_has_room(of->process)) {
		loader_counters[DUET_LOADER_NO_WAKER]++;
		return node;
	}
	buf_init(&who);
	name_waker(decided, waker, of->process, &who);
	node = who.failed ? UINT32_MAX
			  : wakers_append(profile, (uint32_t)node, (uint32_t)waker_node, waker->sample, who.data);
	buf_release(&who);
	resolver_count(of->process, profile->frames.len + profile->nodes.len - rows);
	return node == UINT32_MAX ? -ENOMEM : node;
}

/* Returns the node of the stack that ended the sleep, or -1. Call resolve_stack() for the sleep's sample afterwards. */
static int64_t resolve_waker(struct decided *decided, const struct decision *of)
{
	const struct decision *waker = wakers_find(&decided->wakers, of->sample->waker);
	int64_t node = -1;

	if (waker) {
		resolve_stack(&decided->resolver, waker);
		node = resolve_node(&decided->resolver, waker);
	}
	if (node < 0)
		loader_counters[DUET_LOADER_NO_WAKER]++;
	return node < 0 ? -1 : node;
}

static uint64_t address_or_age(const struct duet_sample *sample)
{
	uint64_t address = attribute_number(sample, DUET_ATTRIBUTE_ADDRESS);

	return address ? address : attribute_number(sample, DUET_ATTRIBUTE_AGE);
}

/* Returns 0 or -ENOMEM, or the negative `node`. */
static int add_node(struct decided *decided, const struct decision *of, uint64_t time_ns, int64_t node, uint64_t weight,
		    uint32_t count)
{
	const struct duet_sample *sample = of->sample;
	uint64_t context[3]; /* as struct duet_context has it */
	int err;

	if (node < 0)
		return (int)node;
	memcpy(context, &sample->context, sizeof(context));
	err = profile_add(decided->of.profile, &(struct profile_sample){
							.time_ns = time_ns,
							.weight = weight,
							.thread = sample_thread(decided, of->process, of->jvm, sample),
							.node = (uint32_t)node,
							.count = count,
							.event = sample->event,
							.address = address_or_age(sample),
							.trace_high = be64toh(context[0]),
							.trace_low = be64toh(context[1]),
							.span = be64toh(context[2]),
						});
	decided->outcomes.samples += err ? 0 : count;
	return err;
}

/* Returns for how many samples this one stands; 0: it is left out, and counted. */
static uint32_t thin(struct decided *decided)
{
	uint32_t times = thinning_take(&decided->of.profile->thinning);

	loader_counters[DUET_LOADER_LEFT_OUT] += !times;
	return times;
}

/*
 * Adds the sample of the last call of resolve_stack(), or a part of its weight. `waker` is the node of the waker's
 * stack, or -1. Returns 0 or -ENOMEM.
 */
static int add_weight(struct decided *decided, const struct decision *of, uint64_t weight, int64_t waker)
{
	uint32_t times = thin(decided);
	int64_t node;

	if (!times)
		return 0;
	node = resolve_node(&decided->resolver, of);
	if (node >= 0 && waker >= 0)
		node = append_waker(decided, of, node, wakers_find(&decided->wakers, of->sample->waker), waker);
	return add_node(decided, of, of->sample->head.time_ns, node, weight * times, times);
}

/* Returns the node of the wait `node` with a thread's name after it, or `node` if the thread is not known. */
static int64_t append_owner(struct decided *decided, const struct decision *of, int64_t node, uint32_t tid)
{
	struct profile *profile = decided->of.profile;
	uint32_t name = of->jvm ? jvm_thread_name(of->jvm, tid, of->sample->head.time_ns, "") : 0;
	size_t rows = profile->frames.len + profile->nodes.len;

	if (!name || profile_is_full(profile) || !resolver_has_room(of->process))
		return node;
	node = wakers_append_name(profile, (uint32_t)node, intern_text(&profile->strings, name));
	resolver_count(of->process, profile->frames.len + profile->nodes.len - rows);
	return node == UINT32_MAX ? -ENOMEM : node;
}

/* Resolves the holders' stacks. Call resolve_stack() for the wait's sample afterwards. Returns the length of all. */
static uint64_t resolve_holders(struct decided *decided, const struct holding *parts, size_t count, int64_t *ret_nodes)
{
	uint64_t all_ns = 0;

	for (size_t i = 0; i < count; i++) {
		all_ns += parts[i].ns;
		ret_nodes[i] = -1;
		if (!parts[i].by)
			continue;
		resolve_stack(&decided->resolver, parts[i].by);
		ret_nodes[i] = resolve_node(&decided->resolver, parts[i].by);
	}
	return all_ns;
}

/*
 * Adds a wait for a lock, in parts: a sample for each time that a thread held the lock, with the time of its end. A
 * part of no weight is none. Returns 0 or -ENOMEM.
 */
static int add_held(struct decided *decided, const struct decision *of, const struct holding *parts, size_t count)
{
	uint64_t begin_ns = holders_lock(of->sample)->begin_ns, told_ns = 0, told = 0, weight = of->sample->weight;
	uint32_t times = thin(decided);
	int64_t nodes[HOLDERS_PARTS], node;
	uint64_t all_ns = resolve_holders(decided, parts, count, nodes);
	int err = 0;

	resolve_stack(&decided->resolver, of);
	node = times ? resolve_node(&decided->resolver, of) : -1;
	for (size_t i = 0; times && !err && i < count; i++) {
		uint64_t until;
		int64_t at = node;

		told_ns += parts[i].ns;
		until = (uint64_t)((unsigned __int128)weight * told_ns / all_ns);
		if (node >= 0 && nodes[i] >= 0)
			at = append_waker(decided, of, node, parts[i].by, nodes[i]);
		else if (node >= 0 && !parts[i].by)
			at = append_owner(decided, of, node, parts[i].owner);
		if (until > told)
			err = add_node(decided, of, begin_ns + told_ns, at, (until - told) * times, times);
		told = until;
	}
	decided->outcomes.held_ns += weight;
	return err;
}

/* Adds the part of a sleep in which the thread waited for a CPU, under its own leaf. Returns 0 or -ENOMEM. */
static int add_runnable(struct decided *decided, const struct decision *of)
{
	int err;

	decided->resolver.is_runnable = true;
	resolve_stack(&decided->resolver, of);
	err = add_weight(decided, of, of->sample->runnable, -1);
	decided->resolver.is_runnable = false;
	return err;
}

/* Adds the sample of the last call of resolve_stack(). */
static void add(struct decided *decided, const struct decision *of)
{
	const struct duet_sample *sample = of->sample;
	int64_t waker = sample->waker ? resolve_waker(decided, of) : -1;
	uint64_t time_ns = sample->head.time_ns;
	struct holding parts[HOLDERS_PARTS];
	size_t held = decided->tells_holders ? holders_split(&decided->holders, of, parts) : 0;
	int err = 0;

	if (sample->waker)
		resolve_stack(&decided->resolver, of);
	if (held)
		err = add_held(decided, of, parts, held);
	else if (sample->weight > sample->runnable || !sample->runnable)
		err = add_weight(decided, of, sample->weight - sample->runnable, waker);
	if (!err && sample->runnable)
		err = add_runnable(decided, of);
	if (sample->waker)
		wakers_remove(&decided->wakers, sample->waker);
	if (decided->tells_holders && holders_lock(sample)) {
		decided->outcomes.lock_ns += sample->weight;
		holders_add_wait(&decided->holders, of, clock_monotonic_ns());
	}
	loader_counters[DUET_LOADER_OUT_OF_MEMORY] += err < 0;
	loader_counters[DUET_LOADER_WINDOW_LATE] += *decided->of.windows && time_ns < decided->of.profile->start_ns;
	if (of->jvm && decided->resolver.splice.is_missing_code)
		loader_counters[process_is_ending(of->process) ? DUET_LOADER_CODE_MISSING : DUET_LOADER_CODE_LATE]++;
	outcomes_add(&decided->outcomes, sample, of->java, of->outcome, of->jvm ? &decided->resolver.splice : NULL);
}

/* ---- waiting for names ---- */

static bool ask(struct decided *decided, void *owner)
{
	return decided->of.ask(decided->of.context, owner, decided->resolver.wants.items, decided->resolver.wants.len);
}

/* Returns true if the record of the sleep's waker, or names of the waker's stack, may still arrive. */
static bool awaits_waker(struct decided *decided, const struct duet_sample *sample)
{
	const struct decision *waker = sample->waker ? wakers_find(&decided->wakers, sample->waker) : NULL;

	if (!waker)
		return sample->waker != 0;
	return !resolve_stack(&decided->resolver, waker) && ask(decided, waker->owner);
}

/* Returns true if releases during a wait for a lock, or names of their stacks, may still arrive. */
static bool awaits_holders(struct decided *decided, const struct decision *of)
{
	struct holding parts[HOLDERS_PARTS];
	bool awaits = false;
	size_t count;

	if (!decided->tells_holders || !holders_lock(of->sample))
		return false;
	if (of->sample->head.time_ns > decided->kernel_ns)
		return true;
	count = holders_split(&decided->holders, of, parts);
	for (size_t i = 0; i < count; i++)
		awaits |= parts[i].by && !resolve_stack(&decided->resolver, parts[i].by) &&
			  ask(decided, parts[i].by->owner);
	return awaits;
}

static bool awaits_names(struct decided *decided, const struct decision *of)
{
	return !resolve_stack(&decided->resolver, of) && ask(decided, of->owner);
}

/* Returns how long the sample may wait for names. Afterwards it is added as it is. */
static uint64_t longest_wait_ns(const struct decided *decided, const struct duet_sample *sample)
{
	return sample->waker && !wakers_find(&decided->wakers, sample->waker) ? WAKERS_WAIT_NS : DECIDED_WAIT_NS;
}

static bool is_crowded(const struct decided *decided)
{
	return decided->nameless.samples.len + join_held(decided->join) > JOIN_MAX_HELD ||
	       decided->nameless.bytes + join_held_bytes(decided->join) > decided->max_bytes;
}

static bool try_again(void *context, const struct nameless_sample *held)
{
	struct decided *decided = context;
	const struct decision *of = &held->decision;
	bool is_last = is_crowded(decided) ||
		       decided->now_ns > held->since_ns + longest_wait_ns(decided, of->sample);

	bool awaits = awaits_waker(decided, of->sample);

	awaits |= awaits_holders(decided, of);
	awaits |= awaits_names(decided, of);
	if (awaits && !is_last)
		return false;
	add(decided, &held->decision);
	return true;
}

/* Returns true if the kernel's frames are those of an interrupt. Names of Java's frames may not have arrived yet. */
static bool is_interrupt(struct decided *decided, const struct decision *holder)
{
	const struct duet_sample *sample = holder->sample;
	struct decision in_kernel = *holder;
	struct duet_sample *copy =
		buf_duplicate(sample, sizeof(*sample) + sample->kernel_depth * sizeof(*sample->stack));
	int64_t node;

	if (!copy)
		return false;
	copy->user_depth = copy->id_depth = copy->left_out = 0;
	copy->attribute_bytes = 0;
	in_kernel.sample = copy;
	in_kernel.java = NULL;
	resolve_stack(&decided->resolver, &in_kernel);
	node = resolve_node(&decided->resolver, &in_kernel);
	free(copy);
	return node >= 0 && wakers_is_interrupt(decided->of.profile, (uint32_t)node);
}

/* A thread that releases a lock may be interrupted at that moment: then the interrupt has woken the other thread. */
static void add_holder(struct decided *decided, const struct decision *holder)
{
	if (is_interrupt(decided, holder))
		return;
	(void)awaits_names(decided, holder); /* asks for them */
	holders_add(&decided->holders, holder, clock_monotonic_ns());
}

void decided_add(struct decided *decided, const struct decision *decision)
{
	bool awaits;

	if (decision->sample->role == DUET_ROLE_HOLDER)
		return add_holder(decided, decision);
	if (decision->sample->role != DUET_ROLE_SAMPLE) {
		wakers_add(&decided->wakers, decision, clock_monotonic_ns());
		(void)awaits_waker(decided, decision->sample); /* asks for its names */
		return;
	}
	awaits = awaits_waker(decided, decision->sample);
	awaits |= awaits_holders(decided, decision);
	awaits |= awaits_names(decided, decision);
	if (awaits && !is_crowded(decided) &&
	    !nameless_hold(&decided->nameless, decision, clock_monotonic_ns()))
		return;
	add(decided, decision);
}

void decided_run(struct decided *decided, uint64_t now_ns)
{
	decided->now_ns = now_ns;
	nameless_sift(&decided->nameless, try_again, decided);
	join_run(decided->join, now_ns);
	wakers_sweep(&decided->wakers, now_ns);
}

struct flushing {
	struct decided *decided;
	const void *owner;
};

static bool flush(void *context, const struct nameless_sample *held)
{
	const struct flushing *flushing = context;

	if (flushing->owner && held->decision.owner != flushing->owner)
		return false;
	resolve_stack(&flushing->decided->resolver, &held->decision);
	add(flushing->decided, &held->decision);
	return true;
}

void decided_flush(struct decided *decided, void *owner)
{
	struct flushing flushing = {decided, owner};

	join_flush(decided->join, owner);
	nameless_sift(&decided->nameless, flush, &flushing);
	if (owner)
		wakers_forget(&decided->wakers, owner);
	if (owner)
		holders_forget(&decided->holders, owner);
}

uint64_t decided_oldest_ns(const struct decided *decided)
{
	uint64_t undecided_ns = join_oldest_ns(decided->join), nameless_ns = nameless_oldest_ns(&decided->nameless);

	return undecided_ns < nameless_ns ? undecided_ns : nameless_ns;
}

bool decided_awaits(const struct decided *decided, const void *owner)
{
	return join_holds(decided->join, owner) || nameless_holds(&decided->nameless, owner);
}

size_t decided_waiting(const struct decided *decided)
{
	return join_held(decided->join) + decided->nameless.samples.len;
}
