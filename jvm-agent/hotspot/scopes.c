/* SPDX-License-Identifier: MIT */
#include "hotspot/scopes.h"

#include <stdlib.h>
#include <string.h>

#include "hotspot/ways.h"
#include "memory.h"

#define NEAR_BLOCKS 2 /* an entry after more branches is less often right than the one before; measured */
/* Most steps in byte code for one compilation: 22 us each where each read is a system call, else 1 us; measured. */
#define CALLER_STEPS ((MEMORY_IS_KEPT ? 32768 : 4096) * STUB_CALLERS_CALL)
#define X86_MOV_BYTES 10

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

/* The choice for each instruction of one compilation. */
struct chooser {
	struct ways ways;
	uint32_t caller_steps; /* in byte code, that may still be made */
	struct between last; /* search */
	uint64_t *barren; /* struct stub_callers */
	uintptr_t classes[SCOPES_CLASSES];
	uint32_t class_count;
	bool has_classes; /* they were looked for */
	struct scopes *of;
};

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
 * check leads to has its scope, and after a branch that of the entry it leads to; after a call that has returned it is
 * HotSpot's choice, the entry after the instruction. Code between two entries of one scope may still be of another, as
 * the compilers move instructions.
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
	if (has_previous && previous->is_check && !previous->blocks)
		return entry_choice(of, previous->entry, DUET_PC_ESTIMATED);
	if (has_next && (has_previous ? previous->is_check : next->blocks <= NEAR_BLOCKS))
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

	while (depth < least &&
	       !memcmp(leaf_of(of, a) + left->depth - depth, leaf_of(of, b) + right->depth - depth,
		       sizeof(struct duet_java_frame)) &&
	       leaf_of(of, a)[left->depth - depth - 1].method == leaf_of(of, b)[right->depth - depth - 1].method)
		depth++;
	return depth;
}

static bool is_call(const void *context, const struct duet_java_frame *frame);

static void begin_search(struct chooser *chooser, struct between *ret, int kind)
{
	*ret = (struct between){
		.search = {.kind = kind, .is_call = is_call, .context = chooser, .limit = STUB_CALLERS_NEAR}};
	if (!chooser->has_classes)
		chooser->class_count = chooser->of->find_classes(chooser->of, chooser->classes);
	chooser->has_classes = true;
	ret->search.classes = chooser->classes;
	ret->search.class_count = chooser->class_count;
	ret->search.barren = chooser->barren;
	ret->search.budget = &chooser->caller_steps;
}

/* True if the entry's byte code may have made the call of a stub: not if it calls a method that is no stub. */
static bool may_call_stub(struct chooser *chooser, uint32_t entry, int kind)
{
	const struct duet_java_frame *leaf = entry < chooser->of->pc_count ? leaf_of(chooser->of, entry) : NULL;
	enum scopes_calls calls = leaf ? chooser->of->calls(leaf) : SCOPES_CALLS_NOTHING;
	struct between b;

	if (calls == SCOPES_CALLS_NOTHING || (calls == SCOPES_CALLS_METHOD && chooser->ways.is_call[entry]))
		return false;
	if (!kind || stub_callers_is_runtime(kind))
		return true;
	begin_search(chooser, &b, kind);
	chooser->of->find_callers(&b.search, leaf->method, leaf->bci, leaf->bci);
	return b.search.ways;
}

static struct choice guess_for_call(struct chooser *chooser, const struct step *step, uint32_t after, int kind)
{
	const struct scopes *of = chooser->of;
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
		if (may_call_stub(chooser, candidates[i], kind))
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
	const struct chooser *chooser = context;

	for (uint32_t i = 0; i < chooser->of->pc_count; i++)
		if (chooser->ways.is_call[i] && leaf_of(chooser->of, i)->method == frame->method &&
		    leaf_of(chooser->of, i)->bci == frame->bci)
			return true;
	return false;
}

