/* SPDX-License-Identifier: MIT */
#include "join/naming.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "duet_jvm.h"
#include "join/resource.h"
#include "join/states.h"
#include "runtime/class_name.h"

#define SHOWN_NUL "\xe2\x90\x80" /* U+2400, the symbol for it */

/* ---- one frame ---- */

/* Returns the id of a string, or 0 if it is new and the profile is closed. */
static uint32_t string_row(struct naming *n, const char *text)
{
	return n->is_closed ? intern_known(&n->profile->strings, text) : intern_str(&n->profile->strings, text);
}

static void resolve_symbol(struct naming *n, const struct symbol *symbol, struct frame *frame)
{
	frame->name = string_row(n, symbol->name);
	frame->module = string_row(n, symbol->module);
	if (n->resolver->options->offsets)
		frame->bci = symbol->offset;
}

static void resolve_native(struct naming *n, const struct splice_frame *from, struct frame *frame)
{
	struct symbol symbol;

	symbols_user(n->resolver->symbols, n->process, from->address, from->is_return, &symbol);
	resolve_symbol(n, &symbol, frame);
	n->is_final &= !symbol.is_guess;
	frame->kind = duet_is_libjvm(symbol.module) ? FRAME_JVM : FRAME_NATIVE;
}

static void resolve_kernel(struct naming *n, const struct splice_frame *from, struct frame *frame)
{
	struct symbol symbol;

	symbols_kernel(n->resolver->symbols, from->address, from->is_return, &symbol);
	resolve_symbol(n, &symbol, frame);
	frame->kind = FRAME_KERNEL;
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

/* Returns NULL when the method is not known, or when the one that is known is another with the same key. */
static const struct jvm_method *find_method(const struct naming *n, const struct splice_frame *from)
{
	const struct jvm_method *method = jvm_method(n->jvm, from->method, n->then);

	return method && jvm_method_is(method, from->check) ? method : NULL;
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
	const struct jvm_method *method = find_method(n, from);

	frame->kind = kinds[from->kind];
	frame->bci = from->is_interpreted ? FRAME_BCI_INTERPRETED : from->bci;
	if (!method)
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
	if (from->kind == SPLICE_KERNEL)
		resolve_kernel(n, from, &frame);
	else
		resolve_native(n, from, &frame);
	id = frame_row(n, &frame);
	if (n->is_final && id != UINT32_MAX && n->resolver->addresses.len < NAMING_MAX_ROWS)
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

/* ---- the whole stack ---- */

void naming_list_wants(struct naming *n)
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

/* The character of this number below 256, in UTF-8. A text has no NUL. */
static void add_latin1(struct buf *out, unsigned char byte)
{
	if (byte)
		text_add_utf8(out, byte);
	else
		buf_add_str(out, SHOWN_NUL);
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
		add_latin1(&data, (unsigned char)*at);
	if (!err)
		err = push_named(n, FRAME_SPAN, data.data);
	return err;
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
	if (!err)
		err = push_state_text(n, &text);
	return err;
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

/* Makes the last of the frames the root. */
static void move_to_root(struct naming *n)
{
	uint32_t last = n->rows->items[n->rows->len - 1];

	memmove(n->rows->items + 1, n->rows->items, (n->rows->len - 1) * sizeof(*n->rows->items));
	n->rows->items[0] = last;
}

/* Replaces the tracing's frames by what was waited for. A wait for work gets the root STATE_IDLE. 0 or -ENOMEM. */
static int push_state(struct naming *n)
{
	const char *state;

	n->rows->len = state_trim(n->profile, n->rows->items, n->rows->len);
	state = state_of(n->profile, n->rows->items, n->rows->len, n->sleep);
	if (n->is_runnable)
		return push_named(n, FRAME_STATE, STATE_RUNNABLE);
	if (!(n->sleep & DUET_SAMPLE_IDLE) && idle_in_pool(n->profile, n->rows->items, n->rows->len, state)) {
		if (push_named(n, FRAME_STATE, STATE_IDLE) < 0)
			return -ENOMEM;
		move_to_root(n);
	}
	return push_named(n, FRAME_STATE, state);
}

bool naming_is_one_mark(const struct splice *splice)
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

/* Returns the name of the class of a constructor's frame; 0 for other frames. */
static uint32_t constructed_class(const struct naming *n, const struct splice_frame *frame)
{
	const struct jvm_method *method = known_method(n, frame);

	return method && !strcmp(intern_text(&n->profile->strings, method->name), "<init>") ? method->class_name : 0;
}

/* Returns the first frame after the constructors of the sample's object, which end with that of its class. */
static size_t first_after_constructors(const struct naming *n, size_t first)
{
	size_t after = first;
	uint32_t wanted, class;
	BUF(name);

	class_name_add(&name, (const char *)(n->object_class + 1), n->object_class->bytes);
	wanted = intern_known(&n->profile->strings, name.data);
	for (; first < n->splice->frames.len; first++) {
		class = constructed_class(n, &n->splice->frames.items[first]);
		if (!class)
			break;
		if (class == wanted)
			after = first + 1;
	}
	return after;
}

/* Returns the first frame of the application. A sample without frames has no mark if it has something else. */
static size_t first_frame(const struct naming *n)
{
	size_t first = 0;

	if (n->spent_on && naming_is_one_mark(n->splice))
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
	if ((n->resource || n->spent_on) && push_detail_frames(n) < 0)
		return UINT32_MAX;
	if (n->sleep & DUET_SAMPLE_OFF_CPU && push_state(n) < 0)
		return UINT32_MAX;
	return n->is_closed ? profile_known_stack(n->profile, n->rows->items, (uint32_t)n->rows->len)
			    : profile_stack(n->profile, n->rows->items, (uint32_t)n->rows->len);
}

int64_t naming_stack(struct naming *n)
{
	size_t rows = n->profile->frames.len + n->profile->nodes.len;
	uint32_t node = stack_row(n);

	rows = n->profile->frames.len + n->profile->nodes.len - rows;
	resolver_count(n->process, rows);
	n->resolver->kept += rows != 0;
	return node == UINT32_MAX ? -ENOMEM : (int64_t)node;
}
