/* SPDX-License-Identifier: MIT */
/*
 * Where the agent's walks begin and end, and the functions that walk/loop.h needs for them. Memory that can be read
 * without a fault is read directly: the thread's own stack, or a copy of it, its own JavaThread, code, and the code
 * heaps' segment maps. Other memory, of interpreted methods, is read by system calls, and kept for a while.
 */
#include "sample/walk.h"

#include <string.h>

#include "hotspot/clock.h"
#include "hotspot/jvmstructs.h"

#include "sigsafe.h"

#define WINDOW_BYTES 16384 /* bytes of the stack that are copied at a time */
#define WINDOW_BELOW 64 /* bytes below sp in the copy: a step may look a few words back */
#define MAX_CALLS 512
#define CLOCK_FRAMES 256 /* frames of a deep stack between two looks at the clock */

/* Copies the stack around `address`: the current frame and those that follow it. */
static bool move_window(struct agent_walk *walk, uintptr_t address)
{
	uintptr_t sp = walk->cursor.sp;

	if (address < sp || address - sp >= SAFE_COPY_MAX || !walk->calls_left)
		return false;
	walk->calls_left--;
	return stack_copy(walk->stack, address - sp < WINDOW_BELOW ? sp : address - WINDOW_BELOW, WINDOW_BYTES);
}

/* Returns the cached line that holds the address, or NULL. A whole line costs one system call, as a word does. */
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
	if (address >= walk->own.low && address < walk->own.high && walk->own.high - address >= bytes) {
		memcpy(to, (const void *)address, bytes);
		return 0;
	}
	if (stack_read(walk->stack, to, bytes, address))
		return 0;
	if (jvmstructs_is_committed(address, bytes)) {
		memcpy(to, (const void *)address, bytes);
		return 0;
	}
	if (move_window(walk, address))
		return stack_read(walk->stack, to, bytes, address) ? 0 : -1;
	return read_lines(walk, to, bytes, address);
}

#define KNOWN_NS 10000000 /* as in BPF, see bpf/unwind_known.bpf.h: which says why a safepoint ends it, too */

/* Returns 0 if the number is not known. The counter's memory goes away when the JVM ends. */
static uint64_t safepoints(struct agent_walk *walk)
{
	uint64_t count;

	if (walk->has_safepoints)
		return walk->safepoints;
	walk->has_safepoints = true;
	walk->safepoints = 0;
	if (walk->java.layout.safepoints &&
	    !walk_memory_read(walk, &count, sizeof(count), walk->java.layout.safepoints))
		walk->safepoints = count + 1;
	return walk->safepoints;
}

static struct walk_method *known_place(struct agent_walk *walk, uint64_t method)
{
	return &walk->methods[method * 0x9e3779b97f4a7c15ull >> 32 & (WALK_METHODS - 1)];
}

bool walk_memory_known(struct walk_java *java, uint64_t method)
{
	struct agent_walk *walk = java->memory;
	const struct walk_method *known = known_place(walk, method);

	if (!method || known->at != method || walk->sample.head.time_ns - known->time_ns >= KNOWN_NS ||
	    !safepoints(walk) || safepoints(walk) != known->safepoints)
		return false;
	java->const_at = known->const_at;
	java->code_bytes = known->code_bytes;
	java->found_method = known->id;
	java->found_check = known->check;
	return true;
}

void walk_memory_know(const struct walk_java *java, uint64_t method)
{
	struct agent_walk *walk = java->memory;

	if (safepoints(walk))
		*known_place(walk, method) = (struct walk_method){
			.at = method,
			.const_at = java->const_at,
			.id = java->found_method,
			.time_ns = walk->sample.head.time_ns,
			.safepoints = safepoints(walk),
			.code_bytes = java->code_bytes,
			.check = java->found_check,
		};
}

const struct duet_unwind_row *walk_memory_row(const struct agent_walk *walk, uint32_t index)
{
	return tables_row(&walk->stay->tables, index);
}

/* Returns the row in force at pc, which lies in walk->mapping; or NULL. */
static const struct duet_unwind_row *find_row(const struct agent_walk *walk, uint64_t pc)
{
	uint64_t offset = pc - walk->mapping.base;
	struct duet_unwind_page page;

	if (!tables_find_page(&walk->stay->tables, walk->mapping.module, offset, &page))
		return NULL;
	return walk_search_rows(&walk->cursor, page.first, page.end, (uint32_t)offset);
}

