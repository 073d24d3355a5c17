/* SPDX-License-Identifier: MIT */
#include "runtime/jvm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "proc/room.h"
#include "runtime/class_name.h"
#include "runtime/code_map.h"
#include "runtime/inlining.h"
#include "runtime/thread_names.h"

#define LEAST_BYTES (1u << 20) /* lower limit for methods and code: the stacks of a moment need this much */

struct jvm {
	struct intern *strings;
	struct map methods; /* jmethodID -> struct jvm_method *, in the arena */
	struct map bare; /* the same for methods that have no id, by their address */
	uint64_t bare_since_ns; /* start of validity of `bare`; 0: it is not known when classes are unloaded */
	uint64_t bare_unloads; /* struct duet_unloaded::unloads of these; 0: not known */
	struct map unloaded; /* methods of before the last unloading */
	uint64_t unloaded_until_ns; /* end of validity of `unloaded` */
	uint64_t unloaded_unloads;
	struct map gone; /* hash of a struct duet_want which the agent answered with DUET_AGENT_GONE -> 1 */
	struct thread_names threads;
	struct arena arena;
	uint32_t round; /* number of times that make_room() was called */
	size_t most_bytes; /* limit for methods and code */
	struct code_map code;
	struct vec(struct duet_code_heap) heaps;
	struct duet_jvm_layout layout;
	bool has_layout;
	const struct jvm *other; /* see jvm_set_other() */
	struct payer payer;
	bool has_payer; /* the tables are part of ROOM_NAMES, and the JVM of ROOM_JVMS */
	size_t counted; /* our bytes in ROOM_NAMES */
	size_t string_bytes; /* bytes that our records added to `strings` */
	uint64_t changed_ns;
	uint64_t records;
};

struct jvm *jvm_new(struct intern *strings)
{
	struct jvm *jvm = calloc(1, sizeof(*jvm));

	if (!jvm)
		return NULL;
	jvm->strings = strings;
	jvm->most_bytes = JVM_MAX_BYTES;
	return jvm;
}

void jvm_free(struct jvm *jvm)
{
	if (!jvm)
		return;
	if (jvm->has_payer) {
		room_give(ROOM_NAMES, &jvm->payer, jvm->counted);
		room_give(ROOM_JVMS, &jvm->payer, 1);
	}
	map_release(&jvm->methods);
	map_release(&jvm->bare);
	map_release(&jvm->unloaded);
	map_release(&jvm->gone);
	thread_names_release(&jvm->threads);
	arena_release(&jvm->arena);
	code_map_release(&jvm->code);
	vec_release(&jvm->heaps);
	free(jvm);
}

void jvm_set_payer(struct jvm *jvm, const struct payer *payer)
{
	jvm->payer = *payer;
	jvm->has_payer = true;
	room_add(ROOM_JVMS, payer, 1);
}

void jvm_set_other(struct jvm *jvm, const struct jvm *other)
{
	jvm->other = other;
}

const struct jvm *jvm_other(const struct jvm *jvm)
{
	return jvm->other;
}

static uint32_t intern_class(struct jvm *jvm, const char *signature, uint32_t len)
{
	BUF(name);

	class_name_add(&name, signature, len);
	return name.failed ? 0 : intern_bytes(jvm->strings, name.data, (uint32_t)name.len);
}

/*
 * Records come late, and some have equal times, so each change gets a time of its own. The times are claimed by the
 * agent: after a time in the future, no stack would be cached any more.
 */
static void note_change(struct jvm *jvm, uint64_t time_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (time_ns > now_ns)
		time_ns = now_ns;
	jvm->changed_ns = time_ns > jvm->changed_ns ? time_ns : jvm->changed_ns + 1;
}

static bool same_names(const struct jvm_method *a, const struct jvm_method *b)
{
	return a->class_name == b->class_name && a->name == b->name && a->signature == b->signature &&
	       a->source == b->source && a->line_count == b->line_count;
}

