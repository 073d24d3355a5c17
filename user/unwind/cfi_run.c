// SPDX-License-Identifier: MIT
/* Runs the programs of CIEs and FDEs. */
#include <errno.h>

#include "unwind/cfi.h"

/* These have the operator in the top two bits and an operand in the others. */
#define DW_CFA_HIGH 0xc0
#define DW_CFA_LOW 0x3f
#define DW_CFA_ADVANCE_LOC 0x40
#define DW_CFA_OFFSET 0x80
#define DW_CFA_RESTORE 0xc0

enum {
	DW_CFA_NOP = 0x00,
	DW_CFA_SET_LOC,
	DW_CFA_ADVANCE_LOC1,
	DW_CFA_ADVANCE_LOC2,
	DW_CFA_ADVANCE_LOC4,
	DW_CFA_OFFSET_EXTENDED,
	DW_CFA_RESTORE_EXTENDED,
	DW_CFA_UNDEFINED,
	DW_CFA_SAME_VALUE,
	DW_CFA_REGISTER,
	DW_CFA_REMEMBER_STATE,
	DW_CFA_RESTORE_STATE,
	DW_CFA_DEF_CFA,
	DW_CFA_DEF_CFA_REGISTER,
	DW_CFA_DEF_CFA_OFFSET,
	DW_CFA_DEF_CFA_EXPRESSION,
	DW_CFA_EXPRESSION,
	DW_CFA_OFFSET_EXTENDED_SF,
	DW_CFA_DEF_CFA_SF,
	DW_CFA_DEF_CFA_OFFSET_SF,
	DW_CFA_VAL_OFFSET,
	DW_CFA_VAL_OFFSET_SF,
	DW_CFA_VAL_EXPRESSION,
	DW_CFA_NEGATE_RA_STATE = 0x2d, /* arm64; ignored, as the walk strips signatures from all return addresses */
	DW_CFA_GNU_ARGS_SIZE = 0x2e,
};

#define DW_OP_DEREF 0x06
#define DW_OP_PLUS_UCONST 0x23
#define DW_OP_LIT0 0x30
#define DW_OP_BREG0 0x70

/* The state of one program. */
struct run {
	struct cfi *cfi;
	const struct cfi_cie *cie;
	struct bytes program;
	struct cfi_state state;
	struct cfi_state saved[CFI_SAVED_STATES];
	unsigned int saved_count;
	uint64_t pc;
};

/* ---- where the CFA is ---- */

static void set_cfa(struct run *run, uint64_t number, int64_t offset)
{
	const struct cfi_machine *machine = run->cfi->machine;

	run->state.cfa = number == machine->sp ? DUET_CFA_SP : number == machine->fp ? DUET_CFA_FP : DUET_CFA_NONE;
	run->state.cfa_register = number;
	run->state.cfa_offset = offset;
}

/* True for lazy PLT entries: sp + 8, and 8 more after the push, which ends at byte *ret_push_end of 16. */
static bool is_plt(struct bytes expression, uint8_t *ret_push_end)
{
	static const uint8_t before[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a}; /* rsp + 8, rip & 15 */
	static const uint8_t after[] = {0x2a, 0x33, 0x24, 0x22}; /* >=, << 3, + */
	const uint8_t *at = expression.at;
	size_t at_literal = sizeof(before);

	if (bytes_left(&expression) != sizeof(before) + 1 + sizeof(after) || memcmp(at, before, sizeof(before)) ||
	    memcmp(at + at_literal + 1, after, sizeof(after)))
		return false;
	*ret_push_end = at[at_literal] - DW_OP_LIT0;
	return *ret_push_end < 16;
}

/* Handles a CFA that is read from register + offset: breg, deref, and for sp 8 more. */
static void set_cfa_dereference(struct run *run, struct bytes expression)
{
	const struct cfi_machine *machine = run->cfi->machine;
	uint64_t number = bytes_number(&expression, 1) - DW_OP_BREG0;
	int64_t offset = bytes_sleb(&expression);
	bool is_deref = bytes_number(&expression, 1) == DW_OP_DEREF;
	bool is_end = !bytes_left(&expression);
	bool is_plus_8 = bytes_number(&expression, 1) == DW_OP_PLUS_UCONST && bytes_uleb(&expression) == 8 &&
			 !bytes_left(&expression);

	run->state.cfa_offset = offset;
	if (number == machine->fp && is_deref && is_end)
		run->state.cfa = DUET_CFA_DEREF_FP;
	else if (number == machine->sp && is_deref && is_plus_8)
		run->state.cfa = DUET_CFA_DEREF_SP;
}