/* Searches the frame of an entry that has `depth` callers, itself counted. */
static void search_frame(struct chooser *chooser, struct between *b, uint32_t entry, uint32_t depth, int32_t begin,
			 int32_t end)
{
	struct choice scope = outer_part(entry_choice(chooser->of, entry, DUET_PC_ESTIMATED), depth);
	uint32_t ways = b->search.ways;

	chooser->of->find_callers(&b->search, chooser->of->frames[scope.frame].method, begin, end);
	if (!ways && b->search.ways)
		b->scope = scope;
	else if (b->search.ways > ways)
		b->search.depth = 0;
}

static int32_t bci_at(const struct scopes *of, uint32_t entry, uint32_t depth)
{
	return leaf_of(of, entry)[of->pcs[entry].depth - depth].bci;
}

/* At the only entry that is known, or else on the side of it in all its frames: before it, if it is `e`. */
static void search_beside(struct chooser *chooser, struct between *b, uint32_t a, uint32_t e)
{
	const struct scopes *of = chooser->of;
	bool is_before = a == NO_ENTRY;
	uint32_t entry = is_before ? e : a, leaf = of->pcs[entry].depth;

	search_frame(chooser, b, entry, leaf, bci_at(of, entry, leaf), bci_at(of, entry, leaf));
	for (uint32_t depth = b->search.ways ? 0 : leaf; depth; depth--) {
		int32_t bci = bci_at(of, entry, depth), calls = depth < leaf;

		search_frame(chooser, b, entry, depth, is_before ? 0 : bci + calls,
			     is_before ? bci - calls : INT32_MAX);
	}
	for (uint32_t depth = leaf; depth && !b->search.ways; depth--)
		search_frame(chooser, b, entry, depth, 0, INT32_MAX);
}

/*
 * From what follows entry `a` in its frames, through what is between both in the frame that both are in, to `e`. What
 * comes right after a check is in the innermost of its frames that leads to a stub.
 */
static void search_between(struct chooser *chooser, struct between *b, uint32_t a, uint32_t e)
{
	const struct scopes *of = chooser->of;
	uint32_t shared = common_depth(of, a, e);
	int32_t begin = bci_at(of, a, shared), end = bci_at(of, e, shared);

	for (uint32_t depth = of->pcs[a].depth; depth > shared; depth--) {
		search_frame(chooser, b, a, depth, bci_at(of, a, depth) + (depth < of->pcs[a].depth), INT32_MAX);
		if (b->is_after_check && b->search.ways)
			return;
	}
	for (uint32_t depth = of->pcs[e].depth; depth > shared; depth--)
		search_frame(chooser, b, e, depth, 0, bci_at(of, e, depth) - (depth < of->pcs[e].depth));
	search_frame(chooser, b, e, shared, begin + (shared < of->pcs[a].depth), end - (shared < of->pcs[e].depth));
	for (uint32_t depth = of->pcs[a].depth + of->pcs[e].depth; depth && !b->search.ways; depth--) {
		if (depth <= of->pcs[e].depth)
			search_frame(chooser, b, e, depth, 0, INT32_MAX);
		if (depth <= of->pcs[a].depth && depth > shared)
			search_frame(chooser, b, a, depth, 0, INT32_MAX);
	}
}

static void search_near(struct chooser *chooser, struct between *b)
{
	uint32_t a = b->entries[0], e = b->entries[1];

	if (a == NO_ENTRY && e == NO_ENTRY)
		search_frame(chooser, b, 0, 1, 0, INT32_MAX);
	else if (a == NO_ENTRY || e == NO_ENTRY)
		search_beside(chooser, b, a, e);
	else
		search_between(chooser, b, a, e);
}

/*
 * Adds the frames of the way to those of its first method's callers. What the only way leads to is no estimate: of 8400
 * samples, 12 were of another method; measured. Where scopes are recorded, the other witness may read another entry.
 */
static struct choice follow(struct scopes *of, const struct between *b)
{
	const struct stub_callers *search = &b->search;
	struct duet_java_frame *frames = of->frames + of->frame_count;
	struct choice choice = {of->frame_count, search->depth + b->scope.depth - 1,
				of->is_exact ? DUET_PC_ESTIMATED : 0};

