/* SPDX-License-Identifier: MIT */
#include "join/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/counters.h"
#include "base/text.h"
#include "join/attributes.h"
#include "join/idle.h"
#include "join/resource.h"
#include "join/states.h"
#include "runtime/class_name.h"

#define MAX_STACKS (1u << 18) /* entries of each cache, at most 12 MB; a full cache of stacks empties both */
#define PROCESS_MAX_ROWS (1u << 19) /* frames and stack nodes that one process may add to the profile */
/* In a value of the cache, above the node: enum splice_witnesses, and enum alike of the names and of the indices. */
#define WITNESSES_SHIFT 32
#define NAMES_SHIFT 40
#define BCIS_SHIFT 48
#define ESTIMATED_SHIFT 56
#define NODE_UNKNOWN INT64_MAX
#define SLEEP_FLAGS (DUET_SAMPLE_OFF_CPU | DUET_SAMPLE_IO | DUET_SAMPLE_FAULT | DUET_SAMPLE_IDLE)
#define SHOWN_NUL "\xe2\x90\x80" /* U+2400, the symbol for it */
#define TOO_MANY "[too_many_stacks]"
#define EPOCH_SHIFT 35 /* 34 s, then the caches are emptied: mappings and kernel modules change without a record */

void resolver_init(struct resolver *resolver, struct profile *profile, struct symbols *symbols)
{
	*resolver = (struct resolver){.profile = profile, .symbols = symbols};
	if (getrandom(&resolver->seed, sizeof(resolver->seed), GRND_NONBLOCK) < 0)
		/* early at boot there may be no randomness; the seed is then as random as the address */
		resolver->seed = (uintptr_t)resolver;
}

