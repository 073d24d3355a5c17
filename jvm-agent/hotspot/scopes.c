/* SPDX-License-Identifier: MIT */
#include "hotspot/scopes.h"

#include <stdlib.h>
#include <string.h>

#include "hotspot/instruction.h"

#define NO_ENTRY UINT32_MAX
#define CHECK_INSTRUCTIONS 40 /* most instructions, and jumps, from a check to the call that it may lead to; ... */
#define CHECK_JUMPS 2 /* ... a trap's block saves some registers before it */
#define NEAR_BLOCKS 2 /* an entry after more branches is less often right than the one before; measured */
#define NOP_BYTES 12 /* after each call since JDK 21; an entry for profilers comes after it */
#define NULL_CHECKS_READ (1u << 18) /* most null checks that are read to find their table, right or not */
#define CALLER_STEPS (8192 * STUB_CALLERS_CALL) /* most steps in byte code for one compilation */
#define X86_MOV_BYTES 10
#define JUMP_ROUNDS 2 /* jumps back are followed in the second */

/* An entry that is met on a way through the code. */
struct seen {
	uint32_t entry; /* index in `pcs`, or NO_ENTRY */
	uint16_t blocks; /* number of branches, jumps and targets on the way */
	bool is_check; /* met at a branch */
	bool is_aside; /* from code that branches there: right for calls, less often for others; measured */
};

struct step {
	uint32_t offset, bytes;
	enum instruction_kind kind;
	uint32_t target; /* index of a step, or NO_ENTRY */
	bool is_target;
	uint32_t from; /* where it is the target: index of the first branch or jump to it */
	bool is_request; /* struct instruction */
	struct seen own, next, previous;
};

struct choice {
	uint32_t frame, depth; /* of struct scopes; depth 0: none */
	uint32_t flags;
};

/* The search for the caller of a stub between two entries. */
struct between {
	uint32_t entries[2];
	bool is_after_check; /* no branch lies between the check of the first entry and the call */
	struct stub_callers search;
	struct choice scope; /* the frame that leads to it, and its callers; then also the methods on the way */
};

struct steps {
	struct step *items;
	uint32_t count;
	uint32_t budget; /* null checks that may still be read */
	bool *is_call; /* of each entry: it is that of a call that returns, not of a trap */
	uint32_t caller_steps; /* in byte code, that may still be made */
	struct between last; /* search */
	uint64_t *barren; /* struct stub_callers */
	struct scopes *of;
};

static const struct seen nothing = {.entry = NO_ENTRY};

/* ---- the instructions ---- */

/* Bytes that are no known instruction are passed one by one, and no way leads through them. */
static struct instruction read_at(const struct scopes *scopes, size_t at)
{
	struct instruction one;

	if (!instruction_read(scopes->code + at, scopes->code_bytes - at, &one))
		one = (struct instruction){.bytes = 1, .kind = INSTRUCTION_END};
	return one;
}

static uint32_t count_steps(const struct scopes *scopes)
{
	uint32_t count = 0;

	for (size_t at = 0; at < scopes->code_bytes; at += read_at(scopes, at).bytes)
		count++;
	return count;
}

static uint32_t find_step(const struct steps *steps, int64_t offset)
{
	uint32_t low = 0, high = steps->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (steps->items[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < steps->count && steps->items[low].offset == offset ? low : NO_ENTRY;
}

static void read_steps(struct steps *steps)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < steps->count; i++, at += steps->items[i - 1].bytes) {
		struct instruction one = read_at(steps->of, at);

		steps->items[i] = (struct step){.offset = at,
						.bytes = one.bytes,
						.kind = one.kind,
						.target = NO_ENTRY,
						.is_request = one.is_request,
						.own = nothing,
						.next = nothing,
						.previous = nothing};
	}
}

static void find_targets(struct steps *steps)
{
	for (uint32_t i = 0; i < steps->count; i++) {
		struct step *step = &steps->items[i];

		if (step->kind != INSTRUCTION_BRANCH && step->kind != INSTRUCTION_JUMP)
			continue;
		step->target = find_step(steps, step->offset + read_at(steps->of, step->offset).target);
		if (step->target == NO_ENTRY || steps->items[step->target].is_target)
			continue;
		steps->items[step->target].is_target = true;
		steps->items[step->target].from = i;
	}
}

