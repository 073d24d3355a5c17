/* SPDX-License-Identifier: MIT */
#include "runtime/inlining.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "runtime/jvm.h"

#define LEAF_STEP (DUET_PC_FLAGS + 1)
#define SHARED_MOST 4 /* stacks that have a frame of the record, on average */
#define BCI_BIAS 3 /* the least bci is DUET_BCI_NATIVE, -3: cells have no sign */

/* Nodes are counted from 1. */
enum column {
	PC_OFFSET, /* of each pc: from the start of the code, ascending */
	PC_LEAF, /* node of its leaf frame, times LEAF_STEP, plus the flags DUET_PC_… */
	NODE_CALLER, /* of each node: the node of the calling frame; 0: none */
	NODE_METHOD, /* index in `methods` */
	NODE_BCI, /* plus BCI_BIAS */
	COLUMNS
};

static size_t column_start(const struct inlining *inlining, enum column column)
{
	size_t pc_columns = column < NODE_CALLER ? column : NODE_CALLER;

	return pc_columns * inlining->pc_count + (column - pc_columns) * inlining->node_count;
}

static uint32_t *stack_hashes(const struct inlining *inlining)
{
	return (uint32_t *)(uintptr_t)(inlining->methods + inlining->method_count);
}

static char *cell_at(const struct inlining *inlining, enum column column, uint32_t row)
{
	char *cells = (char *)(stack_hashes(inlining) + inlining->stack_count);

	return cells + (column_start(inlining, column) + row) * inlining->width;
}

