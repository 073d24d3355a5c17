/* SPDX-License-Identifier: MIT */
#include "join/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/counters.h"
#include "base/text.h"
#include "duet_jvm.h"
#include "join/resource.h"
#include "join/states.h"
#include "proc/room.h"
#include "runtime/class_name.h"

#define MAX_ROWS (1u << 18) /* entries of each cache, at most 12 MB; a full cache of stacks empties both */
#define SHOWN_NUL 0x2400 /* the symbol for it: a text has no NUL */
#define PROCESS_MAX_ROWS (1u << 19) /* frames and stack nodes that one process may add to the profile */
/* In a value of the cache, above the node: enum splice_witnesses, and enum alike of the names and of the indices. */
#define WITNESSES_SHIFT 32
#define NAMES_SHIFT 40
#define BCIS_SHIFT 48
#define ESTIMATED_SHIFT 56
#define UNRECORDED_SHIFT 57
#define SLEEP_FLAGS (DUET_SAMPLE_OFF_CPU | DUET_SAMPLE_IO | DUET_SAMPLE_FAULT | DUET_SAMPLE_IDLE)
#define TOO_MANY "[too_many_stacks]"
#define EPOCH_SHIFT 35 /* 34 s, then the caches are emptied: mappings and kernel modules change without a record */

/* A stack while it is named. */
struct naming {
	struct resolver *resolver;
	struct profile *profile;
	struct splice *splice; /* the stack as addresses */
	struct resolver_rows *rows; /* its frames in the profile, root first */
	struct process *process;
	const struct jvm *jvm; /* NULL for a sample of no JVM */
	struct jvm_moment then; /* time and state of classes of the sample */
	uint16_t sleep; /* its flags that are about a sleep */
	bool is_called; /* it was taken where Java code called the agent */
	bool is_runnable; /* see struct decision */
	uint32_t cpu, policy; /* as the sample has them; 0: the stack has no such frame */
	/* class of the object that the sample is about, which becomes the leaf; or NULL */
	const struct duet_attribute *object_class;
	const struct duet_attribute *resource; /* what its I/O is about, which becomes the leaf; or NULL */
	const struct duet_attribute *spent_on; /* what its time was spent on, which becomes the leaf; or NULL */
	/* what the program has reported, which is the whole stack: the tag of a span, or an event; or NULL */
	const struct duet_attribute *span;
	const struct duet_attribute *compiling; /* the method that its thread compiles; or NULL */
	bool is_closed; /* nothing new is added to the profile, because it is full */
	bool is_final; /* no name in it can change, so it may be cached */
	uint64_t names_missing; /* Java frames that stay without a name */
};

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

uint64_t *resolver_rows(struct process *process)
{
	return process_state(process, PROCESS_OF_JOIN);
}

bool resolver_has_room(struct process *process)
{
	return *resolver_rows(process) < PROCESS_MAX_ROWS;
}

/*
 * Its user may add rows while a third of those that he has is left for others, and a ninth of the bytes if he has all:
 * others have their rows even when the limit falls a bit, because other memory has grown.
 */
bool resolver_is_closed(const struct profile *profile, const struct process *process)
{
	const struct payer *payer = &process->payer;
	struct profile_rows reserve = {room_reserve(ROOM_NODES, payer), room_reserve(ROOM_FRAMES, payer),
				       room_reserve(ROOM_THREADS, payer), room_reserve(ROOM_TEXTS, payer)};

	if (reserve.nodes)
		reserve.text_bytes += profile->max_bytes / profile->nodes.len * reserve.nodes / 3;
	return profile_is_full(profile, &reserve);
}

void resolver_count_rows(const struct profile *profile, struct process *process, const struct profile_rows *before)
{
	const struct profile_rows now = profile_rows(profile);

	*resolver_rows(process) += now.nodes - before->nodes + now.frames - before->frames;
	room_add(ROOM_NODES, &process->payer, now.nodes - before->nodes);
	room_add(ROOM_FRAMES, &process->payer, now.frames - before->frames);
	room_add(ROOM_THREADS, &process->payer, now.threads - before->threads);
	room_add(ROOM_TEXTS, &process->payer, now.text_bytes - before->text_bytes);
}

