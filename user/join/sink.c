/* SPDX-License-Identifier: MIT */
#include "join/sink.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/io.h"
#include "base/text.h"
#include "join/states.h"
#include "proc/room.h"
#include "runtime/jvm.h"
#include "subject/program.h"

#define DEVICE_BYTES 64
#define DEPTH_MAX 65536 /* limit of splice_stack() */
#define DEVICES_BYTES 256 /* bytes of the names of the devices of an interrupt */
#define WAKERS_SEPARATOR "[woken by]"
#define HOLDERS_SEPARATOR "[held by]" /* in its place, after the stack of a wait for a lock, see join/holders.h */
#define COMM_AGE_NS (NS_PER_SEC / 10) /* a thread may rename itself */

static void count_jvm_walk(struct outcomes *outcomes, const struct duet_sample *sample, enum join_outcome outcome,
			   const struct splice_verdict *verdict)
{
	if (sample->flags & DUET_SAMPLE_SIGNALLED && sample->flags & DUET_SAMPLE_WALKED)
		outcomes->checked++;
	else if (sample->flags & DUET_SAMPLE_SIGNALLED)
		outcomes->needed++;
	outcomes->witnesses[verdict->witnesses]++;
	outcomes->bcis[verdict->bcis]++;
	outcomes->names[verdict->names]++;
	outcomes->estimated += verdict->is_estimated;
	outcomes->unrecorded += verdict->is_unrecorded;
	if (verdict->is_missing_code && outcome == JOIN_WALKED)
		outcomes->joined--; /* count_outcome() has counted it, but its frames have a gap */
	if (sample->flags & DUET_SAMPLE_USER_COMPLETE)
		outcomes->rooted++;
	else
		outcomes->walk_ends[sample->walk_end]++;
}

static void count_outcome(struct outcomes *outcomes, const struct duet_sample *sample,
			  const struct duet_java_sample *java, enum join_outcome outcome, bool jvm)
{
	bool is_joined = outcome == JOIN_JOINED || outcome == JOIN_WALKED;
	int code = java ? -java->status : 0;

	outcomes->jvm_samples += jvm && (is_joined || sample->no_signal != DUET_NO_SIGNAL_EVENT);
	outcomes->joined += is_joined;
	/* If the walk is whole, a failure of AsyncGetCallTrace lost nothing. */
	if (java && java->status <= 0 && !(java->flags & DUET_JAVA_NO_THREAD) &&
	    !(sample->flags & DUET_SAMPLE_USER_COMPLETE))
		outcomes->failures[code < OUTCOMES_FAILURES ? code : OUTCOMES_FAILURES - 1]++;
}

/* Skips stacks whose walk was cut but which a Java half continues. */
static void count_losses(const struct duet_sample *sample, const struct duet_java_sample *java)
{
	static const int losses[DUET_WALK_END_MAX] = {
		[DUET_WALK_NO_ROW] = DUET_LOADER_STACK_NO_ROW,	       [DUET_WALK_BAD_FP] = DUET_LOADER_STACK_NO_ROW,
		[DUET_WALK_UNREADABLE] = DUET_LOADER_STACK_UNREADABLE, [DUET_WALK_BAD_CFA] = DUET_LOADER_STACK_BAD_CFA,
		[DUET_WALK_DEPTH] = DUET_LOADER_STACK_DEPTH,	       [DUET_WALK_LONG] = DUET_LOADER_STACK_LONG,
	};

	if (java && java->java_depth && !(sample->flags & DUET_SAMPLE_USER_COMPLETE))
		return;
	loader_counters[DUET_LOADER_STACK_LEFT_OUT] += sample->left_out != 0;
	loader_counters[DUET_LOADER_STACK_GUESSED] += sample->guessed_depth != 0;
	if (losses[sample->walk_end])
		loader_counters[losses[sample->walk_end]]++;
}

