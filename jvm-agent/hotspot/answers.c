/* SPDX-License-Identifier: MIT */
#include "hotspot/answers.h"

#include <string.h>

#include "hotspot/clock.h"
#include "hotspot/jvmstructs.h"
#include "memory.h"

#define MAX_ANSWERED 2048 /* when there are more, all are dropped */

static struct {
	uint64_t keys[2 * MAX_ANSWERED]; /* a key is at its hash or after it; 0: free */
	uint32_t count;
} answered;

void answers_reset(void)
{
	memset(&answered, 0, sizeof(answered));
}

/* Returns false if the key is there. Another check is another method, whose names replace the first one's. */
static bool answered_add(const struct metadata_key *of)
{
	uint64_t key = of->method ^ of->check * 0xd6e8feb86659fd93ull;
	size_t place = (key * 0x9e3779b97f4a7c15ull) >> 52;

	if (answered.count == MAX_ANSWERED)
		answers_reset();
	while (answered.keys[place] && answered.keys[place] != key)
		place = (place + 1) % (2 * MAX_ANSWERED);
	if (answered.keys[place] == key)
		return false;
	answered.keys[place] = key;
	answered.count++;
	return true;
}

/* Answers that the method or code no longer exists. */
static void write_gone(const struct answers *answers, const struct duet_want *want)
{
	bool is_method = want->kind == DUET_WANT_METHOD;
	struct duet_gone gone = {.time_ns = clock_ns(), .want = *want};
	struct ring_part part = {&gone, sizeof(gone)};

	if (answers->is_there && !answers->is_there(answers->context))
		return;
	duet_ring_count(answers->ring->page, is_method ? DUET_AGENT_METHOD_GONE : DUET_AGENT_CODE_GONE);
	ring_write(answers->ring, DUET_AGENT_GONE, &part, 1, RING_WAIT);
}

/* Methods that are proven together: in a reader from outside each proof is a system call. */
#define PROVEN_AT_ONCE 16
#define TRIES 4 /* cached memory may be older in one place after the other */

struct method_reading {
	struct metadata_key key;
	uintptr_t method, holder; /* their addresses */
	struct metadata_names names;
};

/* Sets the check of the key if that is 0. */
static bool read_names(struct method_reading *one)
{
	struct metadata_method method;
	uint32_t check;

	if (!metadata_find(one->key.method, &method))
		return false;
	check = metadata_check(&method, one->key.method);
	if ((one->key.check && one->key.check != check) || !metadata_names_read(&method, &one->names))
		return false;
	one->key.check = check;
	one->method = method.itself.address;
	one->holder = method.holder.address;
	return true;
}

static bool is_still_there(const struct method_reading *one)
{
	struct metadata_method again;

	return metadata_find(one->key.method, &again) && again.itself.address == one->method &&
	       again.holder.address == one->holder;
}

static void release_names(struct method_reading *all, size_t count)
{
	while (count)
		metadata_names_release(&all[--count].names);
}

/*
 * Reads the names, then proves the methods again. Methods that are still the same existed while they were read. Returns
 * false, with nothing to release, if one of them is not. *ret_is_old: the cached memory has changed since; try again.
 */
static bool read_proven(const struct answers *answers, struct method_reading *all, size_t count, bool *ret_is_old)
{
	size_t done = 0;
	bool is_proven;

	memory_note_all();
	if (answers->note_loaded)
		answers->note_loaded(answers->context);
	while (done < count && read_names(&all[done]))
		done++;
	*ret_is_old = !memory_is_as_noted();
	is_proven = done == count && !*ret_is_old;
	for (size_t i = 0; is_proven && i < count; i++)
		is_proven = is_still_there(&all[i]);
	if (!is_proven)
		release_names(all, done);
	return is_proven;
}

static struct ring_part string_part(const char *text, uint16_t *ret_length)
{
	*ret_length = (uint16_t)(text ? strlen(text) : 0);
	return (struct ring_part){text ? text : "", *ret_length};
}

static void cut(char *text, size_t most)
{
	if (text && strlen(text) > most)
		text[most] = '\0';
}