/* Returns the id of a string, or 0 if it is new and the profile is closed. */
static uint32_t string_row(struct naming *n, const char *text)
{
	return n->is_closed ? intern_known(&n->profile->strings, text) : intern_str(&n->profile->strings, text);
}

static void resolve_symbol(struct naming *n, const struct splice_frame *from, struct frame *frame)
{
	struct symbols *symbols = n->resolver->symbols;
	struct symbol symbol;

	if (from->kind == SPLICE_KERNEL) {
		symbols_kernel(symbols, from->address, from->is_return, &symbol);
		frame->kind = FRAME_KERNEL;
	} else {
		symbols_user(symbols, n->process, from->address, from->is_return, &symbol);
		frame->kind = duet_is_libjvm(symbol.module) ? FRAME_JVM : FRAME_NATIVE;
	}
	frame->name = string_row(n, symbol.name);
	frame->module = string_row(n, symbol.module);
	if (n->resolver->options->offsets)
		frame->bci = symbol.offset;
	n->is_final &= !symbol.is_guess;
}

static struct duet_want method_want(const struct naming *n, const struct splice_frame *from)
{
	return (struct duet_want){
		.key = from->method,
		.id = from->check,
		.kind = DUET_WANT_METHOD,
		.unloads = from->method & DUET_METHOD_BARE ? (uint32_t)n->then.unloads : 0,
	};
}

static void resolve_nameless(struct naming *n, const struct splice_frame *from, struct frame *frame)
{
	const struct duet_want want = method_want(n, from);
	bool is_gone = jvm_is_gone(n->jvm, &want, n->then);

	n->names_missing += !is_gone;
	n->is_final = false;
	frame->name = intern_str(&n->profile->strings, is_gone ? "[unloaded_class]" : "[unknown_method]");
}

static void resolve_java(struct naming *n, const struct splice_frame *from, struct frame *frame)
{
	static const enum frame_kind kinds[] = {
		[SPLICE_COMPILED] = FRAME_COMPILED,
		[SPLICE_INLINED] = FRAME_INLINED,
		[SPLICE_INTERPRETED] = FRAME_INTERPRETED,
		[SPLICE_JAVA_NATIVE] = FRAME_JAVA_NATIVE,
	};
	const struct jvm_method *method = jvm_method(n->jvm, from->method, n->then);

	frame->kind = kinds[from->kind];
	frame->bci = from->is_interpreted ? FRAME_BCI_INTERPRETED : from->bci;
	if (!method || !jvm_method_is(method, from->check)) /* it may be another with the same key */
		return resolve_nameless(n, from, frame);
	frame->class_name = method->class_name;
	frame->name = method->name;
	frame->signature = method->signature;
	frame->module = method->source;
	frame->line = jvm_method_line(method, from->bci);
}

static void resolve_text(struct naming *n, const struct splice_frame *from, struct frame *frame)
{
	if (from->kind == SPLICE_MARK || from->kind == SPLICE_STATE) {
		frame->kind = from->kind == SPLICE_MARK ? FRAME_MARK : FRAME_STATE;
		frame->name = intern_str(&n->profile->strings, from->mark);
		return;
	}
	frame->kind = FRAME_JVM;
	frame->name = from->text ? from->text : intern_str(&n->profile->strings, "[stub]");
}

/* Returns the index of a frame, or UINT32_MAX when out of memory, or if it is new and the profile is closed. */
static uint32_t frame_row(struct naming *n, const struct frame *frame)
{
	return n->is_closed ? profile_known_frame(n->profile, frame) : profile_frame(n->profile, frame);
}

/* Many stacks share callers: the cache lets each address be looked up, and its name demangled, once. */
static uint32_t resolve_address(struct naming *n, const struct splice_frame *from)
{
	const uint64_t about[] = {(uintptr_t)n->process, n->process->maps_version, from->address,
				  (uint64_t)from->kind << 1 | from->is_return};
	uint64_t key = hash_bytes(about, sizeof(about), n->resolver->seed), known;
	struct frame frame = {.bci = -1};
	bool was_final = n->is_final;
	uint32_t id;

	if (map_get(&n->resolver->addresses, key, &known))
		return (uint32_t)known;
	n->is_final = true;
	resolve_symbol(n, from, &frame);
	id = frame_row(n, &frame);
	if (n->is_final && id != UINT32_MAX && n->resolver->addresses.len < MAX_ROWS)
		(void)map_put(&n->resolver->addresses, key, id); /* out of memory: looked up again next time */
	n->is_final &= was_final;
	return id;
}