void outcomes_add_own(struct outcomes *outcomes, const struct duet_sample *sample)
{
	static const enum duet_bpf_counter counters[] = {
		[DUET_NO_SIGNAL_SYSCALL] = DUET_BPF_SIGNAL_SYSCALL,
		[DUET_NO_SIGNAL_BLOCKED] = DUET_BPF_SIGNAL_BLOCKED,
		[DUET_NO_SIGNAL_EXITING] = DUET_BPF_SIGNAL_EXITING,
	};

	if (sample->flags & DUET_SAMPLE_USER_COMPLETE) /* samples that BPF has not counted */
		return;
	if (sample->no_signal == DUET_NO_SIGNAL_SYSCALL || sample->no_signal == DUET_NO_SIGNAL_BLOCKED ||
	    sample->no_signal == DUET_NO_SIGNAL_EXITING)
		outcomes->own_unsignalled[counters[sample->no_signal]]++;
}

struct outcomes outcomes_since(const struct outcomes *now, const struct outcomes *before)
{
	struct outcomes since = *now;
	uint64_t *count = (uint64_t *)&since;
	const uint64_t *subtract = (const uint64_t *)before;

	_Static_assert(sizeof(since) % sizeof(uint64_t) == 0, "a count that is no uint64_t");
	for (size_t i = 0; i < sizeof(since) / sizeof(uint64_t); i++)
		count[i] -= subtract[i];
	return since;
}

static void count_refused_thread(const struct sink *sink, const struct process *process)
{
	loader_counters[DUET_LOADER_THREADS_FULL]++;
	if (!profile_is_full(sink->of.profile, &(struct profile_rows){0}))
		room_refuse(ROOM_THREADS, &process->payer);
}

static uint32_t known_thread(struct sink *sink, struct process *process, uint32_t tid, const char *name,
			     const char *comm)
{
	uint32_t owner = subject_of(process)->owner;
	uint32_t thread = profile_known_thread(sink->of.profile, (uint32_t)process->pid, tid, name, comm, owner);

	if (thread != UINT32_MAX && sink->of.profile->threads.items[thread].pid != (uint32_t)process->pid)
		count_refused_thread(sink, process);
	return thread;
}

/* An agent's sample has no cgroup. */
static uint32_t owner_row(struct sink *sink, struct process *process, const struct duet_sample *sample)
{
	bool is_bpfs = sink->has_bpf && !(sample->flags & DUET_SAMPLE_CALLED);

	return owners_row(sink->of.owners, process, is_bpfs ? sample : NULL);
}

/* Returns the row of the mounted virtual thread. The carrier's name is for its own work only. */
static uint32_t virtual_thread(struct sink *sink, struct process *process, const struct duet_sample *sample)
{
	const struct duet_virtual_thread *thread = &sample->virtual_thread;
	char name[2 * DUET_MAX_VIRTUAL_NAME + 1];

	text_from_java(name, thread->name, thread->name_bytes, thread->is_utf16);
	if (resolver_is_closed(sink->of.profile, process))
		return known_thread(sink, process, PROFILE_VIRTUAL, *name ? name : PROFILE_NO_NAME,
				    sample->process_comm);
	return profile_virtual_thread(sink->of.profile, (uint32_t)process->pid, thread->id, name,
				      sample->process_comm, owner_row(sink, process, sample));
}

static const char *read_comm(struct sink *sink, const struct process *process, uint32_t tid)
{
	struct sink_comm *comm = &sink->comm;
	uint64_t now_ns = clock_monotonic_ns();
	struct charge charge;

	if (comm->pid == process->pid && comm->tid == tid && now_ns - comm->read_ns < COMM_AGE_NS)
		return comm->text;
	*comm = (struct sink_comm){.pid = process->pid, .tid = tid, .read_ns = now_ns};
	if (charge_begin(&charge, process)) {
		process_read_thread_comm(&charge, (pid_t)tid, comm->text, sizeof(comm->text));
		(void)charge_end(&charge);
	}
	return comm->text;
}

