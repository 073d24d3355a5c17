/* SPDX-License-Identifier: MIT */
/*
 * The same walk as in bpf/unwind.bpf.c. What can be read without a fault is read directly: the copy of the stack, code,
 * and the code heaps' segment maps. The rest, a handful of words for each interpreted method, is read by system calls.
 */
#include "walk.h"

#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "jvmstructs.h"

#include "sigsafe.h"

#define WINDOW_BYTES 16384 /* of the stack, copied at a time */
#define WINDOW_BELOW 64 /* a step may look a few words back */
#define MAX_CALLS 512
#define CLOCK_FRAMES 256 /* in a deep stack, between two looks at the clock */

/* ---- reading memory ---- */

static bool read_window(const struct stack_copy *stack, void *to, size_t bytes, uintptr_t address)
{
	uintptr_t offset = address - stack->low;

	if (address < stack->low || offset > stack->bytes || stack->bytes - offset < bytes)
		return false;
	memcpy(to, stack->data + offset, bytes);
	return true;
}

/* Copies the stack around `address`: the current frame and those that follow it. */
static bool move_window(struct agent_walk *walk, uintptr_t address)
{
	uintptr_t sp = walk->cursor.sp;

	if (address < sp || address - sp >= SAFE_COPY_MAX || !walk->calls_left)
		return false;
	walk->calls_left--;
	return stack_copy(walk->stack, address - sp < WINDOW_BELOW ? sp : address - WINDOW_BELOW, WINDOW_BYTES);
}

/*
 * Returns the cached line that holds the address, or NULL. It reads whole lines, because a system call costs the same
 * for a line as for a word.
 */
static const unsigned char *find_line(struct agent_walk *walk, uintptr_t address)
{
	uintptr_t start = address - address % WALK_LINE_BYTES;
	uint32_t place = (uint32_t)((start / WALK_LINE_BYTES * 0x9e3779b97f4a7c15ull) >> 58);

	if (walk->line_at[place] == start)
		return walk->lines[place];
	walk->line_at[place] = 0;
	if (!walk->calls_left || !start)
		return NULL;
	walk->calls_left--;
	if (safe_copy(walk->lines[place], start, WALK_LINE_BYTES) != WALK_LINE_BYTES)
		return NULL;
	walk->line_at[place] = start;
	return walk->lines[place];
}

static int read_lines(struct agent_walk *walk, unsigned char *to, size_t bytes, uintptr_t address)
{
	while (bytes) {
		const unsigned char *line = find_line(walk, address);
		size_t at = address % WALK_LINE_BYTES;
		size_t piece = WALK_LINE_BYTES - at < bytes ? WALK_LINE_BYTES - at : bytes;

		if (!line)
			return -1;
		memcpy(to, line + at, piece);
		to += piece;
		address += piece;
		bytes -= piece;
	}
	return 0;
}

int walk_memory_read(struct agent_walk *walk, void *to, size_t bytes, uintptr_t address)
{
	if (read_window(walk->stack, to, bytes, address))
		return 0;
	if (jvmstructs_is_committed(address, bytes)) {
		memcpy(to, (const void *)address, bytes);
		return 0;
	}
	if (move_window(walk, address))
		return read_window(walk->stack, to, bytes, address) ? 0 : -1;
	return read_lines(walk, to, bytes, address);
}

const struct duet_unwind_row *walk_memory_row(const struct agent_walk *walk, uint32_t index)
{
	return tables_row(&walk->stay->tables, index);
}

/* ---- one frame ---- */

/* Makes walk->mapping the one that holds pc. Returns false when there is none. */
static bool find_mapping(struct agent_walk *walk, uint64_t pc)
{
	return (pc >= walk->mapping.start && pc < walk->mapping.end) ||
	       tables_find_mapping(&walk->stay->tables, &walk->slice, pc, &walk->mapping);
}

/* Returns the row that applies at pc, which must be in walk->mapping, or NULL. */
static const struct duet_unwind_row *find_row(const struct agent_walk *walk, uint64_t pc)
{
	uint64_t offset = pc - walk->mapping.base;
	struct duet_unwind_page page;

	if (!tables_find_page(&walk->stay->tables, walk->mapping.module, offset, &page))
		return NULL;
	return walk_search_rows(&walk->cursor, page.first, page.end, (uint32_t)offset);
}

