/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * One step of a walk: computes the caller's registers from a frame's registers and its unwind row. The same code runs
 * in BPF, in the agent and in tests. A file that includes this defines first, as functions or macros,
 *
 *	int walk_read(at, void *to, uint32_t bytes, uint64_t address)	returns 0, or nonzero: memory not readable
 *	const struct duet_unwind_row *walk_row(at, uint32_t index)	returns row `index` of all rows, or NULL
 *
 * `at` is the object that the step works on, a struct unwind_cursor or struct walk_java. When several walks run at
 * once, its `memory` identifies the walk that reads.
 */
#pragma once

#include "duet_record.h"
#include "duet_unwind.h"
#include "walk/frame.h"

#define WALK_WORD 8

/* Registers of one frame of user code. */
struct unwind_cursor {
	uint64_t pc;
	uint64_t sp;
	uint64_t fp; /* rbp, x29 */
	uint64_t lr; /* x86-64: rdi, which has the return address in vfork(3) */
	uint64_t signal_frame; /* of the signal handler's frame that the walk left last, or 0 */
	uint8_t is_return; /* pc is a return address: the row in force is that of the call, which ends at pc */
	uint8_t has_lr; /* lr still has the value that it had when the frame called, or was interrupted */
	uint8_t is_guess; /* some frame so far was found by frame pointer, with no row that says the code keeps it */
	uint8_t no_sp; /* arm64, after such a frame: sp is only a lower bound of where the frame lies */
	uint8_t reserved[4];
#ifndef __bpf__
	void *memory;
#endif
};

/* Result of a step. DUET_WALK_NONE: the cursor now has the caller's registers. Else the reason why the walk ends. */
typedef enum duet_walk_end walk_result;

/* Offsets of the interrupted registers in the kernel's rt_sigframe, from sp in the trampoline: asm/sigcontext.h. */
#if WALK_X86
#define WALK_SIGNAL_REGS 40 /* offset of r8; the others follow */
#define WALK_SIGNAL_FP 120
#define WALK_SIGNAL_SP 160
#define WALK_SIGNAL_PC 168
#else
#define WALK_SIGNAL_REGS 312 /* offset of x0; the others follow */
#define WALK_SIGNAL_FP 544
#define WALK_SIGNAL_LR 552
#define WALK_SIGNAL_SP 560
#define WALK_SIGNAL_PC 568
#endif

#define walk_read_word(at, to, address) walk_read(at, to, WALK_WORD, address)

/*
 * Reads words of the stack; `words` is a constant. In BPF each read is a call of a helper, so BPF reads more at once.
 */
#ifndef walk_read_stack
#define walk_read_stack(cursor, to, words, address) walk_read(cursor, to, (words)*WALK_WORD, address)
#endif

/* arm64: removes the signature of a signed return address. It is above the address's 48 bits. */
static inline uint64_t walk_strip(uint64_t address)
{
	return WALK_X86 ? address : address & 0xffffffffffffull;
}

static inline walk_result walk_signal_frame(struct unwind_cursor *cursor)
{
	uint64_t pc, sp, fp;

	if (walk_read_word(cursor, &pc, cursor->sp + WALK_SIGNAL_PC) ||
	    walk_read_word(cursor, &sp, cursor->sp + WALK_SIGNAL_SP) ||
	    walk_read_word(cursor, &fp, cursor->sp + WALK_SIGNAL_FP))
		return DUET_WALK_UNREADABLE;
#if !WALK_X86
	if (walk_read_word(cursor, &cursor->lr, cursor->sp + WALK_SIGNAL_LR))
		return DUET_WALK_UNREADABLE;
#endif
	cursor->signal_frame = cursor->sp;
	cursor->pc = pc;
	cursor->sp = sp;
	cursor->fp = fp;
	cursor->has_lr = !WALK_X86;
	cursor->is_return = 0;
	return pc ? DUET_WALK_NONE : DUET_WALK_ENTRY;
}