static uint32_t thread_row(struct sink *sink, struct process *process, const struct jvm *jvm,
			   const struct duet_sample *sample)
{
	uint32_t tid = sample->head.tid;
	uint32_t name = jvm ? jvm_thread_name(jvm, sample->ns_tid, sample->head.time_ns, sample->comm) : 0;
	char own[DUET_COMM_LEN] = "";
	const char *text = name ? intern_text(&sink->of.profile->strings, name) : own;
	const char *comm;
	uint32_t row;

	memcpy(own, sample->comm, strnlen(sample->comm, sizeof(own) - 1));
	own[text_join_surrogates(own, strlen(own))] = '\0'; /* a JVM may have named it */

	if (sample->virtual_thread.id)
		return virtual_thread(sink, process, sample);
	if (!text[0]) /* a thread of the JVM itself, sampled by a timer engine */
		text = read_comm(sink, process, tid);
	/* Use the process's name at the time of the sample: by now the process may run another program. */
	comm = sample->process_comm;
	if (resolver_is_closed(sink->of.profile, process))
		return known_thread(sink, process, tid, text, comm);
	row = profile_thread(sink->of.profile, (uint32_t)process->pid, tid, text, comm,
			     owner_row(sink, process, sample));
	if (name)
		profile_set_java_id(sink->of.profile, row, jvm_thread_java_id(jvm, sample->ns_tid));
	return row;
}

static uint32_t sample_thread(struct sink *sink, struct process *process, const struct jvm *jvm,
			      const struct duet_sample *sample)
{
	const struct profile_rows before = profile_rows(sink->of.profile);
	uint32_t thread = thread_row(sink, process, jvm, sample);

	resolver_count_rows(sink->of.profile, process, &before);
	return thread;
}

static uint32_t push(struct profile *profile, uint32_t node, enum frame_kind kind, const char *text)
{
	const struct frame frame = {.kind = kind, .bci = -1, .name = intern_str(&profile->strings, text)};
	uint32_t row = profile_frame(profile, &frame);

	return row == UINT32_MAX || node == UINT32_MAX ? UINT32_MAX : profile_child(profile, node, row);
}

/* Copies the frames of a stack, leaf first. Returns NULL when out of memory; the caller frees it. */
static uint32_t *stack_frames(const struct profile *profile, uint32_t node, size_t *ret_count)
{
	size_t count = 0;
	uint32_t *frames;

	for (uint32_t at = node; at && count < DEPTH_MAX; at = profile->nodes.items[at].parent)
		count++;
	frames = calloc(count + 1, sizeof(*frames));
	*ret_count = count;
	for (size_t i = 0; frames && i < count; i++, node = profile->nodes.items[node].parent)
		frames[i] = profile->nodes.items[node].frame;
	return frames;
}

/* A device has the names that its drivers gave, "eth0" or "ata1,ata2"; its number if there are none. */
static void name_interrupt(const struct duet_sample *sample, enum interrupt kind, char *ret, size_t room)
{
	static const char *const names[] = {
		[INTERRUPT_OTHER] = "[interrupt]",
		[INTERRUPT_TIMER] = "[timer]",
		[INTERRUPT_SOFT] = "[softirq]",
	};
	char path[64];
	int len = 0;
	BUF(text);

	if (kind != INTERRUPT_DEVICE) {
		snprintf(ret, room, "%s", names[kind]);
		return;
	}
	snprintf(path, sizeof(path), "/sys/kernel/irq/%u/actions", sample->irq); /* Linux 4.9 */
	if (!io_read_file(AT_FDCWD, path, DEVICES_BYTES, &text))
		len = (int)strcspn(text.data, "\n");
	if (len)
		snprintf(ret, room, "[irq: %.*s]", len < DEVICE_BYTES ? len : DEVICE_BYTES - 1, text.data);
	else
		snprintf(ret, room, "[irq: %u]", sample->irq);
}

/* Returns true if the kernel's frames of this stack of the profile are those of an interrupt. */
static bool is_interrupt(const struct profile *profile, uint32_t waker)
{
	size_t count;
	uint32_t *frames = stack_frames(profile, waker, &count);
	bool is_one = frames && state_interrupt(profile, frames, &count) != INTERRUPT_NONE;

	free(frames);
	return is_one;
}

/*
 * Returns the profile's node of the sleeper's stack `node` with the waker's after it, or UINT32_MAX when out of memory:
 * a separator, the waker's stack from its leaf to its root, and `who`, or [timer], [softirq], or [irq: device].
 */
