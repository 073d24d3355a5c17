/* SPDX-License-Identifier: MIT */
/* One walk of a stopped thread: its result, what it reads, and the paths that it takes through the walk's code. */
#pragma once

#include <sys/uio.h>

#include "collect/tables/unwinding.h"
#include "corpus/tracee.h"
#include "fixtures/walk_corpus.h"
#include "join/splice.h"
#include "jvms/agents.h"

#define UNTRACED __attribute__((no_sanitize_coverage))

/* What a walk has read. */
struct read {
	uint64_t address;
	uint32_t bytes;
	uint32_t at; /* in shot.bytes */
};

/* Ways through the walk's code, by a hash of two places that follow each other. */
#define WAYS 65536
#define WAY_TRIES 12 /* of walks that go a way before it is given up: none was agreed to */
#define COMMON_WALKS 5 /* that need only be new to this file */
static struct {
	bool is_on;
	uint32_t last;
	uint8_t tries[WAYS];
	bool is_kept[WAYS];
	bool is_known[WAYS]; /* or by earlier captures */
} ways;

static struct {
	pid_t pid;
	bool wants_bad;
	struct process_table processes;
	struct process *process;
	struct intern strings;
	struct agent *agent;
	struct unwinding unwinding;
	const struct duet_unwind_row *rows; /* of the tables, in memory of our own */
	const struct duet_unwind_page *pages;
	const struct duet_unwind_module *modules;
	struct splice splice;
	uint64_t cookie;
	struct map agreed; /* hashes of the frames from one to the root, of walks that were agreed to */
	struct vec(uint64_t) answer; /* struct duet_java_sample and what follows */
	FILE *file;
	struct corpus_memory written; /* what the file says so far */
	struct vec(struct walk_native) written_natives;
	struct duet_jvm_layout written_layout;
	unsigned int random;
	unsigned int kept, refused; /* walks */
} capture;

static int walk_read(const void *at, void *to, uint32_t bytes, uint64_t address);

UNTRACED static const struct duet_unwind_row *walk_row(const void *at, uint32_t index)
{
	return &capture.rows[index];
}

#include "fixtures/walk_turns.h"

/* One walk, as it is taken. */
struct shot {
	struct walk_regs regs;
	bool in_kernel;
	uint64_t time_ns;
	struct walk walk;
	struct vec(struct read) reads;
	struct vec(uint8_t) bytes;
	struct vec(struct walk_native) natives;
	uint16_t ways[WAYS]; /* that it took */
	uint32_t way_count;
	bool is_way[WAYS];
};
static struct shot plain, handled; /* where the thread was, and in the handler that interrupts it there */
static struct shot *shot; /* the one of them that is taken */

UNTRACED static int walk_read(const void *at, void *to, uint32_t bytes, uint64_t address)
{
	struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)address, bytes};
	struct read read = {address, bytes, (uint32_t)shot->bytes.len};

	if (process_vm_readv(capture.pid, &local, 1, &remote, 1, 0) != (ssize_t)bytes)
		return -1;
	if (vec_push(&shot->reads, read) < 0 || vec_reserve(&shot->bytes, shot->bytes.len + bytes) < 0)
		return -1;
	memcpy(shot->bytes.items + shot->bytes.len, to, bytes);
	shot->bytes.len += bytes;
	return 0;
}

UNTRACED static void take_way(uint32_t way)
{
	if (!shot->is_way[way])
		shot->ways[shot->way_count++] = (uint16_t)way;
	shot->is_way[way] = true;
}

void __sanitizer_cov_trace_pc(void);
/* The compiler calls it at each branch's ends. */
UNTRACED void __sanitizer_cov_trace_pc(void)
{
	uint32_t place, way;

	if (!ways.is_on)
		return;
	place = (uint32_t)(((uintptr_t)__builtin_return_address(0) - (uintptr_t)walk_run) * 0x9e3779b97f4a7c15ull >>
			   48);
	way = (place ^ ways.last >> 1) % WAYS;
	ways.last = place;
	take_way(way);
}

/* Like walk/tables.h. */
UNTRACED static const struct duet_unwind_row *find_row(const struct duet_unwind_mapping *mapping, uint64_t pc)
{
	uint64_t offset = pc - mapping->base, index = offset >> DUET_UNWIND_PAGE_SHIFT;
	const struct duet_unwind_module *module;
	const struct duet_unwind_page *page;

	if (mapping->module == DUET_UNWIND_NO_MODULE)
		return NULL;
	module = &capture.modules[mapping->module];
	if (offset > UINT32_MAX || index >= module->pages)
		return NULL;
	page = &capture.pages[module->first_page + index];
	return walk_search_rows(NULL, module->first_row + page->first, module->first_row + page->end, (uint32_t)offset);
}

UNTRACED static int walk_native(uint64_t pc, struct walk_native *ret)
{
	for (size_t i = 0; i < capture.unwinding.mappings.len; i++) {
		const struct duet_unwind_mapping *mapping = &capture.unwinding.mappings.items[i];
		const struct duet_unwind_row *row;

		if (pc < mapping->start || pc >= mapping->end)
			continue;
		row = find_row(mapping, pc);
		*ret = (struct walk_native){
			.pc = pc, .has_row = row != NULL, .is_file = mapping->code == DUET_CODE_FILE};
		if (row)
			ret->row = *row;
		return vec_push(&shot->natives, *ret) == 0;
	}
	return 0;
}

/* Each stub that a thread is in counts as a path of its own. */
static void take_stub(void)
{
	const struct jvm_code *code =
		shot->walk.ids[0] ? NULL : jvm_code_at(capture.agent->jvm, shot->regs.pc, shot->time_ns, 0);
	const char *name = code && code->stub_name ? intern_text(&capture.strings, code->stub_name) : NULL;

	if (name)
		take_way(hash_bytes(name, strlen(name), 0) % WAYS);
}

#define STACK_BYTES 16384
#define STACK_READ 512

/* What a wrong walk did not read, a right one may want to. */
static void take_stack(void)
{
	uint64_t from = shot->regs.general[4] - STACK_READ;
	uint8_t bytes[STACK_READ];

	for (uint32_t at = 0; at < STACK_BYTES; at += STACK_READ)
		(void)walk_read(NULL, bytes, STACK_READ, from + at);
}

static bool take_shot(struct shot *to, const struct tracee *tracee)
{
	shot = to;
	vec_clear(&shot->reads);
	vec_clear(&shot->bytes);
	vec_clear(&shot->natives);
	for (; shot->way_count; shot->way_count--)
		shot->is_way[shot->ways[shot->way_count - 1]] = false;
	if (!tracee_regs(tracee, &shot->regs, &shot->in_kernel))
		return false;
	shot->time_ns = clock_monotonic_ns();
	memset(&shot->walk.java, 0, sizeof(shot->walk.java));
	shot->walk.java.layout = *jvm_layout(capture.agent->jvm);
	ways.last = 0;
	ways.is_on = true;
	walk_run(&shot->walk, &shot->regs);
	ways.is_on = false;
	take_stub();
	if (capture.wants_bad)
		take_stack();
	return true;
}
