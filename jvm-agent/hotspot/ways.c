/* SPDX-License-Identifier: MIT */
#include "hotspot/ways.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_INSTRUCTIONS 40 /* most instructions, and jumps, from a check to the call that it may lead to; ... */
#define CHECK_JUMPS 2 /* ... a trap's block saves some registers before it */
#define NOP_BYTES 12 /* after each call since JDK 21; an entry for profilers comes after it */
#define NULL_CHECKS_READ (1u << 18) /* most null checks that are read to find their table, right or not */
#define JUMP_ROUNDS 2 /* jumps back are followed in the second */

static const struct seen nothing = {.entry = NO_ENTRY};

/* ---- the instructions ---- */

struct instruction ways_read(const struct scopes *scopes, size_t at)
{
	struct instruction one;

	if (!instruction_read(scopes->code + at, scopes->code_bytes - at, &one))
		one = (struct instruction){.bytes = 1, .kind = INSTRUCTION_END};
	return one;
}

static uint32_t count_steps(const struct scopes *scopes)
{
	uint32_t count = 0;

	for (size_t at = 0; at < scopes->code_bytes; at += ways_read(scopes, at).bytes)
		count++;
	return count;
}

static uint32_t find_step(const struct ways *ways, int64_t offset)
{
	uint32_t low = 0, high = ways->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ways->items[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ways->count && ways->items[low].offset == offset ? low : NO_ENTRY;
}

static void read_steps(struct ways *ways)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < ways->count; i++, at += ways->items[i - 1].bytes) {
		struct instruction one = ways_read(ways->of, at);

		ways->items[i] = (struct step){.offset = at,
					       .bytes = one.bytes,
					       .kind = one.kind,
					       .target = NO_ENTRY,
					       .is_request = one.is_request,
					       .own = nothing,
					       .next = nothing,
					       .previous = nothing};
	}
}

static void find_targets(struct ways *ways)
{
	for (uint32_t i = 0; i < ways->count; i++) {
		struct step *step = &ways->items[i];

		if (step->kind != INSTRUCTION_BRANCH && step->kind != INSTRUCTION_JUMP)
			continue;
		step->target = find_step(ways, step->offset + ways_read(ways->of, step->offset).target);
		if (step->target == NO_ENTRY || ways->items[step->target].is_target)
			continue;
		ways->items[step->target].is_target = true;
		ways->items[step->target].from = i;
	}
}

/* ---- the entries ---- */

bool ways_is_safepoint(const struct scopes *of, uint32_t entry)
{
	return of->pcs[entry].flags & SCOPES_SAFEPOINT;
}

/* The block of a trap passes a request, and its call does not return. */
static bool is_trap(const struct ways *ways, uint32_t i)
{
	for (uint32_t done = 0; done < CHECK_INSTRUCTIONS && i-- > 0; done++) {
		if (ways->items[i].is_request)
			return true;
		if (ways->items[i].kind != INSTRUCTION_OTHER)
			break;
	}
	return false;
}

static void note_own(struct ways *ways, uint32_t i, uint32_t entry)
{
	ways->items[i].own.entry = entry;
	ways->is_call[entry] =
		ways->items[i].kind == INSTRUCTION_CALL && ways_is_safepoint(ways->of, entry) && !is_trap(ways, i);
}

/* An entry belongs to the instruction that ends at its offset. That of a poll lies where the poll begins. */
static void note_entries(struct ways *ways)
{
	const struct scopes *of = ways->of;
	uint32_t entry = 0;

	for (uint32_t i = 0; i < ways->count; i++) {
		struct step *step = &ways->items[i];

		while (entry < of->pc_count && of->pcs[entry].offset < step->offset + step->bytes)
			entry++;
		if (entry < of->pc_count && of->pcs[entry].offset == step->offset + step->bytes)
			note_own(ways, i, entry);
		else if (entry && of->pcs[entry - 1].offset == step->offset && i && step[-1].kind != INSTRUCTION_CALL &&
			 ways_is_safepoint(of, entry - 1))
			step->own.entry = entry - 1;
	}
}

/* Gives calls the entry that comes after the instructions that mark the place for HotSpot. */
static void note_entries_after_nops(struct ways *ways)
{
	for (uint32_t i = 0; i < ways->count; i++) {
		struct step *call = &ways->items[i];
		uint32_t end = call->offset + call->bytes;

		for (uint32_t k = i + 1; call->kind == INSTRUCTION_CALL && call->own.entry == NO_ENTRY &&
					 k < ways->count && ways->items[k].kind == INSTRUCTION_OTHER &&
					 ways->items[k].offset + ways->items[k].bytes <= end + NOP_BYTES;
		     k++)
			call->own = ways->items[k].own;
	}
}

/* Returns the entry of the call that the code from step `i` on leads to without another branch. */
static uint32_t trap_at(const struct ways *ways, uint32_t i)
{
	uint32_t jumps = 0;

	for (uint32_t done = 0; i < ways->count && done < CHECK_INSTRUCTIONS; done++) {
		const struct step *step = &ways->items[i];

		if (step->kind == INSTRUCTION_CALL)
			return step->own.entry;
		if (step->kind == INSTRUCTION_BRANCH || step->kind == INSTRUCTION_END ||
		    (step->kind == INSTRUCTION_JUMP && ++jumps > CHECK_JUMPS))
			break;
		i = step->kind == INSTRUCTION_JUMP ? step->target : i + 1;
	}
	return NO_ENTRY;
}