static int apply_method(struct jvm *jvm, const struct duet_method *record)
{
	const char *text = (const char *)(record + 1);
	size_t line_bytes = record->line_count * sizeof(struct duet_line);
	struct jvm_method *method = arena_alloc(&jvm->arena, sizeof(*method));
	struct duet_line *lines = line_bytes ? arena_alloc(&jvm->arena, line_bytes) : NULL;
	struct map *methods = record->method & DUET_METHOD_BARE ? &jvm->bare : &jvm->methods;
	struct jvm_method *known = map_get_ptr(methods, record->method);

	if (!method || (line_bytes && !lines))
		return -ENOMEM;
	method->class_name = intern_class(jvm, text, record->class_len);
	text += record->class_len;
	method->name = java_text_intern(jvm->strings, text, record->name_len);
	text += record->name_len;
	method->signature = java_text_intern(jvm->strings, text, record->signature_len);
	text += record->signature_len;
	method->source = java_text_intern(jvm->strings, text, record->source_len);
	text += record->source_len;
	method->modifiers = record->modifiers;
	method->check = record->check;
	method->bare = record->bare;
	if (line_bytes)
		memcpy(lines, text, line_bytes); /* unaligned in the record */
	method->lines = lines;
	method->line_count = record->line_count;
	method->used = jvm->round;
	if (known && same_names(known, method)) /* requested twice */
		return 0;
	if (known) /* redefined; no stack refers to a new method yet, so a new one is no change */
		note_change(jvm, 0);
	return map_put_ptr(methods, record->method, method);
}

/* If this ends other code at these addresses, it is a change: cached stacks may have the other code. */
static int add_code(struct jvm *jvm, struct jvm_code *code)
{
	uint64_t ended = jvm->code.ended;
	int err;

	code->used = jvm->round;
	err = code_map_add(&jvm->code, code);
	if (jvm->code.ended != ended)
		note_change(jvm, code->loaded_ns);
	return err;
}

static int apply_code_load(struct jvm *jvm, const struct duet_code_load *record)
{
	struct jvm_code code = {
		.address = record->address,
		.end = record->address + record->code_bytes,
		.loaded_ns = record->time_ns,
		.method = record->method,
		.id = record->id,
	};
	int err = inlining_new(record, &code.inlining);

	return err ? err : add_code(jvm, &code);
}

static int apply_stub(struct jvm *jvm, const struct duet_stub *record)
{
	struct jvm_code code = {
		.address = record->address,
		.end = record->address + record->code_bytes,
		.loaded_ns = record->time_ns,
		.stub_name = intern_bytes(jvm->strings, (const char *)(record + 1), record->name_len),
	};

	return add_code(jvm, &code);
}

static int apply_heap(struct jvm *jvm, const struct duet_code_heap *heap)
{
	return jvm->heaps.len < JVM_MAX_HEAPS ? vec_push(&jvm->heaps, *heap) : -ENOSPC;
}

static int apply_layout(struct jvm *jvm, const struct duet_jvm_layout *layout)
{
	jvm->layout = *layout;
	jvm->has_layout = true;
	return 0;
}

/* Whether code still exists does not depend on classes, so the key leaves them out. */
static uint64_t want_key(const struct duet_want *want)
{
	struct duet_want key = *want;

	if (want->kind == DUET_WANT_CODE)
		key.unloads = 0;
	return hash_bytes(&key, sizeof(key), 0);
}

static int apply_gone(struct jvm *jvm, const struct duet_gone *gone)
{
	return map_put(&jvm->gone, want_key(&gone->want), 1);
}

/* From now on, the known names of bare addresses are only for earlier samples. */
static int apply_unloaded(struct jvm *jvm, const struct duet_unloaded *unloaded)
{
	map_release(&jvm->unloaded);
	map_release(&jvm->gone);
	jvm->unloaded = jvm->bare;
	jvm->unloaded_until_ns = unloaded->until_ns;
	jvm->unloaded_unloads = jvm->bare_unloads;
	jvm->bare = (struct map){0};
	jvm->bare_since_ns = unloaded->since_ns;
	jvm->bare_unloads = unloaded->unloads;
	note_change(jvm, unloaded->since_ns);
	return 0;
}

/* Which names of bare addresses are valid for a moment. */
enum names {
	NAMES_NOW,
	NAMES_BEFORE, /* those before the last unloading that was reported */
	/* those after an unloading that was not reported yet: the reader reports it with its next answer */
	NAMES_TO_COME,
	NAMES_LOST,
};