static uint32_t append_stack(struct profile *profile, uint32_t node, uint32_t waker, const struct duet_sample *sample,
			     const char *who)
{
	char interrupt[DEVICE_BYTES + 16];
	enum interrupt kind;
	size_t count, whole, first;
	uint32_t *frames = stack_frames(profile, waker, &count);

	if (!frames)
		return UINT32_MAX;
	whole = count;
	first = state_skip_waking(profile, frames, count);
	kind = state_interrupt(profile, frames, &count);
	if (kind == INTERRUPT_SOFT && sample->flags & DUET_SAMPLE_OWN_SOFTIRQ) {
		kind = INTERRUPT_NONE;
		count = whole;
	}
	if (kind == INTERRUPT_NONE && sample->role == DUET_ROLE_INTERRUPT) {
		kind = INTERRUPT_OTHER; /* the frames have no names: they could be those of the interrupted thread */
		count = 0;
	}
	if (kind != INTERRUPT_NONE) {
		name_interrupt(sample, kind, interrupt, sizeof(interrupt));
		if (kind == INTERRUPT_TIMER)
			first = count; /* the frames of how the kernel runs a timer are left out */
		who = interrupt;
	}
	node = push(profile, node, FRAME_WAKER,
		    sample->role == DUET_ROLE_HOLDER ? HOLDERS_SEPARATOR : WAKERS_SEPARATOR);
	for (size_t i = first; i < count && node != UINT32_MAX; i++)
		node = profile_child(profile, node, frames[i]);
	free(frames);
	return push(profile, node, FRAME_THREAD, who);
}

/* The thread's name, and its process if that is not the sleeper's. */
static void name_waker(struct sink *sink, const struct decision *waker, const struct process *sleeper,
		       struct buf *who)
{
	const struct profile *profile = sink->of.profile;
	const char *name = waker->sample->comm, *process = waker->sample->process_comm;
	bool is_stranger = waker->sample->role == DUET_ROLE_STRANGER;
	bool is_other = is_stranger ? strcmp(name, process) != 0 : waker->process != sleeper;
	uint32_t thread;

	if (waker->sample->role == DUET_ROLE_WAKER || waker->sample->role == DUET_ROLE_HOLDER) {
		thread = sample_thread(sink, waker->process, waker->jvm, waker->sample);
		if (thread != UINT32_MAX)
			name = intern_text(&profile->strings, profile->threads.items[thread].name);
	}
	buf_add_str(who, name);
	if (is_other)
		buf_printf(who, " (%s)", process);
}

/* Returns the node of the stack `node` with the waker's stack after it, or `node` if the profile has no room for it. */
static int64_t append_waker(struct sink *sink, const struct decision *of, int64_t node,
			    const struct decision *waker, int64_t below)
{
	struct profile *profile = sink->of.profile;
	const struct profile_rows before = profile_rows(profile);
	BUF(who);

	if (resolver_is_closed(profile, of->process) || !resolver_has_room(of->process)) {
		loader_counters[DUET_LOADER_NO_WAKER]++;
		return node;
	}
	name_waker(sink, waker, of->process, &who);
	node = who.failed ? UINT32_MAX
			  : append_stack(profile, (uint32_t)node, (uint32_t)below, waker->sample, who.data);
	resolver_count_rows(profile, of->process, &before);
	return node == UINT32_MAX ? -ENOMEM : node;
}

/* Returns the node of a record's stack, with the names that are known now, or -errno. */
static int64_t node_of(struct sink *sink, const struct decision *of)
{
	struct resolved resolved = resolve_stack(&sink->resolver, of);

	return resolve_node(&sink->resolver, of, &resolved);
}

/* Returns what profile_sample.address holds. Sizes of objects are left out: samples of all sizes are merged. */
static uint64_t number_of(const struct duet_sample *sample)
{
	uint64_t number = attribute_number(sample, DUET_ATTRIBUTE_ADDRESS);

	if (!number)
		number = attribute_number(sample, DUET_ATTRIBUTE_AGE);
	if (!number && attribute_find(sample, DUET_ATTRIBUTE_RESOURCE))
		number = attribute_number(sample, DUET_ATTRIBUTE_SIZE);
	return number;
}