static uint32_t cell_get(const struct inlining *inlining, enum column column, uint32_t row)
{
	const char *at = cell_at(inlining, column, row);
	uint16_t narrow;
	uint32_t wide;

	if (inlining->width == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

static void cell_set(struct inlining *inlining, enum column column, uint32_t row, uint32_t value)
{
	uint16_t narrow = (uint16_t)value;
	bool is_wide = inlining->width == sizeof(value);

	memcpy(cell_at(inlining, column, row), is_wide ? (void *)&value : &narrow, inlining->width);
}

size_t inlining_bytes(const struct inlining *inlining)
{
	if (!inlining)
		return 0;
	return (size_t)(cell_at(inlining, COLUMNS, 0) - (const char *)inlining);
}

uint32_t inlining_frames(const struct inlining *inlining, uint64_t offset, struct duet_java_frame *ret_frames,
			 uint32_t *ret_flags)
{
	uint32_t low = 0, high = inlining->pc_count, depth = 0, leaf;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (cell_get(inlining, PC_OFFSET, middle) < offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == inlining->pc_count) {
		*ret_flags = DUET_PC_ESTIMATED | (inlining->method_count > 1 ? DUET_PC_MISSING : 0);
		return 0;
	}
	leaf = cell_get(inlining, PC_LEAF, low);
	*ret_flags = leaf & DUET_PC_FLAGS;
	for (uint32_t node = leaf / LEAF_STEP; node && depth < JVM_INLINING_DEPTH;
	     node = cell_get(inlining, NODE_CALLER, node - 1))
		ret_frames[depth++] = (struct duet_java_frame){
			.method = inlining->methods[cell_get(inlining, NODE_METHOD, node - 1)],
			.bci = (int32_t)(cell_get(inlining, NODE_BCI, node - 1) - BCI_BIAS),
		};
	return depth;
}

uint64_t inlining_hash(uint64_t hash, const struct duet_java_frame *caller)
{
	return hash_u64(hash ^ hash_u64(caller->method) ^ ((uint64_t)(uint32_t)caller->bci << 32));
}

static int by_value(const void *a, const void *b)
{
	uint32_t left, right;

	memcpy(&left, a, sizeof(left));
	memcpy(&right, b, sizeof(right));
	return left < right ? -1 : left > right;
}

bool inlining_has(const struct inlining *inlining, uint64_t hash)
{
	uint32_t wanted = (uint32_t)hash;

	return bsearch(&wanted, stack_hashes(inlining), inlining->stack_count, sizeof(wanted), by_value);
}

struct node {
	uint32_t caller;
	uint32_t method;
	uint32_t bci;
	bool has_pc;
};

struct builder {
	const struct duet_java_frame *frames; /* of the record */
	uint64_t unread; /* number of frames that may still be read */
	struct map known; /* hash -> a node or a method that has it */
	struct map stacks_read; /* frame and depth of a pc -> the node of its leaf */
	struct vec(struct node) nodes;
	struct vec(uint64_t) methods;
	struct vec(uint32_t) stacks;
	struct vec(struct duet_code_pc) pcs; /* with the cell of PC_LEAF in `frame` */
	bool failed; /* out of memory */
};

static void builder_release(struct builder *b)
{
	map_release(&b->known);
	map_release(&b->stacks_read);
	vec_release(&b->nodes);
	vec_release(&b->methods);
	vec_release(&b->stacks);
	vec_release(&b->pcs);
}

/* Unless their hashes are secret, an agent could make all of them equal. */
static uint64_t secret_hash(uint64_t a, uint64_t b)
{
	return hash_bytes((uint64_t[]){a, b}, 2 * sizeof(a), 0);
}

static uint32_t add_method(struct builder *b, uint64_t id)
{
	uint64_t hash = secret_hash(id, UINT64_MAX), index;

	if (map_get(&b->known, hash, &index) && index < b->methods.len && b->methods.items[index] == id)
		return (uint32_t)index;
	index = b->methods.len;
	b->failed |= map_put(&b->known, hash, index) < 0 || vec_push(&b->methods, id) < 0;
	return (uint32_t)index;
}

static bool is_node(const struct builder *b, uint64_t number, const struct node *node)
{
	const struct node *there = number && number <= b->nodes.len ? &b->nodes.items[number - 1] : NULL;

	return there && there->caller == node->caller && there->method == node->method && there->bci == node->bci;
}

/* Returns the number of the node. */
static uint32_t add_node(struct builder *b, uint32_t caller, const struct duet_java_frame *frame)
{
	struct node node = {
		.caller = caller,
		.method = add_method(b, frame->method),
		.bci = (uint32_t)frame->bci + BCI_BIAS,
	};
	uint64_t hash = secret_hash((uint64_t)node.caller << 32 | node.method, node.bci), number;

	if (map_get(&b->known, hash, &number) && is_node(b, number, &node))
		return (uint32_t)number;
	b->failed |= vec_push(&b->nodes, node) < 0 || map_put(&b->known, hash, b->nodes.len) < 0;
	return (uint32_t)b->nodes.len;
}

static void add_hash(struct builder *b, const struct duet_code_pc *pc)
{
	uint64_t hash = 0;

	if (pc->depth > INLINING_MATCH_DEPTH)
		return;
	for (uint32_t i = 0; i < pc->depth; i++)
		hash = inlining_hash(hash, &b->frames[pc->frame + i]);
	b->failed |= vec_push(&b->stacks, (uint32_t)hash) < 0;
}

/* Returns the node of the leaf. */
static uint32_t add_stack(struct builder *b, const struct duet_code_pc *pc)
{
	uint32_t node = 0;

	for (uint32_t i = pc->depth; i-- > 0 && !b->failed;)
		node = add_node(b, node, &b->frames[pc->frame + i]);
	if (b->failed || b->nodes.items[node - 1].has_pc)
		return node;
	b->nodes.items[node - 1].has_pc = true;
	add_hash(b, pc);
	return node;
}

/* Returns the node of the leaf; 0 for a stack that is left out: it is not known what is inlined there. */
static uint32_t stack_of(struct builder *b, const struct duet_code_pc *pc)
{
	uint64_t key = (uint64_t)pc->frame << 32 | pc->depth, node;

	if (map_get(&b->stacks_read, key, &node))
		return (uint32_t)node;
	if (!pc->depth || pc->depth > JVM_INLINING_DEPTH || pc->depth > b->unread)
		return 0;
	b->unread -= pc->depth;
	node = add_stack(b, pc);
	b->failed |= map_put(&b->stacks_read, key, node) < 0;
	return (uint32_t)node;
}

static void add_pcs(struct builder *b, const struct duet_code_load *record)
{
	const struct duet_code_pc *pcs = (const void *)(record + 1);

	for (uint32_t i = 0; i < record->pc_count && !b->failed; i++) {
		uint32_t leaf = stack_of(b, &pcs[i]);
		uint32_t flags = leaf ? pcs[i].flags & DUET_PC_FLAGS : DUET_PC_ESTIMATED | DUET_PC_MISSING;
		struct duet_code_pc pc = {.offset = pcs[i].offset, .frame = leaf * LEAF_STEP + flags};

		b->failed |= vec_push(&b->pcs, pc) < 0;
	}
}

static uint32_t cell_width(const struct builder *b)
{
	uint32_t most = b->nodes.len > b->methods.len ? (uint32_t)b->nodes.len : (uint32_t)b->methods.len;

	for (size_t i = 0; i < b->nodes.len; i++)
		most = b->nodes.items[i].bci > most ? b->nodes.items[i].bci : most;
	for (size_t i = 0; i < b->pcs.len; i++) {
		most = b->pcs.items[i].offset > most ? b->pcs.items[i].offset : most;
		most = b->pcs.items[i].frame > most ? b->pcs.items[i].frame : most;
	}
	return most > UINT16_MAX ? sizeof(uint32_t) : sizeof(uint16_t);
}

static void fill(struct inlining *inlining, const struct builder *b)
{
	memcpy(inlining->methods, b->methods.items, b->methods.len * sizeof(*b->methods.items));
	if (b->stacks.len)
		memcpy(stack_hashes(inlining), b->stacks.items, b->stacks.len * sizeof(*b->stacks.items));
	qsort(stack_hashes(inlining), b->stacks.len, sizeof(*b->stacks.items), by_value);
	for (uint32_t i = 0; i < b->pcs.len; i++) {
		cell_set(inlining, PC_OFFSET, i, b->pcs.items[i].offset);
		cell_set(inlining, PC_LEAF, i, b->pcs.items[i].frame);
	}
	for (uint32_t i = 0; i < b->nodes.len; i++) {
		cell_set(inlining, NODE_CALLER, i, b->nodes.items[i].caller);
		cell_set(inlining, NODE_METHOD, i, b->nodes.items[i].method);
		cell_set(inlining, NODE_BCI, i, b->nodes.items[i].bci);
	}
}

static struct inlining *build(const struct builder *b)
{
	const struct inlining sizes = {
		.pc_count = (uint32_t)b->pcs.len,
		.node_count = (uint32_t)b->nodes.len,
		.method_count = (uint32_t)b->methods.len,
		.stack_count = (uint32_t)b->stacks.len,
		.width = cell_width(b),
	};
	struct inlining *inlining = malloc(inlining_bytes(&sizes));

	if (!inlining)
		return NULL;
	*inlining = sizes;
	fill(inlining, b);
	return inlining;
}

int inlining_new(const struct duet_code_load *record, struct inlining **ret)
{
	const struct duet_code_pc *pcs = (const void *)(record + 1);
	struct builder b = {
		.frames = (const void *)(pcs + record->pc_count),
		.unread = (uint64_t)record->frame_count * SHARED_MOST,
	};

	*ret = NULL;
	add_pcs(&b, record);
	if (!b.failed && b.pcs.len) {
		*ret = build(&b);
		b.failed = !*ret;
	}
	builder_release(&b);
	return b.failed ? -ENOMEM : 0;
}