/* Shortens what would never have room in the ring, and be asked for without end. Names get a half, lines the rest. */
static void shorten(struct metadata_names *names, size_t most_bytes)
{
	size_t text_most = most_bytes / 8 < UINT16_MAX ? most_bytes / 8 : UINT16_MAX;
	size_t heads = sizeof(struct duet_ring_record) + sizeof(struct duet_method);
	size_t lines_most = (most_bytes / 2 - heads) / sizeof(*names->lines);

	if (strlen(names->class_signature) > text_most) /* "L…;" */
		names->class_signature[text_most - 1] = ';';
	cut(names->class_signature, text_most);
	cut(names->name, text_most);
	cut(names->signature, text_most);
	cut(names->source, text_most);
	if (names->line_count > lines_most)
		names->line_count = (uint32_t)lines_most;
}

static void write_method(struct ring *ring, const struct method_reading *one, bool is_extra)
{
	const struct metadata_names *names = &one->names;
	struct duet_method record = {
		.method = one->key.method,
		.check = one->key.check,
		.modifiers = (uint16_t)names->modifiers,
		.line_count = names->line_count,
		.is_extra = is_extra,
		.bare = names->bare,
	};
	struct ring_part parts[6];

	parts[1] = string_part(names->class_signature, &record.class_len);
	parts[2] = string_part(names->name, &record.name_len);
	parts[3] = string_part(names->signature, &record.signature_len);
	parts[4] = string_part(names->source, &record.source_len);
	parts[5] = (struct ring_part){names->lines, record.line_count * sizeof(*names->lines)};
	parts[0] = (struct ring_part){&record, sizeof(record)};
	ring_write(ring, DUET_AGENT_METHOD, parts, names->line_count ? 6 : 5, RING_WAIT);
}

/* Writes what was read, unless a class may have been unloaded. Takes ownership of the names. */
static bool write_read(const struct answers *answers, struct method_reading *all, size_t count, bool is_extra)
{
	bool is_loaded = !answers->is_loaded || answers->is_loaded(answers->context, answers->unloads);

	for (size_t i = 0; is_loaded && i < count && (!is_extra || ring_has_room(answers->ring)); i++) {
		shorten(&all[i].names, ring_metadata_most(answers->ring));
		write_method(answers->ring, &all[i], is_extra);
	}
	release_names(all, count);
	return is_loaded;
}

static bool answer(const struct answers *answers, struct metadata_key key, bool is_extra)
{
	struct method_reading one = {.key = key};
	bool is_old = true, is_read = false;

	memory_renew();
	for (int i = 0; i < TRIES && is_old && !is_read; i++)
		is_read = read_proven(answers, &one, 1, &is_old);
	return (is_read ||
		(answers->other_names && answers->other_names(answers->context, one.key.method, &one.names))) &&
	       write_read(answers, &one, 1, is_extra);
}

/* If one of the methods is not proven, reads each for itself. */
static void answer_some(const struct answers *answers, const struct metadata_key *keys, size_t count)
{
	struct duet_want want = {.kind = DUET_WANT_METHOD, .unloads = answers->unloads};
	struct method_reading all[PROVEN_AT_ONCE];
	bool is_old;

	for (size_t i = 0; i < count; i++) {
		all[i] = (struct method_reading){.key = keys[i]};
		answered_add(&keys[i]);
	}
	if (count > 1 && read_proven(answers, all, count, &is_old) && write_read(answers, all, count, false))
		return;
	for (size_t i = 0; i < count; i++) {
		want.key = keys[i].method;
		want.id = keys[i].check;
		if (!answer(answers, keys[i], false))
			write_gone(answers, &want);
	}
}

void answer_methods(const struct answers *answers, const struct metadata_key *keys, size_t count)
{
	while (count) {
		size_t some = count < PROVEN_AT_ONCE ? count : PROVEN_AT_ONCE;

		answer_some(answers, keys, some);
		keys += some;
		count -= some;
	}
}

/* methods sent with one compilation; a large one has hundreds, and samples hit few of them */
#define METHODS_AT_ONCE 64

/* Returns the entry of the first pc after this one: debug information describes the code before its own pc. */
static const struct duet_code_pc *pc_behind(const struct nmethod_record *record, uint64_t pc)
{
	for (uint32_t i = 0; i < record->load.pc_count; i++)
		if (record->load.address + record->pcs[i].offset > pc)
			return &record->pcs[i];
	return NULL;
}

/* Methods that are answered unasked: those that are not answered yet. */
struct answering {
	const struct answers *answers;
	struct method_reading some[PROVEN_AT_ONCE];
	size_t found;
	unsigned int left; /* how many more may be answered */
};