static walk_result native_turn(struct agent_walk *walk)
{
	uint64_t pc = walk->cursor.pc - walk->cursor.is_return;
	bool is_known = find_mapping(walk, pc);
	uint32_t code = is_known ? walk->mapping.code : DUET_CODE_UNKNOWN;

	if (!is_known && !walk->cursor.is_guess) /* a guess may lead anywhere */
		walk->sample.flags |= DUET_SAMPLE_UNKNOWN_CODE;
	return walk_native_step(&walk->cursor, is_known ? find_row(walk, pc) : NULL,
				(enum duet_code)code, &walk->sample.guessed_depth);
}

/* Goes to the frame where a thread left Java. Returns false when the anchor cannot be read; *ret_at is then all 0. */
static bool read_anchor(struct agent_walk *walk, const struct frame_anchor *anchor, struct regs *ret_at)
{
	struct regs at = {0};

	*ret_at = at;
	if (walk_memory_read(walk, &at.sp, sizeof(at.sp), (uintptr_t)anchor->sp) ||
	    walk_memory_read(walk, &at.pc, sizeof(at.pc), (uintptr_t)anchor->pc) ||
	    walk_memory_read(walk, &at.fp, sizeof(at.fp), (uintptr_t)anchor->fp))
		return false;
	if (at.sp && !at.pc && walk_memory_read(walk, &at.pc, sizeof(at.pc), at.sp - sizeof(at.pc)))
		return false;
	if (at.sp)
		*ret_at = at;
	return true;
}

static void go_to(struct agent_walk *walk, const struct regs *at)
{
	walk->cursor = (struct unwind_cursor){
		.pc = at->pc, .sp = at->sp, .fp = at->fp, .is_return = 1, .memory = walk};
}

/* Below a call stub, with this frame pointer: goes on at the Java frame that called the native code which called it. */
static walk_result skip_native(struct agent_walk *walk, uint64_t fp)
{
	struct frame_anchor anchor;
	uintptr_t wrapper;
	struct regs at;

	if (walk_memory_read(walk, &wrapper, sizeof(wrapper), fp + (uint64_t)(int64_t)DUET_FRAME_STUB_WRAPPER) ||
	    !jvmstructs_caller_anchor(wrapper, &anchor) || !read_anchor(walk, &anchor, &at))
		return DUET_WALK_UNREADABLE;
	if (!at.sp)
		return DUET_WALK_ENTRY;
	if (at.sp <= fp)
		return DUET_WALK_BAD_CFA;
	go_to(walk, &at);
	return DUET_WALK_NONE;
}

static walk_result java_turn(struct agent_walk *walk, uint32_t place)
{
	bool is_entry = walk->cursor.is_return && walk->cursor.pc == walk->java.layout.call_stub_return;
	uint64_t fp = walk->cursor.fp;
	walk_result end = walk_java_step(&walk->java, &walk->cursor);

	if (end == DUET_WALK_NONE && is_entry && walk->skips_native)
		end = skip_native(walk, fp);
	if (end == DUET_WALK_NONE && walk->java.has_found)
		walk_java_note(&walk->java);
	walk->sample.stack[place] = walk->java.pc;
	walk->ids[place] = walk->java.code_id;
	return end;
}

static walk_result turn(struct agent_walk *walk, uint32_t frame)
{
	uint32_t place = walk_place(frame);

	/*
	 * The loader looks a caller up by the byte before its return address. A pc that a signal handler interrupted
	 * must be looked up by its own byte, so it is stored as pc + 1.
	 */
	walk->sample.stack[place] = walk->cursor.pc + (frame && !walk->cursor.is_return);
	walk->ids[place] = 0;
	walk->walked++;
	return walk_java_owns(&walk->java, walk->cursor.pc) ? java_turn(walk, place) : native_turn(walk);
}

/* ---- the whole ---- */

/* Returns true when the walk of a deep stack has taken as long as it may. */
static bool takes_long(const struct agent_walk *walk, uint32_t frame)
{
	return frame >= DUET_MAX_USER_STACK && frame % CLOCK_FRAMES == 0 &&
	       clock_ns() - walk->sample.head.time_ns > walk->most_ns;
}