/* ---- the entries ---- */

static bool is_safepoint(const struct scopes *of, uint32_t entry)
{
	return of->pcs[entry].flags & SCOPES_SAFEPOINT;
}

/* The block of a trap passes a request, and its call does not return. */
static bool is_trap(const struct steps *steps, uint32_t i)
{
	for (uint32_t done = 0; done < CHECK_INSTRUCTIONS && i-- > 0; done++) {
		if (steps->items[i].is_request)
			return true;
		if (steps->items[i].kind != INSTRUCTION_OTHER)
			break;
	}
	return false;
}

static void note_own(struct steps *steps, uint32_t i, uint32_t entry)
{
	steps->items[i].own.entry = entry;
	steps->is_call[entry] = steps->items[i].kind == INSTRUCTION_CALL && is_safepoint(steps->of, entry) &&
				!is_trap(steps, i);
}

/* An entry belongs to the instruction that ends at its offset. That of a poll lies where the poll begins. */
static void note_entries(struct steps *steps)
{
	const struct scopes *of = steps->of;
	uint32_t entry = 0;

	for (uint32_t i = 0; i < steps->count; i++) {
		struct step *step = &steps->items[i];

		while (entry < of->pc_count && of->pcs[entry].offset < step->offset + step->bytes)
			entry++;
		if (entry < of->pc_count && of->pcs[entry].offset == step->offset + step->bytes)
			note_own(steps, i, entry);
		else if (entry && of->pcs[entry - 1].offset == step->offset && i && step[-1].kind != INSTRUCTION_CALL &&
			 is_safepoint(of, entry - 1))
			step->own.entry = entry - 1;
	}
}

/* Gives calls the entry that comes after the instructions that mark the place for HotSpot. */
static void note_entries_after_nops(struct steps *steps)
{
	for (uint32_t i = 0; i < steps->count; i++) {
		struct step *call = &steps->items[i];
		uint32_t end = call->offset + call->bytes;

		for (uint32_t k = i + 1; call->kind == INSTRUCTION_CALL && call->own.entry == NO_ENTRY &&
					 k < steps->count && steps->items[k].kind == INSTRUCTION_OTHER &&
					 steps->items[k].offset + steps->items[k].bytes <= end + NOP_BYTES; k++)
			call->own = steps->items[k].own;
	}
}