static void set_cfa_expression(struct run *run, struct bytes expression)
{
	run->state.cfa = DUET_CFA_NONE;
	if (run->cie->is_signal_frame)
		run->state.cfa = DUET_CFA_SIGNAL;
	else if (run->cfi->machine->ra_on_stack && is_plt(expression, &run->state.plt_push_end))
		run->state.cfa = DUET_CFA_PLT;
	else
		set_cfa_dereference(run, expression);
}

/* ---- where a register is ---- */

static void set_register(struct run *run, uint64_t number, enum cfi_rule rule, int64_t offset)
{
	struct cfi_register value = {rule, offset};

	if (number == run->cfi->machine->fp)
		run->state.fp = value;
	else if (number == run->cfi->machine->ra)
		run->state.ra = value;
}

static void set_offset(struct run *run, uint64_t number, int64_t factored)
{
	set_register(run, number, CFI_OFFSET, (int64_t)((uint64_t)factored * (uint64_t)run->cie->data_align));
}

static void restore_register(struct run *run, uint64_t number)
{
	const struct cfi_state *initial = &run->cie->initial;
	const struct cfi_register *was = number == run->cfi->machine->fp ? &initial->fp : &initial->ra;

	set_register(run, number, was->rule, was->offset);
}

/* Functions that align their stack have such an expression for fp. It says that fp is saved where fp points. */
static void set_expression(struct run *run, uint64_t number, struct bytes expression)
{
	bool at_fp = bytes_number(&expression, 1) - DW_OP_BREG0 == run->cfi->machine->fp && !bytes_sleb(&expression) &&
		     !bytes_left(&expression) && !expression.bad;

	set_register(run, number, at_fp && number == run->cfi->machine->fp ? CFI_AT_FP : CFI_UNKNOWN, 0);
}

static void set_in_register(struct run *run, uint64_t number, uint64_t holder)
{
	const struct cfi_machine *machine = run->cfi->machine;
	bool linked = machine->ra_on_stack && number == machine->ra && holder == machine->link;

	set_register(run, number, linked ? CFI_LINKED : CFI_UNKNOWN, 0);
}

/* ---- one instruction ---- */

static void remember(struct run *run)
{
	if (run->saved_count < CFI_SAVED_STATES)
		run->saved[run->saved_count++] = run->state;
	else
		run->program.bad = true;
}

static void restore(struct run *run)
{
	if (run->saved_count)
		run->state = run->saved[--run->saved_count];
	else
		run->program.bad = true;
}

/* Runs an instruction that defines the CFA. False if it is another one. */
static bool run_cfa(struct run *run, uint8_t op)
{
	struct bytes *program = &run->program;
	uint64_t number;

	switch (op) {
	case DW_CFA_DEF_CFA:
		number = bytes_uleb(program);
		set_cfa(run, number, (int64_t)bytes_uleb(program));
		return true;
	case DW_CFA_DEF_CFA_SF:
		number = bytes_uleb(program);
		set_cfa(run, number, (int64_t)((uint64_t)bytes_sleb(program) * (uint64_t)run->cie->data_align));
		return true;
	case DW_CFA_DEF_CFA_REGISTER:
		set_cfa(run, bytes_uleb(program), run->state.cfa_offset);
		return true;
	case DW_CFA_DEF_CFA_OFFSET:
		set_cfa(run, run->state.cfa_register, (int64_t)bytes_uleb(program));
		return true;
	case DW_CFA_DEF_CFA_OFFSET_SF:
		set_cfa(run, run->state.cfa_register,
			(int64_t)((uint64_t)bytes_sleb(program) * (uint64_t)run->cie->data_align));
		return true;
	case DW_CFA_DEF_CFA_EXPRESSION:
		set_cfa_expression(run, bytes_take(program, bytes_uleb(program)));
		return true;
	}
	return false;
}

/* Runs an instruction about one register. */
static void run_register(struct run *run, uint8_t op)
{
	struct bytes *program = &run->program;
	uint64_t number = bytes_uleb(program);

	switch (op) {
	case DW_CFA_OFFSET_EXTENDED:
		return set_offset(run, number, (int64_t)bytes_uleb(program));
	case DW_CFA_OFFSET_EXTENDED_SF:
		return set_offset(run, number, bytes_sleb(program));
	case DW_CFA_RESTORE_EXTENDED:
		return restore_register(run, number);
	case DW_CFA_UNDEFINED:
		return set_register(run, number, CFI_UNDEFINED, 0);
	case DW_CFA_SAME_VALUE:
		return set_register(run, number, CFI_SAME, 0);
	case DW_CFA_REGISTER:
		return set_in_register(run, number, bytes_uleb(program));
	case DW_CFA_EXPRESSION:
		return set_expression(run, number, bytes_take(program, bytes_uleb(program)));
	case DW_CFA_VAL_EXPRESSION:
		bytes_take(program, bytes_uleb(program));
		return set_register(run, number, CFI_UNKNOWN, 0);
	default: /* the value is CFA + a number; such an instruction has one more operand */
		bytes_uleb(program);
		return set_register(run, number, CFI_UNKNOWN, 0);
	}
}