static enum names names_of(const struct jvm *jvm, struct jvm_moment then)
{
	if (then.unloads && jvm->bare_unloads) {
		if (then.unloads >= jvm->bare_unloads)
			return then.unloads == jvm->bare_unloads ? NAMES_NOW : NAMES_TO_COME;
		return then.unloads == jvm->unloaded_unloads ? NAMES_BEFORE : NAMES_LOST;
	}
	if (then.time_ns >= jvm->bare_since_ns)
		return NAMES_NOW;
	return then.time_ns <= jvm->unloaded_until_ns ? NAMES_BEFORE : NAMES_LOST;
}

/* The reader reports once at its beginning how many there were before. */
uint64_t jvm_unloaded_ns(const struct jvm *jvm)
{
	return jvm->unloaded_until_ns ? jvm->bare_since_ns : 0;
}

bool jvm_is_gone(const struct jvm *jvm, const struct duet_want *want, struct jvm_moment then)
{
	bool is_bare = want->kind == DUET_WANT_METHOD && want->key & DUET_METHOD_BARE;
	enum names names = is_bare ? names_of(jvm, then) : NAMES_NOW;
	uint64_t one;

	return names == NAMES_NOW ? map_get(&jvm->gone, want_key(want), &one) : names != NAMES_TO_COME;
}

/* ---- room ---- */

/* Returns the bytes of the entries that can be requested from the agent again. */
static size_t met_bytes(const struct jvm *jvm)
{
	return jvm->arena.bytes + map_bytes(&jvm->methods) + map_bytes(&jvm->bare) + map_bytes(&jvm->unloaded) +
	       map_bytes(&jvm->gone) +
	       code_map_bytes(&jvm->code);
}

static size_t all_bytes(const struct jvm *jvm)
{
	return met_bytes(jvm) + thread_names_bytes(&jvm->threads) + jvm->string_bytes;
}

static void count_bytes(struct jvm *jvm)
{
	size_t now = all_bytes(jvm);

	if (jvm->has_payer) {
		room_give(ROOM_NAMES, &jvm->payer, jvm->counted);
		room_add(ROOM_NAMES, &jvm->payer, now);
	}
	jvm->counted = now;
}

/*
 * Returns how much memory this JVM may have. While its user's share is not used up, that is JVM_MAX_BYTES, after that
 * an equal part of the share. A JVM with less than that may still grow to it, because the others shrink.
 */
static size_t share(const struct jvm *jvm)
{
	size_t bytes;

	if (!jvm->has_payer || room_has(ROOM_NAMES, &jvm->payer, 1))
		return JVM_MAX_BYTES;
	bytes = room_limit(ROOM_NAMES, &jvm->payer) / room_held(ROOM_JVMS, &jvm->payer);
	if (bytes < LEAST_BYTES && !jvm->payer.key)
		return LEAST_BYTES;
	return bytes < JVM_MAX_BYTES ? bytes : JVM_MAX_BYTES;
}

static int move_into(struct map *to, struct arena *arena, uint64_t key, const struct jvm_method *method)
{
	size_t line_bytes = method->line_count * sizeof(*method->lines);
	struct jvm_method *copy = arena_alloc(arena, sizeof(*copy));
	struct duet_line *lines = line_bytes ? arena_alloc(arena, line_bytes) : NULL;

	if (!copy || (line_bytes && !lines))
		return -ENOMEM;
	*copy = *method;
	copy->lines = lines;
	if (line_bytes)
		memcpy(lines, method->lines, line_bytes);
	return map_put_ptr(to, key, copy);
}

/* Moves methods used since `round` began to another arena, and drops the others. */
static void keep_used(struct map *methods, uint32_t round, struct arena *arena)
{
	struct map kept = {0};
	uint64_t key, value;

	for (size_t cursor = 0; map_next(methods, &cursor, &key, &value);) {
		const struct jvm_method *method = (const struct jvm_method *)(uintptr_t)value;

		if (method->used >= round && move_into(&kept, arena, key, method) < 0)
			break; /* out of memory: the other methods are requested again */
	}
	map_release(methods);
	*methods = kept;
}

static void forget_methods(struct jvm *jvm, uint32_t round)
{
	struct arena arena = {0};

	if (!jvm->bare_since_ns)
		map_release(&jvm->bare);
	keep_used(&jvm->methods, round, &arena);
	keep_used(&jvm->bare, round, &arena);
	map_release(&jvm->unloaded);
	map_release(&jvm->gone);
	arena_release(&jvm->arena);
	jvm->arena = arena;
}