/* Methods that no longer exist, or for which there is no room now, are left out: the loader asks for them. */
static void answer_found(struct answering *answering)
{
	const struct answers *answers = answering->answers;
	size_t count = answering->found;
	bool is_old, is_proven = count > 1 && ring_has_room(answers->ring) &&
				 read_proven(answers, answering->some, count, &is_old);

	if (is_proven)
		(void)write_read(answers, answering->some, count, true);
	for (size_t i = 0; !is_proven && i < count && ring_has_room(answers->ring); i++)
		(void)answer(answers, answering->some[i].key, true);
	answering->found = 0;
}

static void answer_methods_of(struct answering *answering, const struct duet_java_frame *frames, uint32_t count)
{
	for (uint32_t i = 0; i < count && answering->left; i++) {
		struct metadata_key key = {frames[i].method, frames[i].check};

		if (!answered_add(&key))
			continue;
		answering->some[answering->found++] = (struct method_reading){.key = key};
		answering->left--;
		if (answering->found == PROVEN_AT_ONCE)
			answer_found(answering);
	}
}

/*
 * Sends names with the code, because the JVM may end before the loader asks for them. The methods at the sampled pc
 * come first. ring_has_room() asks for room for two records, so there is still room for the code after the last method.
 */
static void answer_inlined(const struct answers *answers, const struct nmethod_record *record, uint64_t pc)
{
	const struct duet_java_frame itself = {.method = record->load.method, .check = record->check};
	const struct duet_code_pc *met = pc_behind(record, pc);
	struct answering answering = {.answers = answers, .left = METHODS_AT_ONCE};

	if (met)
		answer_methods_of(&answering, record->frames + met->frame, met->depth);
	answer_methods_of(&answering, &itself, 1);
	answer_methods_of(&answering, record->frames, record->load.frame_count);
	answer_found(&answering);
}

/* Takes ownership of the record. */
static void answer_compiled(const struct answers *answers, struct nmethod_record *record, uint64_t pc)
{
	struct ring_part parts[] = {
		{&record->load, sizeof(record->load)},
		{record->pcs, record->load.pc_count * sizeof(*record->pcs)},
		{record->frames, record->load.frame_count * sizeof(*record->frames)},
	};

	answer_inlined(answers, record, pc);
	ring_write(answers->ring, DUET_AGENT_CODE_LOAD, parts, 3, RING_WAIT);
	nmethods_release(record);
}

static bool answer_stub(const struct answers *answers, uintptr_t pc, uint64_t now_ns)
{
	struct duet_stub stub = {.time_ns = now_ns};
	char name[STUB_NAME_BYTES];
	struct ring_part parts[] = {{&stub, sizeof(stub)}, {name, 0}};

	if (!(answers->other_stub && answers->other_stub(pc, &stub, name)) && !stub_find(pc, &stub, name))
		return false;
	stub.name_len = (uint32_t)strlen(name);
	parts[1].bytes = stub.name_len;
	ring_write(answers->ring, DUET_AGENT_STUB, parts, 2, RING_WAIT);
	return true;
}

void answer_code(const struct answers *answers, uint64_t pc, uint32_t id, uint64_t now_ns)
{
	const struct duet_want want = {.key = pc, .id = id, .kind = DUET_WANT_CODE, .unloads = answers->unloads};
	struct nmethod_record record;
	enum nmethod_result result;

	memory_renew();
	result = nmethods_find((uintptr_t)pc, id, now_ns, ring_metadata_most(answers->ring), &record);
	if (result == NMETHOD_FOUND || (id && answers->freed_code && answers->freed_code(id, &record)))
		return answer_compiled(answers, &record, pc);
	if (result == NMETHOD_NONE && !id && answer_stub(answers, (uintptr_t)pc, now_ns))
		return;
	write_gone(answers, &want);
}

void answer_heaps(const struct answers *answers)
{
	uintptr_t low, high;

	for (unsigned int i = 0; jvmstructs_code_heap(i, &low, &high); i++) {
		struct duet_code_heap heap = {.low = low, .high = high};
		struct ring_part part = {&heap, sizeof(heap)};

		ring_write(answers->ring, DUET_AGENT_CODE_HEAP, &part, 1, RING_WAIT);
	}
}