static void order_root(struct agent_walk *walk)
{
	uint64_t *root = walk->sample.stack + DUET_LEAF_FRAMES;
	uint32_t *ids = walk->ids + DUET_LEAF_FRAMES;

	memcpy(walk->root, root, sizeof(walk->root));
	memcpy(walk->root_ids, ids, sizeof(walk->root_ids));
	for (uint32_t i = 0; i < DUET_ROOT_FRAMES; i++) {
		uint32_t oldest = (walk->walked + i) % DUET_ROOT_FRAMES;

		root[i] = walk->root[oldest];
		ids[i] = walk->root_ids[oldest];
	}
}

/* Hands the last frames to the loader before the next ones overwrite them. */
static void hand_over(struct agent_walk *walk)
{
	struct duet_frames_record *part;
	struct duet_ring_record *record;

	if (walk->walked < DUET_MAX_USER_STACK || walk->walked % DUET_ROOT_FRAMES)
		return;
	record = duet_ring_reserve(&walk->stay->ring.lanes[DUET_LANE_SAMPLE], sizeof(*part));
	if (!record) /* the loader sees that these frames are missing */
		return;
	part = (struct duet_frames_record *)(record + 1);
	part->head = walk->sample.head;
	part->head.size = sizeof(*part);
	part->head.type = DUET_RECORD_FRAMES;
	part->first = walk->walked - DUET_ROOT_FRAMES;
	part->reserved = 0;
	memcpy(part->stack, walk->sample.stack + DUET_LEAF_FRAMES, sizeof(part->stack));
	memcpy(part->ids, walk->ids + DUET_LEAF_FRAMES, sizeof(part->ids));
	duet_ring_commit(record, DUET_AGENT_FRAMES, sizeof(*part));
}

static void walk_frames(struct agent_walk *walk)
{
	bool keeps_all = walk->stay->java_depth > DUET_JAVA_DEPTH;
	struct duet_sample *sample = &walk->sample;

	sample->walk_end = DUET_WALK_NONE;
	for (uint32_t i = 0; i < DUET_MAX_WALK && !sample->walk_end && !takes_long(walk, i); i++) {
		sample->walk_end = (uint16_t)turn(walk, i);
		if (keeps_all && !sample->walk_end)
			hand_over(walk);
	}
	if (!sample->walk_end)
		sample->walk_end = walk->walked < DUET_MAX_WALK ? DUET_WALK_LONG : DUET_WALK_DEPTH;
	sample->user_depth = (uint16_t)walk->walked;
	if (walk->walked > DUET_MAX_USER_STACK) {
		sample->user_depth = DUET_MAX_USER_STACK;
		sample->left_out = (uint16_t)(walk->walked - DUET_MAX_USER_STACK);
		order_root(walk);
	}
}

/* Without a layout the walk knows no Java code. */
static void begin_java(struct agent_walk *walk)
{
	const struct duet_jvm_layout *layout = __atomic_load_n(&walk->stay->layout, __ATOMIC_ACQUIRE);
	struct walk_java *java = &walk->java;

	java->memory = walk;
	java->thread_at = 0;
	java->is_below_stub = 0;
	java->may_be_empty = 0;
	java->blob = java->method_at = 0;
	if (layout)
		java->layout = *layout;
	else
		memset(&java->layout, 0, sizeof(java->layout));
}

static void begin(struct agent_walk *walk, struct stay *stay, struct stack_copy *stack)
{
	walk->stay = stay;
	walk->stack = stack;
	walk->stack->bytes = 0;
	walk->calls_left = MAX_CALLS;
	memset(walk->line_at, 0, sizeof(walk->line_at));
	walk->walked = 0;
	walk->slice = tables_begin(&stay->tables);
	walk->mapping = (struct duet_unwind_mapping){0};
	walk->cursor = (struct unwind_cursor){.memory = walk};
	walk->skips_native = false;
	begin_java(walk);
}