/* Runs the remaining instructions that do not move the pc. */
static void run_other(struct run *run, uint8_t op)
{
	if (op == DW_CFA_REMEMBER_STATE)
		remember(run);
	else if (op == DW_CFA_RESTORE_STATE)
		restore(run);
	else if (op == DW_CFA_GNU_ARGS_SIZE)
		bytes_uleb(&run->program);
	else if (op >= DW_CFA_OFFSET_EXTENDED && op <= DW_CFA_VAL_EXPRESSION)
		run_register(run, op);
	else if (op != DW_CFA_NOP && op != DW_CFA_NEGATE_RA_STATE)
		run->program.bad = true;
}

static void run_short(struct run *run, uint8_t op)
{
	if ((op & DW_CFA_HIGH) == DW_CFA_OFFSET)
		set_offset(run, op & DW_CFA_LOW, (int64_t)bytes_uleb(&run->program));
	else
		restore_register(run, op & DW_CFA_LOW);
}

/* Runs an instruction that moves the pc, and returns the new pc. False if it is another one. */
static bool run_advance(struct run *run, uint8_t op, uint64_t *ret_pc)
{
	uint64_t delta;

	if ((op & DW_CFA_HIGH) == DW_CFA_ADVANCE_LOC)
		delta = op & DW_CFA_LOW;
	else if (op == DW_CFA_ADVANCE_LOC1)
		delta = bytes_number(&run->program, 1);
	else if (op == DW_CFA_ADVANCE_LOC2)
		delta = bytes_number(&run->program, 2);
	else if (op == DW_CFA_ADVANCE_LOC4)
		delta = bytes_number(&run->program, 4);
	else if (op == DW_CFA_SET_LOC) {
		*ret_pc = cfi_pointer(run->cfi, &run->program, run->cie->encoding);
		return true;
	} else
		return false;
	*ret_pc = run->pc + delta * run->cie->code_align;
	return true;
}

static void run_state(struct run *run, uint8_t op)
{
	if (op & DW_CFA_HIGH)
		run_short(run, op);
	else if (!run_cfa(run, op))
		run_other(run, op);
}

/* ---- whole programs ---- */

static const struct cfi_state unknown = {DUET_CFA_NONE, .fp = {.rule = CFI_UNKNOWN}, .ra = {.rule = CFI_UNKNOWN}};

int cfi_run_initial(struct cfi *cfi, struct cfi_cie *cie, struct bytes program)
{
	struct run run = {.cfi = cfi, .cie = cie, .program = program};
	uint64_t ignored;

	if (cfi->machine->ra_on_stack)
		run.state.ra = (struct cfi_register){CFI_OFFSET, -8};
	while (bytes_left(&run.program) && !run.program.bad) {
		uint8_t op = (uint8_t)bytes_number(&run.program, 1);

		if (!cfi->budget)
			return -E2BIG;
		cfi->budget--;
		if (!run_advance(&run, op, &ignored))
			run_state(&run, op);
	}
	cie->initial = run.program.bad ? unknown : run.state;
	return 0;
}

/* True in arm64's signal trampoline, which has no expression: the kernel's signal frame has one layout. */
static bool is_signal_frame(const struct run *run)
{
	return run->cie->is_signal_frame && !run->cfi->machine->ra_on_stack;
}

static int emit_state(const struct run *run, cfi_emit emit, void *context)
{
	struct cfi_state signal = {.cfa = DUET_CFA_SIGNAL};

	return emit(context, run->pc, is_signal_frame(run) ? &signal : &run->state);
}

int cfi_run(struct cfi *cfi, const struct cfi_fde *fde, cfi_emit emit, void *context)
{
	const struct cfi_cie *cie = &cfi->cies.items[fde->cie];
	struct run run = {.cfi = cfi, .cie = cie, .program = fde->program, .state = cie->initial, .pc = fde->start};
	uint64_t pc = run.pc;
	int err = 0;

	while (!err && bytes_left(&run.program) && !run.program.bad) {
		uint8_t op = (uint8_t)bytes_number(&run.program, 1);

		if (!cfi->budget)
			return -E2BIG;
		cfi->budget--;
		if (!run_advance(&run, op, &pc)) {
			run_state(&run, op);
		} else if (pc > run.pc && pc < fde->end) {
			err = emit_state(&run, emit, context);
			run.pc = pc;
		} else if (pc != run.pc) {
			break; /* backwards, or past the end */
		}
	}
	if (run.program.bad)
		run.state = unknown;
	return err ? err : emit_state(&run, emit, context);
}