static uint32_t resolve_frame(struct naming *n, const struct splice_frame *from)
{
	struct frame frame = {.bci = -1};

	if (from->kind == SPLICE_KERNEL || from->kind == SPLICE_NATIVE)
		return resolve_address(n, from);
	if (splice_is_java(from->kind))
		resolve_java(n, from, &frame);
	else
		resolve_text(n, from, &frame);
	return frame_row(n, &frame);
}

/* Lists the code and the methods to ask the agent for. Method 0, unknown to AsyncGetCallTrace, has no name. */
static void list_wants(struct naming *n)
{
	for (size_t i = 0; i < n->splice->wants.len; i++)
		(void)vec_push(&n->resolver->wants, n->splice->wants.items[i]);
	for (size_t i = 0; i < n->splice->frames.len; i++) {
		const struct splice_frame *frame = &n->splice->frames.items[i];
		const struct duet_want want = method_want(n, frame);

		if (splice_is_java(frame->kind) && frame->method && jvm_lacks(n->jvm, &want, n->then))
			(void)vec_push(&n->resolver->wants, want);
	}
}

/* Returns the index of the frame for object_class, as frame_row() does. */
static uint32_t class_row(struct naming *n)
{
	bool is_outside = n->object_class->about == DUET_CLASS_OUTSIDE;
	struct frame frame = {.kind = FRAME_CLASS, .bci = is_outside ? FRAME_BCI_OUTSIDE : -1};
	BUF(name);

	class_name_add(&name, (const char *)(n->object_class + 1), n->object_class->bytes);
	frame.name = string_row(n, name.data);
	return frame_row(n, &frame);
}

static int push_named(struct naming *n, enum frame_kind kind, const char *name)
{
	const struct frame frame = {.kind = kind, .bci = -1, .name = string_row(n, name)};

	return vec_push(n->rows, frame_row(n, &frame));
}

/* An event of the program's own: its type, and in it its data, which may be any bytes and is shown as Latin-1. */
static int push_user_event(struct naming *n)
{
	const char *type = (const char *)(n->span + 1), *end = type + n->span->bytes;
	BUF(data);
	int err;

	buf_add_str(&data, type);
	err = push_named(n, FRAME_SPAN, data.data);
	buf_clear(&data);
	for (const char *at = type + strlen(type) + 1; at < end; at++)
		text_add_utf8(&data, *at ? (unsigned char)*at : SHOWN_NUL);
	return err ? err : push_named(n, FRAME_SPAN, data.data);
}

/* The tag is the program's own text. A span without one has a frame without a name. */
static int push_span(struct naming *n)
{
	BUF(tag);

	if (n->span->type == DUET_ATTRIBUTE_USER)
		return push_user_event(n);
	buf_add(&tag, n->span + 1, n->span->bytes);
	if (tag.len)
		buf_cut(&tag, text_join_surrogates(tag.data, tag.len));
	return push_named(n, FRAME_SPAN, tag.data);
}

/* Pushes the text as a frame, unless it is empty, and empties it. */
static int push_state_text(struct naming *n, struct buf *text)
{
	int err = text->failed ? -ENOMEM : text->len ? push_named(n, FRAME_STATE, text->data) : 0;

	buf_clear(text);
	return err;
}

/* The function of the kernel in which a thread sleeps, as an agent reports it: its name, without an address. */
static int push_kernel_function(struct naming *n)
{
	BUF(name);

	buf_add(&name, n->spent_on + 1, n->spent_on->bytes);
	return name.failed ? -ENOMEM : push_named(n, FRAME_KERNEL, name.data);
}

/* What an attribute tells: the request and the file of an I/O, or what time was spent on. */
static int push_detail_frames(struct naming *n)
{
	BUF(text);
	int err = 0;

	if (n->resource) {
		resource_request(n->resource, &text);
		err = push_state_text(n, &text);
		resource_name(n->resource, &text);
	} else {
		buf_printf(&text, "[%.*s]", (int)n->spent_on->bytes, (const char *)(n->spent_on + 1));
	}
	return err ? err : push_state_text(n, &text);
}