/* Returns 0 when the CFA cannot be read or computed. No frame ends at address 0, so 0 is no valid CFA. */
static inline uint64_t walk_cfa(const struct unwind_cursor *cursor, const struct duet_unwind_row *row)
{
	int64_t offset = (int64_t)row->cfa * WALK_WORD;
	uint64_t cfa;

	switch (row->rule & DUET_ROW_CFA) {
	case DUET_CFA_SP:
		return cursor->sp + (uint64_t)offset;
	case DUET_CFA_FP:
		return cursor->fp + (uint64_t)offset;
	case DUET_CFA_DEREF_FP:
		return walk_read_word(cursor, &cfa, cursor->fp + (uint64_t)offset) ? 0 : cfa;
	case DUET_CFA_DEREF_SP:
		return walk_read_word(cursor, &cfa, cursor->sp + (uint64_t)offset) ? 0 : cfa + WALK_WORD;
	case DUET_CFA_PLT:
		return cursor->sp + WALK_WORD + ((int64_t)(cursor->pc & 15) >= row->saved ? WALK_WORD : 0);
	}
	return 0;
}

/* Returns nonzero if the return address is in cursor->lr. */
static inline int walk_is_linked(const struct duet_unwind_row *row)
{
	return WALK_X86 ? row->rule & DUET_ROW_RA_SAVED : !(row->rule & DUET_ROW_RA_SAVED);
}

/*
 * Reads the return address and the caller's fp that the row says are saved. *ret_fp is unchanged when fp was not saved.
 * Returns nonzero when they cannot be read.
 */
static inline int walk_saved(const struct unwind_cursor *cursor, const struct duet_unwind_row *row, uint64_t cfa,
			     uint64_t *ret_pc, uint64_t *ret_fp)
{
	uint64_t base = row->rule & DUET_ROW_FROM_BASE ? cfa - (uint64_t)((int64_t)row->cfa * WALK_WORD) : cfa;
	uint64_t saved = base + (uint64_t)((int64_t)row->saved * WALK_WORD);
	int err = 0;

	if (row->rule & DUET_ROW_FP_SAVED)
		err = walk_read_stack(cursor, ret_fp, 1, saved);
	else if (row->rule & DUET_ROW_FP_AT_FP)
		err = walk_read_word(cursor, ret_fp, cursor->fp);
	if (WALK_X86 && !walk_is_linked(row))
		return err || walk_read_stack(cursor, ret_pc, 1, cfa - WALK_WORD);
	if (!walk_is_linked(row))
		return err || walk_read_stack(cursor, ret_pc, 1,
					      row->rule & DUET_ROW_FP_SAVED ? saved + WALK_WORD : saved);
	*ret_pc = cursor->lr;
	return err;
}

static inline walk_result walk_to_caller(struct unwind_cursor *cursor, uint64_t pc, uint64_t sp, uint64_t fp)
{
	pc = walk_strip(pc);
	/* A function that has saved nothing yet, or has freed it all, may have an empty frame. */
	if (sp % WALK_WORD || sp < cursor->sp || (sp == cursor->sp && cursor->is_return))
		return DUET_WALK_BAD_CFA;
	cursor->pc = pc;
	cursor->sp = sp;
	cursor->fp = fp;
	cursor->has_lr = 0;
	cursor->no_sp = 0;
	cursor->is_return = 1;
	return pc ? DUET_WALK_NONE : DUET_WALK_ENTRY;
}

/*
 * Returns the flag for a sample with a frame in no known mapping, with which the loader reads the process's mappings
 * again. A frame found by a guess may have any pc.
 */
static inline uint16_t walk_unmapped_flag(const struct unwind_cursor *cursor)
{
	return cursor->is_guess ? 0 : DUET_SAMPLE_UNKNOWN_CODE;
}

#define WALK_ROW_STEPS 11 /* steps of the binary search in the rows of a page, see DUET_UNWIND_PAGE_SHIFT */