/* Returns what profile_sample.attributes holds. */
static uint32_t context_row(struct sink *sink, struct process *process, const struct duet_sample *sample)
{
	const struct duet_attribute *context = attribute_find(sample, DUET_ATTRIBUTE_CONTEXT);
	struct profile *profile = sink->of.profile;
	const struct profile_rows before = profile_rows(profile);
	uint32_t row;

	if (!context)
		return 0;
	row = owners_context(sink->of.owners, process, context + 1, context->bytes,
			     resolver_is_closed(profile, process));
	resolver_count_rows(profile, process, &before);
	return row;
}

void sink_share_clock(struct sink *sink, const struct event_list *events)
{
	const struct event_spec *clock = event_list_agent_clock(events);

	for (size_t i = 0; clock && i < events->len; i++)
		if (events->items[i].event->perf.is_clock && &events->items[i] != clock) {
			sink->clock = (uint32_t)(clock - events->items);
			sink->other_clock = (uint32_t)i;
		}
}

/* Returns 0 or -ENOMEM, or the negative `node`. */
static int add_node(struct sink *sink, const struct decision *of, uint64_t time_ns, int64_t node, uint64_t weight,
		    uint32_t count)
{
	const struct duet_sample *sample = of->sample;
	struct profile_sample added;
	uint64_t context[3]; /* as struct duet_context has it */
	int err;

	if (node < 0)
		return (int)node;
	memcpy(context, &sample->context, sizeof(context));
	added = (struct profile_sample){
		.time_ns = time_ns,
		.weight = weight,
		.thread = sample_thread(sink, of->process, of->jvm, sample),
		.node = (uint32_t)node,
		.count = count,
		.event = sample->event,
		.address = number_of(sample),
		.trace_high = be64toh(context[0]),
		.trace_low = be64toh(context[1]),
		.span = be64toh(context[2]),
		.attributes = context_row(sink, of->process, sample),
	};
	err = profile_add(sink->of.profile, &added);
	if (!err && sink->clock != sink->other_clock && sample->event == sink->clock &&
	    !(sample->flags & DUET_SAMPLE_OFF_CPU)) {
		added.event = sink->other_clock;
		err = profile_add(sink->of.profile, &added);
	}
	sink->outcomes.samples += err ? 0 : count;
	return err;
}

/* Returns for how many samples this one stands; 0: it is left out, and counted. */
static uint32_t thin(struct sink *sink)
{
	uint32_t times = thinning_take(&sink->of.profile->thinning);

	loader_counters[DUET_LOADER_LEFT_OUT] += !times;
	return times;
}

/* Adds the sample, or a part of its weight. `below`: the node of the waker's stack, or negative. 0 or -ENOMEM. */
static int add_weight(struct sink *sink, const struct decision *of, struct resolved *resolved, uint64_t weight,
		      const struct decision *waker, int64_t below)
{
	uint32_t times = thin(sink);
	int64_t node;

	if (!times)
		return 0;
	node = resolve_node(&sink->resolver, of, resolved);
	if (node >= 0 && below >= 0)
		node = append_waker(sink, of, node, waker, below);
	return add_node(sink, of, of->sample->head.time_ns, node, weight * times, times);
}

/* Returns the node of the wait `node` with a thread's name after it, or `node` if the thread is not known. */
static int64_t append_owner(struct sink *sink, const struct decision *of, int64_t node, uint32_t tid)
{
	struct profile *profile = sink->of.profile;
	uint32_t name = of->jvm ? jvm_thread_name(of->jvm, tid, of->sample->head.time_ns, "") : 0;
	const struct profile_rows before = profile_rows(profile);

	if (!name || resolver_is_closed(profile, of->process) || !resolver_has_room(of->process))
		return node;
	node = push(profile, (uint32_t)node, FRAME_WAKER, HOLDERS_SEPARATOR);
	node = push(profile, (uint32_t)node, FRAME_THREAD, intern_text(&profile->strings, name));
	resolver_count_rows(profile, of->process, &before);
	return node == UINT32_MAX ? -ENOMEM : node;
}

/* Resolves the holders' stacks. Returns the length of all parts. */
static uint64_t resolve_holders(struct sink *sink, const struct holding *parts, size_t count, int64_t *ret_nodes)
{
	uint64_t all_ns = 0;

	for (size_t i = 0; i < count; i++) {
		all_ns += parts[i].ns;
		ret_nodes[i] = parts[i].by ? node_of(sink, parts[i].by) : -1;
	}
	return all_ns;
}