/* Drops entries that no sample has met since the last call. If more than half of the limit is still used, drops all. */
static void make_room(struct jvm *jvm, size_t most_bytes)
{
	for (uint32_t round = jvm->round; met_bytes(jvm) > most_bytes / 2 && round <= jvm->round + 1; round++) {
		forget_methods(jvm, round);
		code_map_forget(&jvm->code, 0, round);
	}
	jvm->round++;
	note_change(jvm, 0);
}

static void keep_below(struct jvm *jvm, size_t most_bytes)
{
	if (met_bytes(jvm) <= most_bytes)
		return;
	make_room(jvm, most_bytes);
	count_bytes(jvm);
}

void jvm_set_full(struct jvm *jvm, bool is_full)
{
	size_t now = met_bytes(jvm);

	if (!is_full)
		jvm->most_bytes = JVM_MAX_BYTES;
	else if (jvm->most_bytes == JVM_MAX_BYTES)
		jvm->most_bytes = now > LEAST_BYTES ? now : LEAST_BYTES;
	keep_below(jvm, share(jvm));
}

/* ---- records ---- */

static int apply(struct jvm *jvm, uint16_t type, const void *payload)
{
	switch (type) {
	case DUET_AGENT_METHOD:
		return apply_method(jvm, payload);
	case DUET_AGENT_CODE_LOAD:
		return apply_code_load(jvm, payload);
	case DUET_AGENT_STUB:
		return apply_stub(jvm, payload);
	case DUET_AGENT_GONE:
		return apply_gone(jvm, payload);
	case DUET_AGENT_UNLOADED:
		return apply_unloaded(jvm, payload);
	case DUET_AGENT_CODE_HEAP:
		note_change(jvm, 0);
		return apply_heap(jvm, payload);
	case DUET_AGENT_THREAD:
		return thread_names_apply(&jvm->threads, jvm->strings, payload);
	case DUET_AGENT_LAYOUT:
		note_change(jvm, 0);
		return apply_layout(jvm, payload);
	default:
		return 0;
	}
}

int jvm_apply(struct jvm *jvm, uint16_t type, const void *payload, uint32_t size)
{
	size_t before = intern_memory(jvm->strings);
	int err;

	jvm->records++;
	(void)size; /* agent_record_check() has compared it with the counts inside */
	if (type == DUET_AGENT_CODE_UNLOAD) {
		if (code_map_unload(&jvm->code, payload))
			note_change(jvm, ((const struct duet_code_unload *)payload)->time_ns);
		return 0;
	}
	keep_below(jvm, jvm->most_bytes);
	keep_below(jvm, share(jvm));
	if (all_bytes(jvm) > share(jvm))
		return -ENOSPC;
	err = apply(jvm, type, payload);
	jvm->string_bytes += intern_memory(jvm->strings) - before;
	count_bytes(jvm);
	return err;
}

uint64_t jvm_records(const struct jvm *jvm)
{
	return jvm->records;
}

uint64_t jvm_changed_ns(const struct jvm *jvm)
{
	return jvm->changed_ns;
}

bool jvm_is_current(const struct jvm *jvm, struct jvm_moment then)
{
	return then.time_ns >= jvm->changed_ns && names_of(jvm, then) == NAMES_NOW;
}

const struct duet_jvm_layout *jvm_layout(const struct jvm *jvm)
{
	return jvm->has_layout ? &jvm->layout : NULL;
}

bool jvm_is_call_stub(const struct jvm *jvm, uint64_t return_address)
{
	return jvm->has_layout && jvm->layout.call_stub_return == return_address;
}

/* Returns NULL when it is not known which method had a bare address at that time. */
static const struct map *methods_of(const struct jvm *jvm, uint64_t id, struct jvm_moment then)
{
	enum names names;

	if (!(id & DUET_METHOD_BARE))
		return &jvm->methods;
	names = names_of(jvm, then);
	if (names == NAMES_NOW)
		return &jvm->bare;
	return names == NAMES_BEFORE ? &jvm->unloaded : NULL;
}

const struct jvm_method *jvm_method(const struct jvm *jvm, uint64_t id, struct jvm_moment then)
{
	const struct map *methods = methods_of(jvm, id, then);
	struct jvm_method *method = methods ? map_get_ptr(methods, id) : NULL;

	if (method)
		method->used = jvm->round;
	return method;
}