/* Returns the last row in [low, high) that starts at or before `pc`, or NULL. */
static inline const struct duet_unwind_row *walk_search_rows(const struct unwind_cursor *cursor, uint32_t low,
							     uint32_t high, uint32_t pc)
{
	uint32_t first = low;

	for (uint32_t i = 0; i < WALK_ROW_STEPS && low < high; i++) {
		uint32_t middle = low + (high - low) / 2;
		const struct duet_unwind_row *row = walk_row(cursor, middle);

		if (!row)
			return 0;
		if (row->pc <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low > first ? walk_row(cursor, low - 1) : 0;
}

#define WALK_GO_STACK_BYTES 16384 /* least size of the stack to which Go's runtime switches */
#define WALK_GO_FRAMES 64 /* more do not fit there */

/*
 * Go's runtime has switched to another stack, which begins with this frame. Its tables do not say where fp is saved, so
 * the cursor still has that of the leaf. The list of frames leads back to the first stack, which may lie anywhere.
 */
static inline walk_result walk_switched(struct unwind_cursor *cursor)
{
	uint64_t frame[2] = {0, 0}, fp = cursor->fp, end = cursor->sp;

	for (uint32_t i = 0; i < WALK_GO_FRAMES; i++) {
		if (walk_read(cursor, frame, sizeof(frame), fp))
			return DUET_WALK_UNREADABLE;
		if (fp >= end || end - fp > WALK_GO_STACK_BYTES)
			break;
		fp = frame[0];
	}
	cursor->sp = fp;
	return walk_to_caller(cursor, frame[1], fp + sizeof(frame), frame[0]);
}

/* A step by the row that is in force at pc. DUET_WALK_NO_ROW: the row does not say how to find the caller. */
static inline walk_result walk_by_row(struct unwind_cursor *cursor, const struct duet_unwind_row *row)
{
	uint64_t fp = cursor->fp, pc, cfa;
	uint32_t how = row->rule & DUET_ROW_CFA;

	if (how == DUET_CFA_NONE)
		return DUET_WALK_NO_ROW;
	if (how == DUET_CFA_ENTRY)
		return DUET_WALK_ENTRY;
	if (how == DUET_CFA_SIGNAL)
		return walk_signal_frame(cursor);
	if (how == DUET_CFA_SWITCHED)
		return walk_switched(cursor);
	if (walk_is_linked(row) && !cursor->has_lr)
		return DUET_WALK_NO_ROW;
	if (!WALK_X86 && cursor->no_sp && how != DUET_CFA_FP)
		return DUET_WALK_NO_ROW;
	cfa = walk_cfa(cursor, row);
	if (!cfa || walk_saved(cursor, row, cfa, &pc, &fp))
		return DUET_WALK_UNREADABLE;
	return walk_to_caller(cursor, pc, cfa, fp);
}

/*
 * Returns nonzero for a thread's first frame. Both ABIs give it fp 0, but code that keeps no frame pointer leaves it
 * so. Therefore its code is read: it passes the result of main() or of the thread's function on to one that does not
 * return. musl has no call frame information, and a program that has just begun has no rows yet. Valid only for code
 * of files: code that a JIT compiler made may have any value in fp.
 */
static inline int walk_is_outermost(const struct unwind_cursor *cursor)
{
	uint64_t code;

	return !cursor->fp && cursor->is_return && !cursor->is_guess && !walk_read_word(cursor, &code, cursor->pc) &&
	       duet_frame_passes_result(code);
}

#if WALK_X86
#define WALK_SIGRETURN 0x0f0000000fc0c748ull /* mov $15, %rax; the first byte of syscall */
#else
#define WALK_SIGRETURN 0xd4000001d2801168ull /* mov x8, #139; svc #0 */
#endif

/* The trampoline to which a signal handler returns: it calls rt_sigreturn. */
static inline int walk_is_trampoline(const struct unwind_cursor *cursor)
{
	uint64_t code;

	return !walk_read_word(cursor, &code, cursor->pc) && code == WALK_SIGRETURN;
}

/*
 * Returns nonzero for code that no row describes, and for a row that cannot be that of a call, because the function has
 * no frame. Then it is the row of the code before a trampoline that has none.
 */
static inline int walk_is_undescribed(const struct unwind_cursor *cursor, const struct duet_unwind_row *row)
{
	if (!row || (row->rule & DUET_ROW_CFA) == DUET_CFA_NONE)
		return 1;
	return cursor->is_return && (WALK_X86 ? row->rule == DUET_CFA_SP && row->cfa == 1 : walk_is_linked(row));
}

#define WALK_CALL_BYTES 5 /* call rel32 */
#define WALK_LEAF_BYTES 1024 /* no assembler function that has no frame is larger */

#define WALK_LINKAGE_BYTES 20

/*
 * arm64: interrupted in an entry of a procedure linkage table, which has no rows. Returns nonzero when this is so; the
 * cursor is then the caller's.
 */
static inline int walk_linkage_leaf(struct unwind_cursor *cursor)
{
	uint8_t code[DUET_FRAME_CODE_BYTES] = {0};

	if (WALK_X86 || !cursor->has_lr || walk_read(cursor, code, WALK_LINKAGE_BYTES, cursor->pc) ||
	    !duet_frame_is_linkage(code))
		return 0;
	return walk_to_caller(cursor, cursor->lr, cursor->sp, cursor->fp) == DUET_WALK_NONE;
}

/* Does the function that begins at `target` make a frame at once? Otherwise it has none, if it is a short leaf. */
static inline int walk_makes_frame(const struct unwind_cursor *cursor, uint64_t target)
{
	uint64_t code;

	return walk_read_word(cursor, &code, target) || duet_frame_begins(code);
}

/*
 * Interrupted in code without rows, such as hand-written assembler. If the code has pushed nothing, the word on top of
 * the stack is the return address, and it follows a call that leads near pc. In a function with a frame, that word may
 * be what an earlier call has left there. Returns nonzero if the cursor is now the caller's.
 */
static inline int walk_called_leaf(struct unwind_cursor *cursor)
{
	uint8_t call[WALK_CALL_BYTES];
	uint64_t to, target;

	if (!WALK_X86 || cursor->is_return || walk_read_word(cursor, &to, cursor->sp) ||
	    walk_read(cursor, call, sizeof(call), to - sizeof(call)) || call[0] != 0xe8)
		return 0;
	target = to + walk_operand(call + 1, 4);
	if (cursor->pc - target >= WALK_LEAF_BYTES || (cursor->pc != target && walk_makes_frame(cursor, target)))
		return 0;
	return walk_to_caller(cursor, to, cursor->sp + WALK_WORD, cursor->fp) == DUET_WALK_NONE;
}

/*
 * A step without a row. If the code keeps a frame pointer, it points at the caller's fp and the return address. On
 * x86-64 these two words are the frame's upper end, on arm64 in most cases its lower end.
 */
static inline walk_result walk_by_fp(struct unwind_cursor *cursor)
{
	uint64_t frame[2];
	walk_result end;

	cursor->is_guess = 1;
	if (cursor->fp < cursor->sp || cursor->fp % WALK_WORD)
		return DUET_WALK_BAD_FP;
	if (walk_read(cursor, frame, sizeof(frame), cursor->fp))
		return DUET_WALK_UNREADABLE;
	end = walk_to_caller(cursor, frame[1], cursor->fp + sizeof(frame), frame[0]);
	cursor->no_sp = !WALK_X86;
	return end;
}

/*
 * One step through native code, by its row if it has one. *guessed counts the frames whose caller is found by frame
 * pointer although nothing says that the code keeps one. Code of JIT compilers is not counted: V8, .NET and others keep
 * frame pointers to walk their own stacks. Where code keeps none, the chain breaks, and the end of the walk says so.
 */
static inline walk_result walk_native_step(struct unwind_cursor *cursor, const struct duet_unwind_row *row,
					   enum duet_code code, uint16_t *guessed)
{
	int is_file = code == DUET_CODE_FILE;
	walk_result end = DUET_WALK_NO_ROW;

	if (is_file && walk_is_undescribed(cursor, row) && walk_is_trampoline(cursor))
		return walk_signal_frame(cursor);
	if (row)
		end = walk_by_row(cursor, row);
	if (end != DUET_WALK_NO_ROW)
		return end;
	if (is_file && walk_is_outermost(cursor))
		return DUET_WALK_ENTRY;
	if (is_file && (walk_called_leaf(cursor) || walk_linkage_leaf(cursor)))
		return DUET_WALK_NONE;
	*guessed += code != DUET_CODE_MEMORY;
	return walk_by_fp(cursor);
}