/* The numbers of sched.h: an agent may send others. */
static const char *policy_name(uint32_t policy)
{
	static const char *const names[] = {"[SCHED_OTHER]", "[SCHED_FIFO]", "[SCHED_RR]",	 "[SCHED_BATCH]",
					    "[SCHED_ISO]",   "[SCHED_IDLE]", "[SCHED_DEADLINE]", "[SCHED_EXT]"};

	return policy < sizeof(names) / sizeof(*names) ? names[policy] : "[unknown_policy]";
}

/* The outermost frames. */
static int push_roots(struct naming *n)
{
	char cpu[32];

	if (n->cpu) {
		snprintf(cpu, sizeof(cpu), "[CPU-%u]", n->cpu - 1);
		if (push_named(n, FRAME_CPU, cpu) < 0)
			return -ENOMEM;
	}
	return n->policy ? push_named(n, FRAME_CPU, policy_name(n->policy - 1)) : 0;
}

/* Replaces the tracing's frames by what was waited for. A wait for work gets the root STATE_IDLE. 0 or -ENOMEM. */
static int push_state(struct naming *n)
{
	uint32_t *rows, idle;
	const char *state;

	n->rows->len = state_trim(n->profile, n->rows->items, n->rows->len);
	state = state_of(n->profile, n->rows->items, n->rows->len, n->sleep);
	if (n->is_runnable)
		return push_named(n, FRAME_STATE, STATE_RUNNABLE);
	if (!(n->sleep & DUET_SAMPLE_IDLE) && idle_in_pool(n->profile, n->rows->items, n->rows->len, state)) {
		if (push_named(n, FRAME_STATE, STATE_IDLE) < 0)
			return -ENOMEM;
		rows = n->rows->items;
		idle = rows[n->rows->len - 1];
		memmove(rows + 1, rows, (n->rows->len - 1) * sizeof(*rows));
		rows[0] = idle;
	}
	return push_named(n, FRAME_STATE, state);
}

static bool is_one_mark(const struct splice *splice)
{
	return splice->frames.len == 1 && splice->frames.items[0].kind == SPLICE_MARK;
}

/* Returns the method of a Java frame; NULL for other frames, or if it is not known. */
static const struct jvm_method *known_method(const struct naming *n, const struct splice_frame *frame)
{
	return splice_is_java(frame->kind) ? jvm_method(n->jvm, frame->method, n->then) : NULL;
}

/* Returns true for a frame of the class that instrumented methods call. */
static bool is_helper(const struct naming *n, const struct splice_frame *frame)
{
	static const char helper[] = "java.lang.DuetProbe";
	const struct jvm_method *method = known_method(n, frame);

	return method &&
	       !strncmp(intern_text(&n->profile->strings, method->class_name), helper, strlen(helper));
}

/* Returns the first frame after the constructors of the sample's object, which end with that of its class. */
static size_t first_after_constructors(const struct naming *n, size_t first)
{
	size_t after = first;
	const struct jvm_method *method;
	uint32_t wanted;
	BUF(name);

	class_name_add(&name, (const char *)(n->object_class + 1), n->object_class->bytes);
	wanted = intern_known(&n->profile->strings, name.data);
	for (; first < n->splice->frames.len; first++) {
		method = known_method(n, &n->splice->frames.items[first]);
		if (!method || strcmp(intern_text(&n->profile->strings, method->name), "<init>") != 0)
			break;
		if (method->class_name == wanted)
			after = first + 1;
	}
	return after;
}

/* Returns the first frame of the application. A sample without frames has no mark if it has something else. */
static size_t first_frame(const struct naming *n)
{
	size_t first = 0;

	if (n->spent_on && is_one_mark(n->splice))
		return 1;
	while (first < n->splice->frames.len && is_helper(n, &n->splice->frames.items[first]))
		first++;
	if (first && first == n->splice->frames.len) /* it is what the JVM compiles */
		return first - 1;
	return first && n->object_class ? first_after_constructors(n, first) : first;
}