static void note_check(struct step *step, uint32_t entry)
{
	if (step->own.entry == NO_ENTRY && entry != NO_ENTRY)
		step->own = (struct seen){.entry = entry, .is_check = true};
}

static void note_branches(struct ways *ways)
{
	for (uint32_t i = 0; i < ways->count; i++)
		if (ways->items[i].kind == INSTRUCTION_BRANCH)
			note_check(&ways->items[i], trap_at(ways, ways->items[i].target));
}

/* ImplicitExceptionTable: a count, then for each access its offset and that of its trap. */
struct null_check {
	uint32_t access, trap;
};

/* Reads null check `index` of a table that begins at `words`. Returns false if it is none. */
static bool read_null_check(const struct ways *ways, const uint8_t *words, size_t index, uint32_t *ret_access,
			    uint32_t *ret_entry)
{
	struct null_check check;
	uint32_t trap;

	memcpy(&check, words + sizeof(uint32_t) + index * sizeof(check), sizeof(check));
	*ret_access = find_step(ways, check.access);
	trap = find_step(ways, check.trap);
	*ret_entry = trap == NO_ENTRY ? NO_ENTRY : trap_at(ways, trap);
	return *ret_access != NO_ENTRY && *ret_entry != NO_ENTRY;
}

/* The JVM does not export where the table begins. It is known by its contents: each of its traps leads to an entry. */
static bool note_null_checks(struct ways *ways, const uint8_t *words, size_t bytes)
{
	uint32_t count, access, entry;

	memcpy(&count, words, sizeof(count));
	if (!count || count > (bytes - sizeof(count)) / sizeof(struct null_check))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!ways->budget || !--ways->budget || !read_null_check(ways, words, i, &access, &entry))
			return false;
	for (uint32_t i = 0; i < count; i++)
		if (read_null_check(ways, words, i, &access, &entry))
			note_check(&ways->items[access], entry);
	return true;
}

static void find_null_checks(struct ways *ways)
{
	const struct scopes *of = ways->of;

	for (size_t at = 0; at + sizeof(uint32_t) <= of->table_bytes; at += sizeof(uint32_t))
		if (note_null_checks(ways, of->tables + at, of->table_bytes - at))
			return;
}

/* ---- the ways ---- */

static struct seen after(struct seen seen, bool is_new_block)
{
	seen.blocks += is_new_block && seen.blocks < UINT16_MAX;
	return seen;
}

static struct seen next_of(const struct ways *ways, uint32_t i)
{
	const struct step *step = &ways->items[i];

	if (step->own.entry != NO_ENTRY)
		return step->own;
	if (step->kind == INSTRUCTION_JUMP)
		return step->target == NO_ENTRY ? nothing : after(ways->items[step->target].next, true);
	if (step->kind == INSTRUCTION_END || i + 1 == ways->count)
		return nothing;
	return after(step[1].next, step->kind == INSTRUCTION_BRANCH);
}

static void find_next(struct ways *ways)
{
	for (int round = 0; round < JUMP_ROUNDS; round++)
		for (uint32_t i = ways->count; i-- > 0;)
			ways->items[i].next = next_of(ways, i);
}

/* What comes before a step that no instruction in front of it leads to: that before the branch to it. */
static struct seen before_branch(const struct ways *ways, uint32_t i)
{
	const struct step *step = &ways->items[i], *from = &ways->items[step->from];
	struct seen seen = from->own.entry != NO_ENTRY ? from->own : from->previous;

	seen.is_aside = true;
	return step->is_target && step->from < i ? seen : nothing;
}

static void find_previous(struct ways *ways)
{
	struct seen seen = nothing;

	for (uint32_t i = 0; i < ways->count; i++) {
		struct step *step = &ways->items[i];
		bool is_met = step->own.entry != NO_ENTRY &&
			      (step->own.is_check || step->kind == INSTRUCTION_CALL || ways->of->is_exact);

		if (seen.entry == NO_ENTRY)
			seen = before_branch(ways, i);
		step->previous = seen = after(seen, step->is_target);
		if (is_met)
			seen = step->own;
		else if (step->kind == INSTRUCTION_JUMP || step->kind == INSTRUCTION_END)
			seen = nothing;
		else
			seen = after(seen, step->kind == INSTRUCTION_BRANCH);
	}
}

int ways_find(struct ways *ret, const struct scopes *scopes)
{
	*ret = (struct ways){.count = count_steps(scopes), .budget = NULL_CHECKS_READ, .of = scopes};
	ret->items = malloc((ret->count + 1) * sizeof(*ret->items));
	ret->is_call = calloc(scopes->pc_count + 1, sizeof(*ret->is_call));
	if (!ret->items || !ret->is_call) {
		ways_free(ret);
		return -ENOMEM;
	}
	read_steps(ret);
	find_targets(ret);
	note_entries(ret);
	if (scopes->is_exact) {
		note_entries_after_nops(ret);
	} else {
		note_branches(ret);
		find_null_checks(ret);
	}
	find_next(ret);
	find_previous(ret);
	return 0;
}

void ways_free(struct ways *ways)
{
	free(ways->is_call);
	free(ways->items);
	*ways = (struct ways){0};
}