void resolver_release(struct resolver *resolver)
{
	if (!resolver)
		return;
	splice_release(&resolver->splice);
	vec_release(&resolver->frames);
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

/* ---- one frame ---- */

/* Returns the id of a string, or 0 if it is new and the profile is closed. */
static uint32_t string_row(struct resolver *r, const char *text)
{
	return r->is_closed ? intern_known(&r->profile->strings, text) : intern_str(&r->profile->strings, text);
}

static void resolve_symbol(struct resolver *r, const struct symbol *symbol, struct frame *frame)
{
	frame->name = string_row(r, symbol->name);
	frame->module = string_row(r, symbol->module);
	if (r->tells_offsets)
		frame->bci = symbol->offset;
}

static void resolve_native(struct resolver *r, struct process *process, const struct splice_frame *from,
			   struct frame *frame)
{
	struct symbol symbol;

	symbols_user(r->symbols, process, from->address, from->is_return, &symbol);
	resolve_symbol(r, &symbol, frame);
	r->is_final &= !symbol.is_guess;
	frame->kind = strcmp(symbol.module, "libjvm.so") ? FRAME_NATIVE : FRAME_JVM;
}

static void resolve_kernel(struct resolver *r, const struct splice_frame *from, struct frame *frame)
{
	struct symbol symbol;

	symbols_kernel(r->symbols, from->address, from->is_return, &symbol);
	resolve_symbol(r, &symbol, frame);
	frame->kind = FRAME_KERNEL;
}

static struct duet_want method_want(const struct resolver *r, const struct splice_frame *from)
{
	return (struct duet_want){
		.key = from->method,
		.id = from->check,
		.kind = DUET_WANT_METHOD,
		.unloads = from->method & DUET_METHOD_BARE ? (uint32_t)r->then.unloads : 0,
	};
}

/* Returns NULL when the method is not known, or when the one that is known is another with the same key. */
static const struct jvm_method *find_method(const struct resolver *r, const struct jvm *jvm,
					    const struct splice_frame *from)
{
	const struct jvm_method *method = jvm_method(jvm, from->method, r->then);

	return method && from->check && method->check && from->check != method->check ? NULL : method;
}

static void resolve_nameless(struct resolver *r, const struct jvm *jvm, const struct splice_frame *from,
			     struct frame *frame)
{
	const struct duet_want want = method_want(r, from);
	bool is_gone = jvm_is_gone(jvm, &want, r->then);

	r->names_missing += !is_gone;
	r->is_final = false;
	frame->name = intern_str(&r->profile->strings, is_gone ? "[unloaded_class]" : "[unknown_method]");
}

static void resolve_java(struct resolver *r, const struct jvm *jvm, const struct splice_frame *from,
			 struct frame *frame)
{
	static const enum frame_kind kinds[] = {
		[SPLICE_COMPILED] = FRAME_COMPILED,
		[SPLICE_INLINED] = FRAME_INLINED,
		[SPLICE_INTERPRETED] = FRAME_INTERPRETED,
		[SPLICE_JAVA_NATIVE] = FRAME_JAVA_NATIVE,
	};
	const struct jvm_method *method = find_method(r, jvm, from);

	frame->kind = kinds[from->kind];
	frame->bci = from->is_interpreted ? FRAME_BCI_INTERPRETED : from->bci;
	if (!method)
		return resolve_nameless(r, jvm, from, frame);
	frame->class_name = method->class_name;
	frame->name = method->name;
	frame->signature = method->signature;
	frame->module = method->source;
	frame->line = jvm_method_line(method, from->bci);
}

static void resolve_text(struct resolver *r, const struct splice_frame *from, struct frame *frame)
{
	if (from->kind == SPLICE_MARK || from->kind == SPLICE_STATE) {
		frame->kind = from->kind == SPLICE_MARK ? FRAME_MARK : FRAME_STATE;
		frame->name = intern_str(&r->profile->strings, from->mark);
		return;
	}
	frame->kind = FRAME_JVM;
	frame->name = from->text ? from->text : intern_str(&r->profile->strings, "[stub]");
}

/* Returns the index of a frame, or UINT32_MAX when out of memory, or if it is new and the profile is closed. */
static uint32_t frame_row(struct resolver *r, const struct frame *frame)
{
	return r->is_closed ? profile_known_frame(r->profile, frame) : profile_frame(r->profile, frame);
}

/* Many stacks share callers: the cache lets each address be looked up, and its name demangled, once. */
static uint32_t resolve_address(struct resolver *r, struct process *process, const struct splice_frame *from)
{
	const uint64_t about[] = {(uintptr_t)process, process->maps_version, from->address,
				  (uint64_t)from->kind << 1 | from->is_return};
	uint64_t key = hash_bytes(about, sizeof(about), r->seed), known;
	struct frame frame = {.bci = -1};
	bool was_final = r->is_final;
	uint32_t id;

	if (map_get(&r->addresses, key, &known))
		return (uint32_t)known;
	r->is_final = true;
	if (from->kind == SPLICE_KERNEL)
		resolve_kernel(r, from, &frame);
	else
		resolve_native(r, process, from, &frame);
	id = frame_row(r, &frame);
	if (r->is_final && id != UINT32_MAX && r->addresses.len < MAX_STACKS)
		(void)map_put(&r->addresses, key, id); /* out of memory: looked up again next time */
	r->is_final &= was_final;
	return id;
}

static uint32_t resolve_frame(struct resolver *r, struct process *process, const struct jvm *jvm,
			      const struct splice_frame *from)
{
	struct frame frame = {.bci = -1};

	if (from->kind == SPLICE_KERNEL || from->kind == SPLICE_NATIVE)
		return resolve_address(r, process, from);
	if (splice_is_java(from->kind))
		resolve_java(r, jvm, from, &frame);
	else
		resolve_text(r, from, &frame);
	return frame_row(r, &frame);
}

/* ---- the whole stack ---- */

/*
 * Lists the code and the methods to ask the agent for. Method 0 has no name: AsyncGetCallTrace could not identify it.
 */
static void list_wants(struct resolver *r, const struct jvm *jvm)
{
	for (size_t i = 0; i < r->splice.wants.len; i++)
		(void)vec_push(&r->wants, r->splice.wants.items[i]);
	for (size_t i = 0; i < r->splice.frames.len; i++) {
		const struct splice_frame *frame = &r->splice.frames.items[i];
		const struct duet_want want = method_want(r, frame);

		if (splice_is_java(frame->kind) && frame->method && !find_method(r, jvm, frame) &&
		    !jvm_is_gone(jvm, &want, r->then))
			(void)vec_push(&r->wants, want);
	}
}

/* Returns the index of the frame for object_class, as frame_row() does. */
static uint32_t class_row(struct resolver *r)
{
	bool is_outside = r->object_class->about == DUET_CLASS_OUTSIDE;
	struct frame frame = {.kind = FRAME_CLASS, .bci = is_outside ? FRAME_BCI_OUTSIDE : -1};
	struct buf name;

	buf_init(&name);
	class_name_add(&name, (const char *)(r->object_class + 1), r->object_class->bytes);
	frame.name = string_row(r, name.data);
	buf_release(&name);
	return frame_row(r, &frame);
}

static int push_text(struct resolver *r, const struct buf *text)
{
	struct frame frame = {.kind = FRAME_SPAN, .bci = -1};

	if (text->len)
		frame.name = string_row(r, text->data);
	return vec_push(&r->frames, frame_row(r, &frame));
}

/* The character of this number below 256, in UTF-8. A text has no NUL. */
static void add_latin1(struct buf *out, unsigned char byte)
{
	if (!byte) {
		buf_add_str(out, SHOWN_NUL);
	} else if (byte < 0x80) {
		buf_add_char(out, (char)byte);
	} else {
		buf_add_char(out, (char)(0xc0 | byte >> 6));
		buf_add_char(out, (char)(0x80 | (byte & 0x3f)));
	}
}

/* An event of the program's own: its type, and in it its data, which may be any bytes and is shown as Latin-1. */
static int push_user_event(struct resolver *r)
{
	const char *type = (const char *)(r->span + 1), *end = type + r->span->bytes;
	struct buf data;
	int err;

	buf_init(&data);
	buf_add_str(&data, type);
	err = push_text(r, &data);
	buf_clear(&data);
	for (const char *at = type + strlen(type) + 1; at < end; at++)
		add_latin1(&data, (unsigned char)*at);
	if (!err)
		err = push_text(r, &data);
	buf_release(&data);
	return err;
}

/* The tag is the program's own text. A span without one has a frame without a name. */
static int push_span(struct resolver *r)
{
	struct buf tag;
	int err;

	if (r->span->type == DUET_ATTRIBUTE_USER)
		return push_user_event(r);
	buf_init(&tag);
	buf_add(&tag, r->span + 1, r->span->bytes);
	if (tag.len)
		buf_cut(&tag, text_join_surrogates(tag.data, tag.len));
	err = push_text(r, &tag);
	buf_release(&tag);
	return err;
}

static int push_state_frame(struct resolver *r, const char *state)
{
	const struct frame frame = {.kind = FRAME_STATE, .bci = -1, .name = string_row(r, state)};

	return vec_push(&r->frames, frame_row(r, &frame));
}

/* Pushes the text as a frame, unless it is empty, and empties it. */
static int push_state_text(struct resolver *r, struct buf *text)
{
	int err = text->failed ? -ENOMEM : text->len ? push_state_frame(r, text->data) : 0;

	buf_clear(text);
	return err;
}

/* What an attribute tells: the request and the file of an I/O, or what time was spent on. */
static int push_told(struct resolver *r)
{
	struct buf text;
	int err = 0;

	buf_init(&text);
	if (r->resource) {
		resource_request(r->resource, &text);
		err = push_state_text(r, &text);
		resource_name(r->resource, &text);
	} else {
		buf_printf(&text, "[%.*s]", (int)r->spent_on->bytes, (const char *)(r->spent_on + 1));
	}
	if (!err)
		err = push_state_text(r, &text);
	buf_release(&text);
	return err;
}

static int push_root(struct resolver *r, const char *name)
{
	const struct frame frame = {.kind = FRAME_CPU, .bci = -1, .name = string_row(r, name)};

	return vec_push(&r->frames, frame_row(r, &frame));
}

/* The numbers of sched.h: an agent may send others. */
static const char *policy_name(uint32_t policy)
{
	static const char *const names[] = {"[SCHED_OTHER]", "[SCHED_FIFO]", "[SCHED_RR]",	 "[SCHED_BATCH]",
					    "[SCHED_ISO]",   "[SCHED_IDLE]", "[SCHED_DEADLINE]", "[SCHED_EXT]"};

	return policy < sizeof(names) / sizeof(*names) ? names[policy] : "[unknown_policy]";
}

/* The outermost frames. */
static int push_roots(struct resolver *r)
{
	char cpu[32];

	if (r->cpu) {
		snprintf(cpu, sizeof(cpu), "[CPU-%u]", r->cpu - 1);
		if (push_root(r, cpu) < 0)
			return -ENOMEM;
	}
	return r->policy ? push_root(r, policy_name(r->policy - 1)) : 0;
}

/* Makes the last of the frames the root. */
static void move_to_root(struct resolver *r)
{
	uint32_t last = r->frames.items[r->frames.len - 1];

	memmove(r->frames.items + 1, r->frames.items, (r->frames.len - 1) * sizeof(*r->frames.items));
	r->frames.items[0] = last;
}

/*
 * Replaces the frames of the tracing by what the thread waited for, as the leaf. A wait for work gets the root
 * STATE_IDLE. 0 or -ENOMEM.
 */
static int push_state(struct resolver *r)
{
	const char *state;

	r->frames.len = state_trim(r->profile, r->frames.items, r->frames.len);
	state = state_of(r->profile, r->frames.items, r->frames.len, r->sleep);
	if (r->is_runnable)
		return push_state_frame(r, STATE_RUNNABLE);
	if (!(r->sleep & DUET_SAMPLE_IDLE) && idle_in_pool(r->profile, r->frames.items, r->frames.len, state)) {
		if (push_state_frame(r, STATE_IDLE) < 0)
			return -ENOMEM;
		move_to_root(r);
	}
	return push_state_frame(r, state);
}

static bool is_one_mark(const struct splice *splice)
{
	return splice->frames.len == 1 && splice->frames.items[0].kind == SPLICE_MARK;
}

/* Returns true for a frame of the class that instrumented methods call. */
static bool is_helper(const struct resolver *r, const struct jvm *jvm, const struct splice_frame *frame)
{
	static const char helper[] = "java.lang.DuetProbe";
	const struct jvm_method *method = splice_is_java(frame->kind) ? jvm_method(jvm, frame->method, r->then) : NULL;

	return method &&
	       !strncmp(intern_text(&r->profile->strings, method->class_name), helper, strlen(helper));
}

/* Returns the name of the class of a constructor's frame; 0 for other frames. */
static uint32_t constructed_class(const struct resolver *r, const struct jvm *jvm, const struct splice_frame *frame)
{
	const struct jvm_method *method = splice_is_java(frame->kind) ? jvm_method(jvm, frame->method, r->then) : NULL;

	return method && !strcmp(intern_text(&r->profile->strings, method->name), "<init>") ? method->class_name : 0;
}

/*
 * Returns the index of the first frame behind the constructors of the object that the sample is about, which call each
 * other, the one of its class last.
 */
static size_t behind_constructors(const struct resolver *r, const struct jvm *jvm, size_t first)
{
	size_t behind = first;
	uint32_t wanted, class;
	struct buf name;

	buf_init(&name);
	class_name_add(&name, (const char *)(r->object_class + 1), r->object_class->bytes);
	wanted = intern_known(&r->profile->strings, name.data);
	for (; first < r->splice.frames.len; first++) {
		class = constructed_class(r, jvm, &r->splice.frames.items[first]);
		if (!class)
			break;
		if (class == wanted)
			behind = first + 1;
	}
	buf_release(&name);
	return behind;
}

/*
 * Returns the index of the first frame that is the application's. The mark of a sample without frames is none, if the
 * sample has something else.
 */
static size_t first_frame(const struct resolver *r, const struct jvm *jvm)
{
	size_t first = 0;

	if (r->spent_on && is_one_mark(&r->splice))
		return 1;
	while (first < r->splice.frames.len && is_helper(r, jvm, &r->splice.frames.items[first]))
		first++;
	if (first && first == r->splice.frames.len) /* it is what the JVM compiles */
		return first - 1;
	return first && r->object_class ? behind_constructors(r, jvm, first) : first;
}

/* Returns the node of the spliced stack, or UINT32_MAX as frame_row() does. */
static uint32_t stack_row(struct resolver *r, struct process *process, const struct jvm *jvm)
{
	size_t first = r->is_called ? first_frame(r, jvm) : 0;

	vec_clear(&r->frames);
	if (push_roots(r) < 0)
		return UINT32_MAX;
	if (r->sleep & DUET_SAMPLE_IDLE && push_state_frame(r, STATE_IDLE) < 0)
		return UINT32_MAX;
	if (r->span && push_span(r) < 0)
		return UINT32_MAX;
	for (size_t i = r->splice.frames.len; !r->span && i-- > first;) {
		uint32_t id = resolve_frame(r, process, jvm, &r->splice.frames.items[i]);

		if (id == UINT32_MAX || vec_push(&r->frames, id) < 0)
			return UINT32_MAX;
	}
	if (r->object_class && vec_push(&r->frames, class_row(r)) < 0)
		return UINT32_MAX;
	if ((r->resource || r->spent_on) && push_told(r) < 0)
		return UINT32_MAX;
	if (r->sleep & DUET_SAMPLE_OFF_CPU && push_state(r) < 0)
		return UINT32_MAX;
	return r->is_closed ? profile_known_stack(r->profile, r->frames.items, (uint32_t)r->frames.len)
			    : profile_stack(r->profile, r->frames.items, (uint32_t)r->frames.len);
}

static int64_t name_stack(struct resolver *r, struct process *process, const struct jvm *jvm)
{
	size_t rows = r->profile->frames.len + r->profile->nodes.len;
	uint32_t node = stack_row(r, process, jvm);

	rows = r->profile->frames.len + r->profile->nodes.len - rows;
	resolver_count(process, rows);
	r->kept += rows != 0;
	return node == UINT32_MAX ? -ENOMEM : (int64_t)node;
}

/* Hashes everything that the result of splice_stack() and the names depend on. */
static uint64_t stack_key(const struct resolver *r, const struct decision *decision)
{
	const struct duet_sample *sample = decision->sample;
	const struct duet_java_sample *java = decision->java;
	uint64_t about[] = {
		(uintptr_t)decision->process,
		decision->process->maps_version,
		(uintptr_t)decision->jvm,
		decision->jvm ? jvm_changed_ns(decision->jvm) : 0,
		decision->outcome,
		sample->flags & (DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_CALLED | SLEEP_FLAGS),
		r->sleep & DUET_SAMPLE_OFF_CPU && r->is_runnable,
		(uint64_t)sample->walk_end << 1 | (sample->left_out != 0),
		(uint64_t)sample->kernel_depth << 32 | (uint64_t)sample->user_depth << 16 | sample->no_signal,
		java ? (uint64_t)java->java_depth << 32 | java->flags : 0,
		java ? (uint64_t)(uint32_t)java->status : 0,
		(uint64_t)r->cpu << 32 | r->policy,
	};
	uint64_t key = hash_bytes(about, sizeof(about), r->seed);

	key = hash_bytes(sample->stack,
			 (sample->kernel_depth + sample->user_depth) * sizeof(uint64_t) +
				 sample->id_depth * sizeof(uint32_t),
			 key);
	if (java)
		key = hash_bytes(java + 1, java->java_depth * sizeof(struct duet_java_frame), key);
	if (r->object_class)
		key = hash_bytes(r->object_class + 1, r->object_class->bytes, key ^ r->object_class->about);
	if (r->resource)
		key = hash_bytes(r->resource + 1, r->resource->bytes, key);
	if (r->spent_on)
		key = hash_bytes(r->spent_on + 1, r->spent_on->bytes, key);
	if (r->span)
		key = hash_bytes(r->span, sizeof(*r->span) + r->span->bytes, key);
	return key;
}

/* Replaces the stack by a mark, without class, file and state: a process can invent any number of them. */
static int mark_too_many(struct resolver *r)
{
	r->object_class = r->resource = r->spent_on = r->span = NULL;
	return splice_mark(&r->splice, TOO_MANY);
}

/*
 * Splices the stack. If the process has added too many stacks, adds no new one: one process must not use up the
 * profile.
 */
static int splice_bounded(struct resolver *r, const struct decision *of)
{
	r->is_final = resolver_has_room(of->process);
	if (r->is_final)
		return splice_stack(&r->splice, of->process, of->jvm, of->sample, of->java, of->outcome);
	loader_counters[DUET_LOADER_STACKS_FULL]++;
	return mark_too_many(r);
}

static void count_nameless(const struct process *process, uint64_t frames)
{
	bool has_ended = frames && process_is_ending(process);

	loader_counters[has_ended ? DUET_LOADER_NAME_MISSING : DUET_LOADER_NAME_LATE] += frames;
}

/* Names the stack. If the profile is full and does not have the stack yet, the stack becomes a single mark. */
static int64_t name_bounded(struct resolver *r, const struct decision *of)
{
	int64_t node;
	int err;

	r->is_closed = profile_is_full(r->profile) && !is_one_mark(&r->splice);
	r->names_missing = 0;
	node = name_stack(r, of->process, of->jvm);
	if (node >= 0 || !r->is_closed) {
		count_nameless(of->process, r->names_missing);
		return node;
	}
	loader_counters[DUET_LOADER_MEMORY_FULL]++;
	distinct_add(&r->refused, r->key);
	r->is_closed = r->is_final = false; /* not cached: there may be room later */
	err = mark_too_many(r);
	return err < 0 ? err : name_stack(r, of->process, of->jvm);
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
	if (r->stacks.len < MAX_STACKS && time_ns >> EPOCH_SHIFT <= r->epoch)
		return;
	resolver_forget(r);
	r->epoch = time_ns >> EPOCH_SHIFT;
}

/* Takes the stack from the cache. A sample older than the last change of its JVM may have hit code unloaded since. */
static bool find_known(struct resolver *r, const struct decision *decision)
{
	uint64_t known;

	r->is_current = !decision->jvm || jvm_is_current(decision->jvm, r->then);
	if (!r->is_current || !map_get(&r->stacks, r->key, &known))
		return false;
	r->splice.is_missing_code = false;
	r->splice.witnesses = (enum splice_witnesses)(known >> WITNESSES_SHIFT & 0xff);
	r->splice.names = (enum alike)(known >> NAMES_SHIFT & 0xff);
	r->splice.bcis = (enum alike)(known >> BCIS_SHIFT & 0xff);
	r->splice.is_estimated = known >> ESTIMATED_SHIFT;
	r->node = (uint32_t)known;
	return true;
}

bool resolve_stack(struct resolver *r, const struct decision *decision)
{
	int err;

	r->then = (struct jvm_moment){decision->sample->head.time_ns, decision->sample->unloads};
	r->object_class = attribute_find(decision->sample, DUET_ATTRIBUTE_CLASS);
	r->resource = attribute_find(decision->sample, DUET_ATTRIBUTE_RESOURCE);
	r->spent_on = attribute_find(decision->sample, DUET_ATTRIBUTE_STATE);
	r->span = attribute_find(decision->sample, DUET_ATTRIBUTE_SPAN);
	if (!r->span)
		r->span = attribute_find(decision->sample, DUET_ATTRIBUTE_USER);
	r->sleep = decision->sample->flags & SLEEP_FLAGS;
	r->is_called = decision->sample->flags & DUET_SAMPLE_CALLED;
	r->cpu = r->cpu_events >> decision->sample->event & 1 ? decision->sample->cpu : 0;
	r->policy = r->tells_policy ? decision->sample->policy : 0;
	r->key = stack_key(r, decision);
	forget_old(r, r->then.time_ns);
	vec_clear(&r->wants);
	if (find_known(r, decision))
		return true;
	err = splice_bounded(r, decision);
	r->node = err < 0 ? err : NODE_UNKNOWN;
	if (!err && decision->jvm)
		list_wants(r, decision->jvm);
	return !r->wants.len;
}

int64_t resolve_node(struct resolver *r, const struct decision *decision)
{
	if (r->node != NODE_UNKNOWN)
		return r->node;
	r->is_final &= !r->splice.is_missing_code && !r->splice.wants.len;
	r->node = name_bounded(r, decision);
	/* When out of memory, the stack is resolved again next time. */
	if (r->node >= 0 && r->is_current && r->is_final)
		(void)map_put(&r->stacks, r->key,
			      (uint64_t)r->node | (uint64_t)r->splice.witnesses << WITNESSES_SHIFT |
				      (uint64_t)r->splice.names << NAMES_SHIFT |
				      (uint64_t)r->splice.bcis << BCIS_SHIFT |
				      (uint64_t)r->splice.is_estimated << ESTIMATED_SHIFT);
	return r->node;
}