/* Returns the entry of the call that the code from step `i` on leads to without another branch. */
static uint32_t trap_at(const struct steps *steps, uint32_t i)
{
	uint32_t jumps = 0;

	for (uint32_t done = 0; i < steps->count && done < CHECK_INSTRUCTIONS; done++) {
		const struct step *step = &steps->items[i];

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

static void note_branches(struct steps *steps)
{
	for (uint32_t i = 0; i < steps->count; i++)
		if (steps->items[i].kind == INSTRUCTION_BRANCH)
			note_check(&steps->items[i], trap_at(steps, steps->items[i].target));
}

/* ImplicitExceptionTable: a count, then for each access its offset and that of its trap. */
struct null_check {
	uint32_t access, trap;
};

/* Reads null check `index` of a table that begins at `words`. Returns false if it is none. */
static bool read_null_check(const struct steps *steps, const uint8_t *words, size_t index, uint32_t *ret_access,
			    uint32_t *ret_entry)
{
	struct null_check check;
	uint32_t trap;

	memcpy(&check, words + sizeof(uint32_t) + index * sizeof(check), sizeof(check));
	*ret_access = find_step(steps, check.access);
	trap = find_step(steps, check.trap);
	*ret_entry = trap == NO_ENTRY ? NO_ENTRY : trap_at(steps, trap);
	return *ret_access != NO_ENTRY && *ret_entry != NO_ENTRY;
}

/* The JVM does not export where the table begins. It is known by its contents: each of its traps leads to an entry. */
static bool note_null_checks(struct steps *steps, const uint8_t *words, size_t bytes)
{
	uint32_t count, access, entry;

	memcpy(&count, words, sizeof(count));
	if (!count || count > (bytes - sizeof(count)) / sizeof(struct null_check))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!steps->budget || !--steps->budget || !read_null_check(steps, words, i, &access, &entry))
			return false;
	for (uint32_t i = 0; i < count; i++)
		if (read_null_check(steps, words, i, &access, &entry))
			note_check(&steps->items[access], entry);
	return true;
}

static void find_null_checks(struct steps *steps)
{
	const struct scopes *of = steps->of;

	for (size_t at = 0; at + sizeof(uint32_t) <= of->table_bytes; at += sizeof(uint32_t))
		if (note_null_checks(steps, of->tables + at, of->table_bytes - at))
			return;
}

/* ---- the ways ---- */

static struct seen after(struct seen seen, bool is_new_block)
{
	seen.blocks += is_new_block && seen.blocks < UINT16_MAX;
	return seen;
}

static struct seen next_of(const struct steps *steps, uint32_t i)
{
	const struct step *step = &steps->items[i];

	if (step->own.entry != NO_ENTRY)
		return step->own;
	if (step->kind == INSTRUCTION_JUMP)
		return step->target == NO_ENTRY ? nothing : after(steps->items[step->target].next, true);
	if (step->kind == INSTRUCTION_END || i + 1 == steps->count)
		return nothing;
	return after(step[1].next, step->kind == INSTRUCTION_BRANCH);
}

static void find_next(struct steps *steps)
{
	for (int round = 0; round < JUMP_ROUNDS; round++)
		for (uint32_t i = steps->count; i-- > 0;)
			steps->items[i].next = next_of(steps, i);
}

/* What comes before a step that no instruction in front of it leads to: that before the branch to it. */
static struct seen before_branch(const struct steps *steps, uint32_t i)
{
	const struct step *step = &steps->items[i], *from = &steps->items[step->from];
	struct seen seen = from->own.entry != NO_ENTRY ? from->own : from->previous;

	seen.is_aside = true;
	return step->is_target && step->from < i ? seen : nothing;
}

static void find_previous(struct steps *steps)
{
	struct seen seen = nothing;

	for (uint32_t i = 0; i < steps->count; i++) {
		struct step *step = &steps->items[i];
		bool is_met = step->own.entry != NO_ENTRY &&
			      (step->own.is_check || step->kind == INSTRUCTION_CALL || steps->of->is_exact);

		if (seen.entry == NO_ENTRY)
			seen = before_branch(steps, i);
		step->previous = seen = after(seen, step->is_target);
		if (is_met)
			seen = step->own;
		else if (step->kind == INSTRUCTION_JUMP || step->kind == INSTRUCTION_END)
			seen = nothing;
		else
			seen = after(seen, step->kind == INSTRUCTION_BRANCH);
	}
}

/* ---- the choice ---- */

/* True for the same methods with the same calls in them; the leaf may be elsewhere in its method. */
static bool same_scope(const struct scopes *of, uint32_t a, uint32_t b)
{
	const struct duet_java_frame *left = of->frames + of->pcs[a].frame, *right = of->frames + of->pcs[b].frame;

	if (of->pcs[a].depth != of->pcs[b].depth || left->method != right->method)
		return false;
	return !memcmp(left + 1, right + 1, (of->pcs[a].depth - 1) * sizeof(*left));
}

static struct choice entry_choice(const struct scopes *of, uint32_t entry, uint32_t of_pc)
{
	if (entry >= of->pc_count)
		return (struct choice){0};
	return (struct choice){of->pcs[entry].frame, of->pcs[entry].depth, of_pc};
}

/* Returns the outermost `depth` frames of a choice. */
static struct choice outer_part(struct choice choice, uint32_t depth)
{
	choice.frame += choice.depth - depth;
	choice.depth = depth;
	return choice;
}

/* The method itself: no way leads from or to one of the methods that are inlined into it. */
static struct choice choose_without_ways(const struct scopes *of, uint32_t after)
{
	uint32_t entry = after < of->pc_count ? after : of->pc_count - 1;
	uint32_t missing = of->pcs[entry].depth > 1 ? DUET_PC_MISSING : 0;

	return outer_part(entry_choice(of, entry, DUET_PC_ESTIMATED | missing), 1);
}

/*
 * In which case which entry is right most often was measured with -XX:+DebugNonSafepoints as the truth. Code that a
 * check leads to has its scope; after a call that has returned it is HotSpot's choice, the entry after the instruction.
 * Code between two entries of one scope may still be of another, as the compilers move instructions.
 */
static struct choice choose(const struct scopes *of, const struct step *step, uint32_t after)
{
	const struct seen *next = &step->next, *previous = &step->previous;
	bool has_next = next->entry != NO_ENTRY, has_previous = previous->entry != NO_ENTRY && !previous->is_aside;

	if (of->is_exact)
		return entry_choice(of, after, DUET_PC_EXACT);
	if (step->own.entry != NO_ENTRY)
		return entry_choice(of, step->own.entry, step->own.is_check ? DUET_PC_ESTIMATED : 0);
	if (has_next && (!next->blocks || (has_previous && same_scope(of, next->entry, previous->entry))))
		return entry_choice(of, next->entry, DUET_PC_ESTIMATED);
	if (has_previous && previous->is_check && (has_next || !previous->blocks))
		return entry_choice(of, previous->entry, DUET_PC_ESTIMATED);
	if (has_next && !has_previous && next->blocks <= NEAR_BLOCKS)
		return entry_choice(of, next->entry, DUET_PC_ESTIMATED);
	if (!has_next && previous->entry == NO_ENTRY)
		return choose_without_ways(of, after);
	return entry_choice(of, after < of->pc_count || !has_next ? after : next->entry, DUET_PC_ESTIMATED);
}

static const struct duet_java_frame *leaf_of(const struct scopes *of, uint32_t entry)
{
	return &of->frames[of->pcs[entry].frame];
}

/* Returns the number of frames, from the outermost inward, that two entries share: at least the method itself. */
static uint32_t common_depth(const struct scopes *of, uint32_t a, uint32_t b)
{
	const struct duet_code_pc *left = &of->pcs[a], *right = &of->pcs[b];
	uint32_t least = left->depth < right->depth ? left->depth : right->depth, depth = 1;

	while (depth < least && !memcmp(leaf_of(of, a) + left->depth - depth, leaf_of(of, b) + right->depth - depth,
					sizeof(struct duet_java_frame)) &&
	       leaf_of(of, a)[left->depth - depth - 1].method == leaf_of(of, b)[right->depth - depth - 1].method)
		depth++;
	return depth;
}

static bool is_call(const void *context, const struct duet_java_frame *frame);

static void begin_search(struct steps *steps, struct between *ret, int kind)
{
	*ret = (struct between){
		.search = {.kind = kind, .is_call = is_call, .context = steps, .limit = STUB_CALLERS_NEAR}};
	ret->search.barren = steps->barren;
	ret->search.budget = &steps->caller_steps;
}

/* True if the entry's byte code may have made the call of a stub: not if it calls a method that is no stub. */
static bool may_call_stub(struct steps *steps, uint32_t entry, int kind)
{
	const struct duet_java_frame *leaf = entry < steps->of->pc_count ? leaf_of(steps->of, entry) : NULL;
	enum scopes_calls calls = leaf ? steps->of->calls(leaf) : SCOPES_CALLS_NOTHING;
	struct between b;

	if (calls == SCOPES_CALLS_NOTHING || (calls == SCOPES_CALLS_METHOD && steps->is_call[entry]))
		return false;
	if (!kind || stub_callers_is_runtime(kind))
		return true;
	begin_search(steps, &b, kind);
	steps->of->find_callers(&b.search, leaf->method, leaf->bci, leaf->bci);
	return b.search.ways;
}

static struct choice guess_for_call(struct steps *steps, const struct step *step, uint32_t after, int kind)
{
	const struct scopes *of = steps->of;
	const struct seen *next = &step->next, *previous = &step->previous;
	bool has_both = next->entry != NO_ENTRY && previous->entry != NO_ENTRY;
	bool is_sure = of->is_exact && has_both && same_scope(of, next->entry, previous->entry);
	const uint32_t candidates[] = {
		is_sure ? next->entry : NO_ENTRY,
		is_sure || (!previous->blocks && !of->is_exact) ? previous->entry : NO_ENTRY,
		of->is_exact ? after : next->entry,
		previous->entry,
		next->entry == NO_ENTRY && previous->entry == NO_ENTRY ? after : NO_ENTRY,
	};
	uint32_t outer = previous->entry != NO_ENTRY ? previous->entry : after;
	struct choice choice;

	for (size_t i = 0; i < sizeof(candidates) / sizeof(*candidates) && (!kind || of->is_exact); i++)
		if (may_call_stub(steps, candidates[i], kind))
			return entry_choice(of, candidates[i], is_sure && i < 2 ? DUET_PC_EXACT : DUET_PC_ESTIMATED);
	if (outer >= of->pc_count)
		outer = next->entry;
	if (outer == NO_ENTRY && kind)
		return outer_part(entry_choice(of, 0, DUET_PC_ESTIMATED | DUET_PC_MISSING), 1);
	choice = entry_choice(of, outer, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	return next->entry == NO_ENTRY ? choice : outer_part(choice, common_depth(of, outer, next->entry));
}

/* ---- calls of stubs whose callers are known ---- */

static bool is_call(const void *context, const struct duet_java_frame *frame)
{
	const struct steps *steps = context;

	for (uint32_t i = 0; i < steps->of->pc_count; i++)
		if (steps->is_call[i] && leaf_of(steps->of, i)->method == frame->method &&
		    leaf_of(steps->of, i)->bci == frame->bci)
			return true;
	return false;
}

/* Searches the frame of an entry that has `depth` callers, itself counted. */
static void search_frame(struct steps *steps, struct between *b, uint32_t entry, uint32_t depth, int32_t begin,
			 int32_t end)
{
	struct choice scope = outer_part(entry_choice(steps->of, entry, DUET_PC_ESTIMATED), depth);
	uint32_t ways = b->search.ways;

	steps->of->find_callers(&b->search, steps->of->frames[scope.frame].method, begin, end);
	if (!ways && b->search.ways)
		b->scope = scope;
}

static int32_t bci_at(const struct scopes *of, uint32_t entry, uint32_t depth)
{
	return leaf_of(of, entry)[of->pcs[entry].depth - depth].bci;
}

/* At the only entry that is known, or else on the side of it in all its frames: before it, if it is `e`. */
static void search_beside(struct steps *steps, struct between *b, uint32_t a, uint32_t e)
{
	const struct scopes *of = steps->of;
	bool is_before = a == NO_ENTRY;
	uint32_t entry = is_before ? e : a, leaf = of->pcs[entry].depth;

	search_frame(steps, b, entry, leaf, bci_at(of, entry, leaf), bci_at(of, entry, leaf));
	for (uint32_t depth = b->search.ways ? 0 : leaf; depth; depth--) {
		int32_t bci = bci_at(of, entry, depth), calls = depth < leaf;

		search_frame(steps, b, entry, depth, is_before ? 0 : bci + calls, is_before ? bci - calls : INT32_MAX);
	}
	for (uint32_t depth = leaf; depth && !b->search.ways; depth--)
		search_frame(steps, b, entry, depth, 0, INT32_MAX);
}

/*
 * From what follows entry `a` in its frames, through what is between both in the frame that both are in, to `e`. What
 * comes right after a check is in the innermost of its frames that leads to a stub.
 */
static void search_between(struct steps *steps, struct between *b, uint32_t a, uint32_t e)
{
	const struct scopes *of = steps->of;
	uint32_t shared = common_depth(of, a, e);
	int32_t begin = bci_at(of, a, shared), end = bci_at(of, e, shared);

	for (uint32_t depth = of->pcs[a].depth; depth > shared; depth--) {
		search_frame(steps, b, a, depth, bci_at(of, a, depth) + (depth < of->pcs[a].depth), INT32_MAX);
		if (b->is_after_check && b->search.ways)
			return;
	}
	for (uint32_t depth = of->pcs[e].depth; depth > shared; depth--)
		search_frame(steps, b, e, depth, 0, bci_at(of, e, depth) - (depth < of->pcs[e].depth));
	search_frame(steps, b, e, shared, begin + (shared < of->pcs[a].depth), end - (shared < of->pcs[e].depth));
	for (uint32_t depth = of->pcs[a].depth + of->pcs[e].depth; depth && !b->search.ways; depth--) {
		if (depth <= of->pcs[e].depth)
			search_frame(steps, b, e, depth, 0, INT32_MAX);
		if (depth <= of->pcs[a].depth && depth > shared)
			search_frame(steps, b, a, depth, 0, INT32_MAX);
	}
}

static void search_near(struct steps *steps, struct between *b)
{
	uint32_t a = b->entries[0], e = b->entries[1];

	if (a == NO_ENTRY && e == NO_ENTRY)
		search_frame(steps, b, 0, 1, 0, INT32_MAX);
	else if (a == NO_ENTRY || e == NO_ENTRY)
		search_beside(steps, b, a, e);
	else
		search_between(steps, b, a, e);
}

/* Adds the frames of the way to those of its first method's callers. */
static struct choice follow(struct scopes *of, const struct between *b)
{
	const struct stub_callers *search = &b->search;
	struct duet_java_frame *frames = of->frames + of->frame_count;
	struct choice choice = {of->frame_count, search->depth + b->scope.depth - 1, DUET_PC_ESTIMATED};

	if (of->frame_count + choice.depth > of->most_frames)
		return (struct choice){0};
	for (uint32_t i = 0; i < search->depth; i++)
		frames[i] = search->way[search->depth - 1 - i];
	memcpy(frames + search->depth, of->frames + b->scope.frame + 1, (b->scope.depth - 1) * sizeof(*frames));
	of->frame_count += choice.depth;
	return choice;
}

/* Returns the scope of the only way to the stub, if there is one: anywhere, if no way leads to an entry. */
static struct choice choose_for_stub(struct steps *steps, const struct step *step, int kind)
{
	uint32_t e = step->next.entry, a = step->previous.entry;
	bool is_after_check = step->previous.is_check && !step->previous.blocks && !step->previous.is_aside;
	struct between *b = &steps->last;

	if (b->search.kind != kind || b->entries[0] != a || b->entries[1] != e || b->is_after_check != is_after_check) {
		begin_search(steps, b, kind);
		b->is_after_check = is_after_check;
		b->entries[0] = a;
		b->entries[1] = e;
		search_near(steps, b);
		b->search.limit = STUB_CALLERS_DEPTH;
		if (!b->search.ways)
			search_near(steps, b);
		b->scope = b->search.ways == 1 && steps->caller_steps ? follow(steps->of, b) : (struct choice){0};
	}
	return b->scope;
}

/* In code of C2, the address is in the register that the instruction before has loaded. */
static uint64_t target_of(const struct scopes *of, const struct step *step)
{
	const uint8_t *before = of->code + step->offset - X86_MOV_BYTES;
	int64_t to = read_at(of, step->offset).target;
	uint64_t address = 0;

	if (to)
		return of->address + step->offset + (uint64_t)to;
	if (step->offset >= X86_MOV_BYTES && before[0] == 0x49 && before[1] == 0xba) /* mov r10, imm64 */
		memcpy(&address, before + 2, sizeof(address));
	return address;
}

/*
 * Chooses the scope of a call that is no safepoint: of a stub or of the runtime. For some of these calls the compilers
 * record the scope of other code; they record none where no method that is inlined there has a safepoint.
 */
static struct choice choose_for_call(struct steps *steps, const struct step *step, uint32_t after)
{
	const struct scopes *of = steps->of;
	int kind = of->stub_at(target_of(of, step));
	struct choice choice = {0};

	if (of->is_exact && step->own.entry != NO_ENTRY && may_call_stub(steps, step->own.entry, kind))
		return entry_choice(of, step->own.entry, DUET_PC_EXACT);
	if (of->is_exact)
		choice = guess_for_call(steps, step, after, kind);
	if (kind && (!of->is_exact || choice.flags & DUET_PC_MISSING))
		choice = choose_for_stub(steps, step, kind);
	return choice.depth ? choice : guess_for_call(steps, step, after, kind);
}

static bool is_leaf_call(const struct scopes *of, const struct step *step)
{
	return step->kind == INSTRUCTION_CALL &&
	       (step->own.entry == NO_ENTRY || !is_safepoint(of, step->own.entry));
}

static uint32_t entry_after(const struct scopes *of, const struct step *step, uint32_t from)
{
	while (from < of->pc_count && of->pcs[from].offset < step->offset + step->bytes)
		from++;
	return from;
}

/* Adds an instruction to the last entry, if that has its scope too, or to a new one. False: there is no room. */
static bool add(struct duet_code_pc *table, uint32_t *count, uint32_t most, struct duet_code_pc pc)
{
	struct duet_code_pc *last = *count ? &table[*count - 1] : NULL;

	if (last && last->frame == pc.frame && last->depth == pc.depth && last->flags == pc.flags) {
		last->offset = pc.offset;
		return true;
	}
	if (*count == most)
		return false;
	table[(*count)++] = pc;
	return true;
}

/* Where nothing is known to be inlined, next to no code is of another method; measured. */
static bool has_inlined(const struct scopes *of)
{
	for (uint32_t i = 0; i < of->pc_count; i++)
		if (of->pcs[i].depth > 1)
			return true;
	return false;
}

static bool make_table(struct steps *steps, struct duet_code_pc *table, uint32_t most, uint32_t *ret_count)
{
	const struct scopes *of = steps->of;
	bool is_flat = !has_inlined(of);
	uint32_t after = 0;

	for (uint32_t i = 0; i < steps->count; i++) {
		const struct step *step = &steps->items[i];
		bool is_call = is_leaf_call(of, step);
		struct choice choice;
		struct duet_code_pc pc;

		after = entry_after(of, step, after);
		choice = is_call ? choose_for_call(steps, step, after) : choose(of, step, after);
		if (!choice.depth)
			continue;
		if (is_flat && !is_call)
			choice.flags &= ~DUET_PC_ESTIMATED;
		pc = (struct duet_code_pc){
			.offset = step->offset + step->bytes,
			.frame = choice.frame,
			.depth = choice.depth,
			.flags = choice.flags | (of->is_exact ? DUET_PC_EXACT : 0),
		};
		if (!add(table, ret_count, most, pc))
			return false;
	}
	return true;
}

struct duet_code_pc *scopes_estimate(struct scopes *scopes, uint32_t most, uint32_t *ret_count)
{
	struct steps steps = {
		.count = count_steps(scopes), .budget = NULL_CHECKS_READ, .caller_steps = CALLER_STEPS, .of = scopes};
	struct duet_code_pc *table = malloc((most + 1) * sizeof(*table));

	*ret_count = 0;
	steps.items = malloc((steps.count + 1) * sizeof(*steps.items));
	steps.is_call = calloc(scopes->pc_count + 1, sizeof(*steps.is_call));
	steps.barren = calloc(STUB_CALLERS_BARREN, sizeof(*steps.barren));
	if (!table || !steps.items || !steps.is_call || !steps.barren)
		goto out;
	read_steps(&steps);
	find_targets(&steps);
	note_entries(&steps);
	if (scopes->is_exact) {
		note_entries_after_nops(&steps);
	} else {
		note_branches(&steps);
		find_null_checks(&steps);
	}
	find_next(&steps);
	find_previous(&steps);
	if (!make_table(&steps, table, most, ret_count))
		*ret_count = 0;
out:
	free(steps.barren);
	free(steps.is_call);
	free(steps.items);
	if (!*ret_count) {
		free(table);
		return NULL;
	}
	return table;
}