/* Walks from the cursor on, and says what came of it. */
static void walk_on(struct agent_walk *walk)
{
	struct duet_sample *sample = &walk->sample;

	walk_frames(walk);
	if (walk->java.layout.call_stub_return)
		sample->id_depth = sample->user_depth;
	if (sample->walk_end != DUET_WALK_ENTRY || walk->cursor.is_guess ||
	    !(walk->skips_native || tables_unchanged(&walk->stay->tables, &walk->slice)))
		return;
	sample->flags |= DUET_SAMPLE_USER_COMPLETE;
	if (walk->java.layout.call_stub_return)
		sample->flags |= DUET_SAMPLE_WALKED;
}

void walk_thread(struct agent_walk *walk, struct stay *stay, struct stack_copy *stack, const ucontext_t *context)
{
	struct regs regs = regs_get(context);

	begin(walk, stay, stack);
	regs_get_general(context, walk->java.regs);
	walk->cursor = (struct unwind_cursor){
		.pc = regs.pc, .sp = regs.sp, .fp = regs.fp, .lr = regs.lr, .has_lr = 1, .memory = walk};
	walk->sample.user_pc = regs.pc;
	walk->sample.user_sp = regs.sp;
	walk->sample.flags |= DUET_SAMPLE_USER_REGS;
	walk_on(walk);
}

/* Passes the stub through which a compiled method called the JVM. Returns why that cannot be done, if so. */
static walk_result leave_stub(struct agent_walk *walk)
{
	uint64_t pc = walk->cursor.pc;
	struct code_blob blob;

	if (java_is_interpreter(&walk->java, pc) || pc == walk->java.layout.call_stub_return)
		return DUET_WALK_NONE;
	if (!jvmstructs_blob_at(pc, &blob))
		return DUET_WALK_NO_BLOB;
	return jvmstructs_is_nmethod(blob.name) ? DUET_WALK_NONE : walk_java_step(&walk->java, &walk->cursor);
}

void walk_caller(struct agent_walk *walk, struct stay *stay, struct stack_copy *stack, uintptr_t java_thread)
{
	struct duet_sample *sample = &walk->sample;
	struct frame_anchor anchor;
	struct regs at;

	begin(walk, stay, stack);
	memset(walk->java.regs, 0, sizeof(walk->java.regs));
	walk->skips_native = !stay->tables.file;
	sample->flags |= DUET_SAMPLE_CALLED | DUET_SAMPLE_USER_REGS;
	sample->walk_end = DUET_WALK_UNREADABLE;
	if (!java_thread || !jvmstructs_anchor(java_thread, &anchor) || !read_anchor(walk, &anchor, &at))
		return;
	sample->user_pc = at.pc;
	sample->user_sp = at.sp;
	if (!at.sp) {
		sample->walk_end = DUET_WALK_ENTRY;
		sample->flags |= DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_WALKED;
		return;
	}
	if (!walk_java_owns(&walk->java, at.pc)) /* there is no layout yet */
		return;
	go_to(walk, &at);
	sample->walk_end = leave_stub(walk);
	if (!sample->walk_end)
		walk_on(walk);
}

/* ---- the record ---- */

static size_t user_bytes(const struct duet_sample *sample)
{
	return sample->user_depth * sizeof(sample->stack[0]);
}

static size_t kernel_bytes(const struct duet_sample *sample)
{
	return sample->kernel_depth * sizeof(sample->stack[0]);
}

static size_t ids_bytes(const struct duet_sample *sample)
{
	return (sample->id_depth + 1u) / 2 * sizeof(uint64_t);
}

size_t walk_bytes(const struct agent_walk *walk)
{
	const struct duet_sample *sample = &walk->sample;

	return sizeof(*sample) + kernel_bytes(sample) + user_bytes(sample) + ids_bytes(sample) +
	       sample->attribute_bytes;
}

void walk_write(const struct agent_walk *walk, unsigned char *to)
{
	const struct duet_sample *sample = &walk->sample;

	memcpy(to, sample, sizeof(*sample));
	to += sizeof(*sample);
	memcpy(to, walk->kernel.frames, kernel_bytes(sample));
	to += kernel_bytes(sample);
	memcpy(to, sample->stack, user_bytes(sample));
	to += user_bytes(sample);
	memcpy(to, walk->ids, ids_bytes(sample));
	if (sample->attribute_bytes)
		memcpy(to + ids_bytes(sample), walk->attributes, sample->attribute_bytes);
}