/* Returns the node of the spliced stack, or UINT32_MAX as frame_row() does. */
static uint32_t stack_row(struct naming *n)
{
	size_t first = n->is_called ? first_frame(n) : 0;

	vec_clear(n->rows);
	if (push_roots(n) < 0)
		return UINT32_MAX;
	if (n->sleep & DUET_SAMPLE_IDLE && push_named(n, FRAME_STATE, STATE_IDLE) < 0)
		return UINT32_MAX;
	if (n->span && push_span(n) < 0)
		return UINT32_MAX;
	for (size_t i = n->splice->frames.len; !n->span && i-- > first;) {
		uint32_t id = resolve_frame(n, &n->splice->frames.items[i]);

		if (id == UINT32_MAX || vec_push(n->rows, id) < 0)
			return UINT32_MAX;
	}
	if (n->object_class && vec_push(n->rows, class_row(n)) < 0)
		return UINT32_MAX;
	if (n->sleep & DUET_SAMPLE_OFF_CPU && n->spent_on) {
		if (push_kernel_function(n) < 0)
			return UINT32_MAX;
	} else if ((n->resource || n->spent_on) && push_detail_frames(n) < 0) {
		return UINT32_MAX;
	}
	if (n->sleep & DUET_SAMPLE_OFF_CPU && push_state(n) < 0)
		return UINT32_MAX;
	return n->is_closed ? profile_known_stack(n->profile, n->rows->items, (uint32_t)n->rows->len)
			    : profile_stack(n->profile, n->rows->items, (uint32_t)n->rows->len);
}

/* Returns the profile's node of the stack, or -ENOMEM, also if it is new and the profile is closed. */
static int64_t name_stack(struct naming *n)
{
	const struct profile_rows before = profile_rows(n->profile);
	uint32_t node = stack_row(n);

	n->resolver->kept += n->profile->nodes.len != before.nodes;
	resolver_count_rows(n->profile, n->process, &before);
	return node == UINT32_MAX ? -ENOMEM : (int64_t)node;
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
	if (n->compiling)
		key = hash_bytes(n->compiling, sizeof(*n->compiling) + sizeof(uint64_t), key);
	return key;
}

/* Replaces the stack by a mark, without class, file and state: a process can invent any number of them. */
static int mark_too_many(struct naming *n)
{
	n->object_class = n->resource = n->spent_on = n->span = NULL;
	return splice_mark(n->splice, TOO_MANY);
}

static void count_refused(struct naming *n, uint64_t key)
{
	if (!profile_is_full(n->profile, &(struct profile_rows){0}))
		return room_refuse(ROOM_NODES, &n->process->payer);
	loader_counters[DUET_LOADER_MEMORY_FULL]++;
	distinct_add(&n->resolver->refused, key);
}

/* Names the stack. If the profile is full and does not have the stack yet, the stack becomes a single mark. */
static int64_t name_bounded(struct naming *n, uint64_t key)
{
	bool has_ended;
	int64_t node;
	int err;

	n->is_closed = resolver_is_closed(n->profile, n->process) && !is_one_mark(n->splice);
	node = name_stack(n);
	if (node >= 0 || !n->is_closed) {
		has_ended = n->names_missing && process_is_ending(n->process);
		loader_counters[has_ended ? DUET_LOADER_NAME_MISSING : DUET_LOADER_NAME_LATE] += n->names_missing;
		return node;
	}
	count_refused(n, key);
	n->is_closed = n->is_final = false; /* not cached: there may be room later */
	err = mark_too_many(n);
	return err < 0 ? err : name_stack(n);
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
	if (r->stacks.len < MAX_ROWS && time_ns >> EPOCH_SHIFT <= r->epoch)
		return;
	resolver_forget(r);
	r->epoch = time_ns >> EPOCH_SHIFT;
}

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
		.compiling = attribute_find(sample, DUET_ATTRIBUTE_COMPILING),
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
			      (uint64_t)verdict->is_estimated << ESTIMATED_SHIFT |
			      (uint64_t)verdict->is_unrecorded << UNRECORDED_SHIFT);
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
		.is_estimated = known >> ESTIMATED_SHIFT & 1,
		.is_unrecorded = known >> UNRECORDED_SHIFT & 1,
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
	if (!err && n->compiling && n->jvm && !resolved->is_refused)
		err = splice_add_compiled(n->splice, r->symbols, n->process, n->compiling);
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
		list_wants(&n);
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