bool jvm_lacks(const struct jvm *jvm, const struct duet_want *want, struct jvm_moment then)
{
	const struct jvm_method *method;

	if (want->kind == DUET_WANT_CODE)
		return !jvm_code_at(jvm, want->key, then.time_ns, want->id) && !jvm_is_gone(jvm, want, then);
	method = jvm_method(jvm, want->key, then);
	return !(method && jvm_method_is(method, want->id)) && !jvm_is_gone(jvm, want, then);
}

int32_t jvm_method_line(const struct jvm_method *method, int32_t bci)
{
	size_t low = 0, high = method->line_count;

	if (bci < 0)
		return 0;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (method->lines[middle].bci <= (uint32_t)bci)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? (int32_t)method->lines[low - 1].line : 0;
}

bool jvm_owns_pc(const struct jvm *jvm, uint64_t pc)
{
	for (size_t i = 0; i < jvm->heaps.len; i++)
		if (pc >= jvm->heaps.items[i].low && pc < jvm->heaps.items[i].high)
			return true;
	return false;
}

const struct jvm_code *jvm_code_at(const struct jvm *jvm, uint64_t pc, uint64_t time_ns, uint32_t id)
{
	struct jvm_code *code = code_map_find(&jvm->code, pc, time_ns, id);

	if (code)
		code->used = jvm->round;
	return code;
}

/*
 * An entry describes the code before its own pc. So a return address may be that of its entry, and an instruction that
 * was about to run belongs to the first entry after it, as for AsyncGetCallTrace (pc_desc_near(pc + 1)).
 */
uint32_t jvm_code_frames(const struct jvm_code *code, uint64_t pc, bool is_return,
			 struct duet_java_frame ret_frames[JVM_INLINING_DEPTH], uint32_t *ret_flags)
{
	*ret_flags = is_return ? DUET_PC_ESTIMATED | DUET_PC_MISSING : DUET_PC_ESTIMATED;
	if (!code->inlining)
		return 0;
	return inlining_frames(code->inlining, pc - code->address + !is_return, ret_frames, ret_flags);
}

/* The blob is called "Interpreter" in every JDK; "return entry points" and the like are parts of it. */
bool jvm_is_interpreter(const struct jvm *jvm, const struct jvm_code *code)
{
	return code->stub_name && !strncasecmp(intern_text(jvm->strings, code->stub_name), "Interpreter", 11);
}

uint32_t jvm_thread_name(const struct jvm *jvm, uint32_t tid, uint64_t time_ns, const char *comm)
{
	return thread_names_find(&jvm->threads, jvm->strings, tid, time_ns, comm);
}

uint64_t jvm_thread_java_id(const struct jvm *jvm, uint32_t tid)
{
	return thread_names_java_id(&jvm->threads, tid);
}

uint32_t jvm_match_compiled(const struct jvm *jvm, const struct duet_java_frame *frames, uint32_t depth)
{
	return code_map_match(&jvm->code, frames, depth);
}

void jvm_forget(struct jvm *jvm, uint64_t time_ns)
{
	thread_names_forget(&jvm->threads, time_ns);
	code_map_forget(&jvm->code, time_ns, 0);
	if (!jvm->bare_since_ns)
		map_release(&jvm->bare);
	if (jvm->unloaded_until_ns < time_ns)
		map_release(&jvm->unloaded);
	map_release(&jvm->gone);
	count_bytes(jvm);
}

static void move_method(struct jvm_method *method, struct intern_move *move)
{
	method->class_name = intern_moved(move, method->class_name);
	method->name = intern_moved(move, method->name);
	method->signature = intern_moved(move, method->signature);
	method->source = intern_moved(move, method->source);
}

void jvm_move_strings(struct jvm *jvm, struct intern_move *move)
{
	size_t before = intern_memory(move->to);
	uint64_t key, value;

	for (size_t cursor = 0; map_next(&jvm->methods, &cursor, &key, &value);)
		move_method((struct jvm_method *)(uintptr_t)value, move);
	for (size_t cursor = 0; map_next(&jvm->bare, &cursor, &key, &value);)
		move_method((struct jvm_method *)(uintptr_t)value, move);
	for (size_t cursor = 0; map_next(&jvm->unloaded, &cursor, &key, &value);)
		move_method((struct jvm_method *)(uintptr_t)value, move);
	thread_names_move_strings(&jvm->threads, move);
	code_map_move_strings(&jvm->code, move);
	jvm->string_bytes = intern_memory(move->to) - before;
	count_bytes(jvm);
}