static const struct duet_unwind_row *walk_look_up(struct agent_walk *walk, enum duet_code *ret_code)
{
	uint64_t pc = walk->cursor.pc - walk->cursor.is_return;

	if ((pc < walk->mapping.start || pc >= walk->mapping.end) &&
	    !tables_find_mapping(&walk->stay->tables, &walk->slice, pc, &walk->mapping)) {
		walk->sample.flags |= walk_unmapped_flag(&walk->cursor);
		return NULL;
	}
	*ret_code = (enum duet_code)walk->mapping.code;
	return find_row(walk, pc);
}

/* Returns true when the walk of a deep stack has used up its time. */
static bool walk_takes_long(const struct agent_walk *walk)
{
	return walk->walked >= DUET_MAX_USER_STACK && walk->walked % CLOCK_FRAMES == 0 &&
	       clock_ns() - walk->sample.head.time_ns > walk->most_ns;
}

static bool walk_keeps_all(const struct agent_walk *walk)
{
	return walk->stay->java_depth > DUET_JAVA_DEPTH && !walk->is_kept;
}

static void walk_emit(struct agent_walk *walk)
{
	struct duet_ring_record *record =
		duet_ring_reserve(&walk->stay->ring.lanes[DUET_LANE_SAMPLE], sizeof(walk->part));

	if (!record)
		return;
	memcpy(record + 1, &walk->part, sizeof(walk->part));
	duet_ring_commit(record, DUET_AGENT_FRAMES, sizeof(walk->part));
}

static walk_result code_turn(struct agent_walk *walk);
static walk_result native_turn(struct agent_walk *walk);

#define WALK struct agent_walk
#define WALK_CODE_TURN code_turn
#define WALK_INTERPRETER_TURN walk_interpreter_turn
#define WALK_NATIVE_TURN native_turn
#define WALK_TURN walk_turn
#define WALK_ROUND walk_round
#define WALK_ORDER_ROOT walk_order_root
#define WALK_HAND_OVER walk_hand_over
#define walk_most(walk) DUET_MAX_WALK
#define walk_copy(to, bytes, from) memcpy(to, from, bytes)

#include "walk/loop.h"

/* Sets *ret_at to the frame where a thread left Java. Returns false, and all 0, when the anchor cannot be read. */
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

/* The same for the whole thread. That of the calling thread exists while it runs, and is read directly. */
static bool read_thread(struct agent_walk *walk, uintptr_t java_thread, struct regs *ret_at)
{
	struct frame_anchor anchor;

	if (!java_thread || !jvmstructs_anchor(java_thread, &anchor))
		return false;
	if (walk->own.high && *anchor.sp && *anchor.pc) {
		*ret_at = (struct regs){.sp = *anchor.sp, .pc = *anchor.pc, .fp = *anchor.fp};
		return true;
	}
	return read_anchor(walk, &anchor, ret_at);
}

static void go_to(struct agent_walk *walk, const struct regs *at)
{
	walk->cursor = (struct unwind_cursor){.pc = at->pc, .sp = at->sp, .fp = at->fp, .is_return = 1, .memory = walk};
}

/* Steps over native code that called Java: from the call stub with this fp to the Java frame that called it. */
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

/* A step from the call stub leads to native code, which is left out if there are no tables for it. */
static walk_result code_turn(struct agent_walk *walk)
{
	bool is_entry = walk->cursor.is_return && walk->cursor.pc == walk->java.layout.call_stub_return;
	uint64_t fp = walk->cursor.fp;
	walk_result end = walk_code_turn(walk);

	return end == DUET_WALK_NONE && is_entry && walk->skips_native ? skip_native(walk, fp) : end;
}

#define FP_UNKNOWN 1 /* no frame pointer is odd */

/* A step from native code. A sleeper's first one to Java must lead to the frame that its anchor names. */
static walk_result native_turn(struct agent_walk *walk)
{
	walk_result end = walk_native_turn(walk);
	struct unwind_cursor *cursor = &walk->cursor;

	if (end != DUET_WALK_NONE || !walk->left.sp || !walk_java_owns(&walk->java, cursor->pc))
		return end;
	if (cursor->sp != walk->left.sp)
		return DUET_WALK_BAD_CFA;
	if (cursor->fp == FP_UNKNOWN || java_is_interpreter(&walk->java, cursor->pc))
		cursor->fp = walk->left.fp;
	walk->left.sp = 0;
	return DUET_WALK_NONE;
}