	if (!search->depth || of->frame_count + choice.depth > of->most_frames)
		return (struct choice){0};
	if (search->ways > 1)
		choice.flags = DUET_PC_ESTIMATED | DUET_PC_MISSING;
	for (uint32_t i = 0; i < search->depth; i++)
		frames[i] = search->way[search->depth - 1 - i];
	memcpy(frames + search->depth, of->frames + b->scope.frame + 1, (b->scope.depth - 1) * sizeof(*frames));
	of->frame_count += choice.depth;
	return choice;
}

/* Returns the scope of the only way to the stub, if there is one: anywhere, if no way leads to an entry. */
static struct choice choose_for_stub(struct chooser *chooser, const struct step *step, int kind)
{
	uint32_t e = step->next.entry, a = step->previous.entry;
	bool is_after_check = step->previous.is_check && !step->previous.blocks && !step->previous.is_aside;
	struct between *b = &chooser->last;

	if (b->search.kind != kind || b->entries[0] != a || b->entries[1] != e || b->is_after_check != is_after_check) {
		begin_search(chooser, b, kind);
		b->is_after_check = is_after_check;
		b->entries[0] = a;
		b->entries[1] = e;
		search_near(chooser, b);
		b->search.limit = STUB_CALLERS_DEPTH;
		if (!b->search.ways)
			search_near(chooser, b);
		b->scope = b->search.ways && chooser->caller_steps ? follow(chooser->of, b) : (struct choice){0};
	}
	return b->scope;
}

/* In code of C2, the address is in the register that the instruction before has loaded. */
static uint64_t target_of(const struct scopes *of, const struct step *step)
{
	const uint8_t *before = of->code + step->offset - X86_MOV_BYTES;
	int64_t to = ways_read(of, step->offset).target;
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
static struct choice choose_for_call(struct chooser *chooser, const struct step *step, uint32_t after)
{
	const struct scopes *of = chooser->of;
	int kind = of->stub_at(target_of(of, step));
	struct choice choice = {0};

	if (of->is_exact && step->own.entry != NO_ENTRY && may_call_stub(chooser, step->own.entry, kind))
		return entry_choice(of, step->own.entry, DUET_PC_EXACT);
	if (of->is_exact)
		choice = guess_for_call(chooser, step, after, kind);
	if (kind && (!of->is_exact || choice.flags & DUET_PC_MISSING))
		choice = choose_for_stub(chooser, step, kind);
	return choice.depth ? choice : guess_for_call(chooser, step, after, kind);
}

static bool is_leaf_call(const struct scopes *of, const struct step *step)
{
	return step->kind == INSTRUCTION_CALL &&
	       (step->own.entry == NO_ENTRY || !ways_is_safepoint(of, step->own.entry));
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

/* Where calls are recorded and no method is inlined, next to no code is of another method; measured. */
static bool may_have_inlined(const struct scopes *of)
{
	for (uint32_t i = 0; i < of->pc_count; i++)
		if (of->pcs[i].depth > 1 || of->pcs[i].flags & SCOPES_NOTHING)
			return true;
	return false;
}

static bool make_table(struct chooser *chooser, struct duet_code_pc *table, uint32_t most, uint32_t *ret_count)
{
	const struct scopes *of = chooser->of;
	bool is_flat = !may_have_inlined(of);
	uint32_t after = 0;

	for (uint32_t i = 0; i < chooser->ways.count; i++) {
		const struct step *step = &chooser->ways.items[i];
		bool is_call = is_leaf_call(of, step);
		struct choice choice;
		struct duet_code_pc pc;

		after = entry_after(of, step, after);
		choice = is_call ? choose_for_call(chooser, step, after) : choose(of, step, after);
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
	struct chooser chooser = {.caller_steps = CALLER_STEPS, .of = scopes};
	struct duet_code_pc *table = malloc((most + 1) * sizeof(*table));

	*ret_count = 0;
	chooser.barren = calloc(STUB_CALLERS_BARREN, sizeof(*chooser.barren));
	if (!table || !chooser.barren || ways_find(&chooser.ways, scopes))
		goto out;
	if (!make_table(&chooser, table, most, ret_count))
		*ret_count = 0;
	ways_free(&chooser.ways);
out:
	free(chooser.barren);
	if (!*ret_count) {
		free(table);
		return NULL;
	}
	return table;
}