/* Adds a wait for a lock: a sample for each holder's time, at its end. No part without weight. 0 or -ENOMEM. */
static int add_held(struct sink *sink, const struct decision *of, struct resolved *resolved,
		    const struct holding *parts, size_t count)
{
	uint64_t begin_ns = holders_lock(of->sample)->begin_ns, passed_ns = 0, added = 0, weight = of->sample->weight;
	uint32_t times = thin(sink);
	int64_t nodes[HOLDERS_PARTS], node;
	uint64_t all_ns = resolve_holders(sink, parts, count, nodes);
	int err = 0;

	node = times ? resolve_node(&sink->resolver, of, resolved) : -1;
	for (size_t i = 0; times && !err && i < count; i++) {
		uint64_t until;
		int64_t at = node;

		passed_ns += parts[i].ns;
		until = (uint64_t)((unsigned __int128)weight * passed_ns / all_ns);
		if (node >= 0 && nodes[i] >= 0)
			at = append_waker(sink, of, node, parts[i].by, nodes[i]);
		else if (node >= 0 && !parts[i].by)
			at = append_owner(sink, of, node, parts[i].owner);
		if (until > added)
			err = add_node(sink, of, begin_ns + passed_ns, at, (until - added) * times, times);
		added = until;
	}
	sink->outcomes.held_ns += weight;
	return err;
}

/* Adds the part of a sleep in which the thread waited for a CPU, under its own leaf. Returns 0 or -ENOMEM. */
static int add_runnable(struct sink *sink, const struct decision *of)
{
	struct decision part = *of;
	struct resolved resolved;

	part.is_runnable = true;
	resolved = resolve_stack(&sink->resolver, &part);
	return add_weight(sink, &part, &resolved, of->sample->runnable, NULL, -1);
}

static void count(struct sink *sink, const struct decision *of, const struct splice_verdict *verdict)
{
	const struct profile *profile = sink->of.profile;

	loader_counters[DUET_LOADER_WINDOW_LATE] +=
		*sink->of.windows && of->sample->head.time_ns < profile->start_ns;
	if (of->jvm && verdict->is_missing_code)
		loader_counters[process_is_ending(of->process) ? DUET_LOADER_CODE_MISSING : DUET_LOADER_CODE_LATE]++;
	if (holders_lock(of->sample))
		sink->outcomes.lock_ns += of->sample->weight;
	count_outcome(&sink->outcomes, of->sample, of->java, of->outcome, of->jvm);
	if (of->jvm)
		count_jvm_walk(&sink->outcomes, of->sample, of->outcome, verdict);
	count_losses(of->sample, of->java);
}

void sink_add(struct sink *sink, const struct decision *of, struct resolved own, const struct sink_company *with)
{
	const struct duet_sample *sample = of->sample;
	int64_t waker = with->waker ? node_of(sink, with->waker) : -1;
	int err = 0;

	loader_counters[DUET_LOADER_NO_WAKER] += sample->waker && waker < 0;
	if (with->part_count)
		err = add_held(sink, of, &own, with->parts, with->part_count);
	else if (sample->weight > sample->runnable || !sample->runnable)
		err = add_weight(sink, of, &own, sample->weight - sample->runnable, with->waker, waker);
	if (!err && sample->runnable)
		err = add_runnable(sink, of);
	loader_counters[DUET_LOADER_OUT_OF_MEMORY] += err < 0;
	count(sink, of, &own.verdict);
}

/* Names of Java's frames may not have arrived yet. */
bool sink_is_interrupt(struct sink *sink, const struct decision *of)
{
	const struct duet_sample *sample = of->sample;
	struct decision in_kernel = *of;
	struct duet_sample *copy =
		buf_duplicate(sample, sizeof(*sample) + sample->kernel_depth * sizeof(*sample->stack));
	int64_t node;

	if (!copy)
		return false;
	copy->user_depth = copy->id_depth = copy->left_out = 0;
	copy->attribute_bytes = 0;
	in_kernel.sample = copy;
	in_kernel.java = NULL;
	node = node_of(sink, &in_kernel);
	free(copy);
	return node >= 0 && is_interrupt(sink->of.profile, (uint32_t)node);
}