/* Without a layout, the walk recognises no Java code. */
static void begin_java(struct agent_walk *walk)
{
	const struct duet_jvm_layout *layout = __atomic_load_n(&walk->stay->layout, __ATOMIC_ACQUIRE);
	struct walk_java *java = &walk->java;

	java->memory = walk;
	walk_java_begin(java);
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
	walk->has_safepoints = false;
	walk->slice = tables_begin(&stay->tables);
	walk->mapping = (struct duet_unwind_mapping){0};
	walk->cursor = (struct unwind_cursor){.memory = walk};
	walk->skips_native = false;
	walk->left = (struct regs){0};
	begin_java(walk);
}

/* Walks from the cursor on. If the tables have changed meanwhile, it may be wrong, and does not count as whole. */
static void walk_on(struct agent_walk *walk)
{
	walk_all(walk);
	if (!walk->skips_native && !tables_unchanged(&walk->stay->tables, &walk->slice))
		walk->sample.flags &= (uint16_t) ~(DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_WALKED);
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

/* Steps over the stub by which a compiled method called the JVM. Returns why the walk ends if it cannot. */
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
	struct regs at;

	begin(walk, stay, stack);
	memset(walk->java.regs, 0, sizeof(walk->java.regs));
	walk->skips_native = !stay->tables.file;
	sample->flags |= DUET_SAMPLE_CALLED | DUET_SAMPLE_USER_REGS;
	sample->walk_end = DUET_WALK_UNREADABLE;
	if (!read_thread(walk, java_thread, &at))
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

bool walk_caller_is_there(struct agent_walk *walk, uintptr_t java_thread)
{
	struct regs at;

	walk->stack->bytes = 0; /* make the walk copy the stack again */
	memset(walk->line_at, 0, sizeof(walk->line_at));
	return read_thread(walk, java_thread, &at) && at.pc == walk->sample.user_pc && at.sp == walk->sample.user_sp;
}

/* The loader names a caller by the byte before its address. */
static void put_callee(struct agent_walk *walk, uintptr_t callee)
{
	struct duet_sample *sample = &walk->sample;

	if (sample->user_depth >= DUET_MAX_USER_STACK)
		return;
	memmove(sample->stack + 1, sample->stack, sample->user_depth * sizeof(*sample->stack));
	memmove(walk->ids + 1, walk->ids, sample->id_depth * sizeof(*walk->ids));
	sample->stack[0] = callee + 1;
	walk->ids[0] = 0;
	sample->user_depth++;
	sample->id_depth += sample->id_depth > 0;
}

void walk_native_caller(struct agent_walk *walk, struct stay *stay, struct stack_copy *stack, const struct regs *caller,
			uintptr_t callee)
{
	begin(walk, stay, stack);
	memset(walk->java.regs, 0, sizeof(walk->java.regs));
	walk->sample.flags |= DUET_SAMPLE_CALLED | DUET_SAMPLE_USER_REGS;
	walk->sample.user_pc = caller->pc;
	walk->sample.user_sp = caller->sp;
	go_to(walk, caller);
	walk_on(walk);
	if (callee)
		put_callee(walk, callee);
}

/* Returns true if the walk has reached the thread's entry, by way of the frame that its anchor names, if any. */
static bool walk_asleep(struct agent_walk *walk, struct stay *stay, struct stack_copy *stack, uintptr_t java_thread,
			const struct regs *at)
{
	struct duet_sample *sample = &walk->sample;

	begin(walk, stay, stack);
	memset(walk->java.regs, 0, sizeof(walk->java.regs));
	if (!read_thread(walk, java_thread, &walk->left))
		walk->left.sp = 0;
	sample->user_pc = at->pc;
	sample->user_sp = at->sp;
	sample->flags |= DUET_SAMPLE_USER_REGS;
	walk->cursor.pc = at->pc;
	walk->cursor.sp = at->sp;
	walk->cursor.fp = FP_UNKNOWN;
	if (at->pc)
		walk_on(walk);
	return sample->flags & DUET_SAMPLE_USER_COMPLETE && !walk->left.sp;
}

void walk_sleeper(struct agent_walk *walk, struct stay *stay, struct stack_copy *stack, uintptr_t java_thread,
		  const struct regs *at)
{
	struct duet_sample *sample = &walk->sample;

	if (walk_asleep(walk, stay, stack, java_thread, at) || !walk->left.sp)
		return;
	sample->flags &= (uint16_t)~(DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_WALKED);
	sample->user_depth = sample->id_depth = sample->left_out = sample->guessed_depth = 0;
	walk_caller(walk, stay, stack, java_thread);
	if (at->pc)
		put_callee(walk, at->pc - 1);
}

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
