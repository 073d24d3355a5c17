// SPDX-License-Identifier: MIT
#include "unwind/cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/varint.h"

#define CIE_ID 0 /* in .eh_frame; in .debug_frame all bits are set */
#define EXTENDED_LENGTH 0xffffffffu /* 64-bit DWARF follows */
#define MAX_CIES 65536
#define MAX_LETTERS 32 /* letters of an augmentation; known ones have 7 at most */
#define STEPS_PER_BYTE 4 /* real programs take at most one step for each byte; each CIE is run only once */
#define STEPS_MIN 4096
#define SAVED_STATES 8 /* nested DW_CFA_remember_state; compilers nest once */
#define MAX_PROGRAM (1u << 20) /* bytes; real programs have some thousand at most */

#define DW_EH_PE_ABSPTR 0x00
#define DW_EH_PE_ULEB128 0x01
#define DW_EH_PE_UDATA2 0x02
#define DW_EH_PE_UDATA4 0x03
#define DW_EH_PE_UDATA8 0x04
#define DW_EH_PE_SLEB128 0x09
#define DW_EH_PE_SDATA2 0x0a
#define DW_EH_PE_SDATA4 0x0b
#define DW_EH_PE_SDATA8 0x0c
#define DW_EH_PE_FORMAT 0x0f
#define DW_EH_PE_PCREL 0x10
#define DW_EH_PE_RELATION 0x70
#define DW_EH_PE_OMIT 0xff

const struct cfi_machine cfi_x86_64 = {.sp = 7, .fp = 6, .ra = 16, .ra_on_stack = true, .link = 5};
const struct cfi_machine cfi_aarch64 = {.sp = 31, .fp = 29, .ra = 30};

/* These have the operator in the top two bits and an operand in the others. */
#define DW_CFA_HIGH 0xc0
#define DW_CFA_LOW 0x3f
#define DW_CFA_ADVANCE_LOC 0x40
#define DW_CFA_OFFSET 0x80
#define DW_CFA_RESTORE 0xc0

enum {
	DW_CFA_NOP, DW_CFA_SET_LOC, DW_CFA_ADVANCE_LOC1, DW_CFA_ADVANCE_LOC2, DW_CFA_ADVANCE_LOC4,
	DW_CFA_OFFSET_EXTENDED, DW_CFA_RESTORE_EXTENDED, DW_CFA_UNDEFINED, DW_CFA_SAME_VALUE, DW_CFA_REGISTER,
	DW_CFA_REMEMBER_STATE, DW_CFA_RESTORE_STATE, DW_CFA_DEF_CFA, DW_CFA_DEF_CFA_REGISTER, DW_CFA_DEF_CFA_OFFSET,
	DW_CFA_DEF_CFA_EXPRESSION, DW_CFA_EXPRESSION, DW_CFA_OFFSET_EXTENDED_SF, DW_CFA_DEF_CFA_SF,
	DW_CFA_DEF_CFA_OFFSET_SF, DW_CFA_VAL_OFFSET, DW_CFA_VAL_OFFSET_SF, DW_CFA_VAL_EXPRESSION,
	DW_CFA_NEGATE_RA_STATE = 0x2d, /* arm64; ignored, as the walk strips signatures from all return addresses */
	DW_CFA_GNU_ARGS_SIZE = 0x2e,
};

#define DW_OP_DEREF 0x06
#define DW_OP_PLUS_UCONST 0x23
#define DW_OP_LIT0 0x30
#define DW_OP_BREG0 0x70

/* ---- untrusted numbers, little-endian as on both architectures ---- */

static size_t bytes_left(const struct bytes *bytes)
{
	return (size_t)(bytes->end - bytes->at);
}

static uint64_t bytes_number(struct bytes *bytes, size_t width)
{
	uint64_t number = 0;

	if (bytes_left(bytes) < width) {
		bytes->bad = true;
		bytes->at = bytes->end;
		return 0;
	}
	memcpy(&number, bytes->at, width);
	bytes->at += width;
	return number;
}

/* Returns the next `len` bytes as a separate range. */
static struct bytes bytes_take(struct bytes *bytes, uint64_t len)
{
	struct bytes taken = {bytes->at, bytes->at, false};

	if (len > bytes_left(bytes)) {
		bytes->bad = true;
		len = bytes_left(bytes);
	}
	bytes->at += len;
	taken.end = bytes->at;
	return taken;
}

#define BYTES_LEB128_MAX 16 /* bytes; a number of 64 bits has 10 at most, and some assemblers pad it */

static uint64_t bytes_leb128(struct bytes *bytes, bool is_signed)
{
	size_t left = bytes_left(bytes), used;
	uint64_t number;

	used = varint_get(bytes->at, left < BYTES_LEB128_MAX ? left : BYTES_LEB128_MAX, &number);
	bytes->bad |= !used;
	bytes->at += used ? used : left;
	if (is_signed && used && 7 * used < 64 && bytes->at[-1] & 0x40)
		number |= ~0ull << (7 * used);
	return number;
}

static uint64_t bytes_uleb(struct bytes *bytes)
{
	return bytes_leb128(bytes, false);
}

static int64_t bytes_sleb(struct bytes *bytes)
{
	return (int64_t)bytes_leb128(bytes, true);
}

static uint64_t encoded_number(struct bytes *bytes, uint8_t format)
{
	switch (format) {
	case DW_EH_PE_ABSPTR:
	case DW_EH_PE_UDATA8:
	case DW_EH_PE_SDATA8:
		return bytes_number(bytes, 8);
	case DW_EH_PE_UDATA2:
		return bytes_number(bytes, 2);
	case DW_EH_PE_UDATA4:
		return bytes_number(bytes, 4);
	case DW_EH_PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)bytes_number(bytes, 2);
	case DW_EH_PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)bytes_number(bytes, 4);
	case DW_EH_PE_ULEB128:
		return bytes_uleb(bytes);
	case DW_EH_PE_SLEB128:
		return (uint64_t)bytes_sleb(bytes);
	}
	bytes->bad = true;
	return 0;
}

static uint64_t cfi_pointer(const struct cfi *cfi, struct bytes *bytes, uint8_t encoding)
{
	uint64_t here = cfi->section.vaddr + (uint64_t)(bytes->at - (const uint8_t *)cfi->section.bytes);
	uint64_t number = encoded_number(bytes, encoding & DW_EH_PE_FORMAT);

	switch (encoding & DW_EH_PE_RELATION) {
	case DW_EH_PE_ABSPTR:
		return number;
	case DW_EH_PE_PCREL:
		return here + number;
	}
	bytes->bad = true; /* addresses relative to text, data or function do not occur in these sections */
	return 0;
}

/* ---- programs ---- */

/* The state of one program. */
struct run {
	struct cfi *cfi;
	const struct cfi_cie *cie;
	struct bytes program;
	struct cfi_state state;
	struct cfi_state saved[SAVED_STATES];
	unsigned int saved_count;
	uint64_t pc;
};

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

static void set_register(struct run *run, uint64_t number, enum cfi_rule rule, int64_t offset)
{
	struct cfi_register value = {rule, offset};

	if (number == run->cfi->machine->fp)
		run->state.fp = value;
	else if (number == run->cfi->machine->ra)
		run->state.ra = value;
}

static int64_t factored(const struct run *run, int64_t number)
{
	return (int64_t)((uint64_t)number * (uint64_t)run->cie->data_align);
}

static void set_offset(struct run *run, uint64_t number, int64_t offset)
{
	set_register(run, number, CFI_OFFSET, factored(run, offset));
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
		set_cfa(run, number, factored(run, bytes_sleb(program)));
		return true;
	case DW_CFA_DEF_CFA_REGISTER:
		set_cfa(run, bytes_uleb(program), run->state.cfa_offset);
		return true;
	case DW_CFA_DEF_CFA_OFFSET:
		set_cfa(run, run->state.cfa_register, (int64_t)bytes_uleb(program));
		return true;
	case DW_CFA_DEF_CFA_OFFSET_SF:
		set_cfa(run, run->state.cfa_register, factored(run, bytes_sleb(program)));
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
	bool saves = op == DW_CFA_REMEMBER_STATE, restores = op == DW_CFA_RESTORE_STATE;

	if (saves && run->saved_count < SAVED_STATES)
		run->saved[run->saved_count++] = run->state;
	else if (restores && run->saved_count)
		run->state = run->saved[--run->saved_count];
	else if (saves || restores)
		run->program.bad = true;
	else if (op == DW_CFA_GNU_ARGS_SIZE)
		bytes_uleb(&run->program);
	else if (op >= DW_CFA_OFFSET_EXTENDED && op <= DW_CFA_VAL_EXPRESSION)
		run_register(run, op);
	else if (op != DW_CFA_NOP && op != DW_CFA_NEGATE_RA_STATE)
		run->program.bad = true;
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

/* Runs one instruction. Returns true if it moves the pc, to *ret_pc. */
static bool run_next(struct run *run, uint64_t *ret_pc)
{
	uint8_t op = (uint8_t)bytes_number(&run->program, 1);

	run->cfi->budget--;
	if (run_advance(run, op, ret_pc))
		return true;
	if ((op & DW_CFA_HIGH) == DW_CFA_OFFSET)
		set_offset(run, op & DW_CFA_LOW, (int64_t)bytes_uleb(&run->program));
	else if (op & DW_CFA_HIGH)
		restore_register(run, op & DW_CFA_LOW);
	else if (!run_cfa(run, op))
		run_other(run, op);
	return false;
}

static const struct cfi_state unknown = {DUET_CFA_NONE, .fp = {.rule = CFI_UNKNOWN}, .ra = {.rule = CFI_UNKNOWN}};

/* Runs the CIE's own instructions, from the machine's state at a function's first byte. 0 or -E2BIG. */
static int run_initial(struct cfi *cfi, struct cfi_cie *cie, struct bytes program)
{
	struct run run = {.cfi = cfi, .cie = cie, .program = program};
	uint64_t ignored;

	if (cfi->machine->ra_on_stack)
		run.state.ra = (struct cfi_register){CFI_OFFSET, -8};
	while (bytes_left(&run.program) && !run.program.bad) {
		if (!cfi->budget)
			return -E2BIG;
		(void)run_next(&run, &ignored);
	}
	cie->initial = run.program.bad ? unknown : run.state;
	return 0;
}

/* Arm64's signal trampoline has no expression: the kernel's signal frame has one layout. */
static int emit_state(const struct run *run, cfi_emit emit, void *context)
{
	static const struct cfi_state signal = {.cfa = DUET_CFA_SIGNAL};
	bool is_signal = run->cie->is_signal_frame && !run->cfi->machine->ra_on_stack;

	return emit(context, run->pc, is_signal ? &signal : &run->state);
}

int cfi_run(struct cfi *cfi, const struct cfi_fde *fde, cfi_emit emit, void *context)
{
	const struct cfi_cie *cie = &cfi->cies.items[fde->cie];
	struct run run = {.cfi = cfi, .cie = cie, .program = fde->program, .state = cie->initial, .pc = fde->start};
	uint64_t pc = run.pc;
	int err = 0;

	while (!err && bytes_left(&run.program) && !run.program.bad) {
		if (!cfi->budget)
			return -E2BIG;
		if (!run_next(&run, &pc) || pc == run.pc)
			continue;
		if (pc < run.pc || pc >= fde->end)
			break; /* backwards, or past the end */
		err = emit_state(&run, emit, context);
		run.pc = pc;
	}
	if (run.program.bad)
		run.state = unknown;
	return err ? err : emit_state(&run, emit, context);
}

/* ---- CIEs and FDEs ---- */

/* One CIE or FDE. */
struct entry {
	struct bytes body; /* the bytes after the id */
	size_t offset;
	bool is_cie;
	uint64_t cie; /* for an FDE: offset of its CIE; past the section's end if the entry is damaged */
};

/* In .eh_frame an FDE's id is the distance back from the id to the CIE; in .debug_frame it is the CIE's offset. */
static void read_id(const struct cfi *cfi, struct entry *entry, bool is_64_bit)
{
	size_t here = (size_t)(entry->body.at - (const uint8_t *)cfi->section.bytes);
	bool is_debug_frame = cfi->section.is_debug_frame;
	size_t width = is_debug_frame && is_64_bit ? 8 : 4;
	uint64_t id = bytes_number(&entry->body, width);

	entry->is_cie = id == (is_debug_frame ? UINT64_MAX >> (64 - 8 * width) : CIE_ID);
	entry->cie = is_debug_frame ? id : here - id;
}

/* False at the end: at an entry of length 0, or a damaged one. */
static bool entry_at(const struct cfi *cfi, uint64_t offset, struct entry *ret)
{
	const uint8_t *start = cfi->section.bytes;
	struct bytes bytes = {start + offset, start + cfi->section.len, false};
	uint64_t len = bytes_number(&bytes, 4);
	bool is_64_bit = len == EXTENDED_LENGTH;

	if (is_64_bit)
		len = bytes_number(&bytes, 8);
	if (bytes.bad || len < 4 || len > bytes_left(&bytes))
		return false;
	ret->offset = offset;
	ret->body = bytes_take(&bytes, len);
	read_id(cfi, ret, is_64_bit);
	return !ret->body.bad;
}

/*
 * Reads the letters after 'z' and the data of each, or letters without 'z'. False if the data is damaged, or if a
 * letter may change the layout in a way that we do not know.
 */
static bool read_augmentation(struct cfi_cie *cie, const char *letters, struct bytes *body)
{
	struct bytes data;

	if (letters[0] != 'z') { /* as assemblers write into .debug_frame; others than these may have data */
		cie->is_signal_frame = strchr(letters, 'S') != NULL;
		return strspn(letters, "SBG") == strlen(letters);
	}
	cie->has_augmentation_data = true;
	data = bytes_take(body, bytes_uleb(body));
	for (letters++; *letters; letters++) {
		if (*letters == 'R')
			cie->encoding = (uint8_t)bytes_number(&data, 1);
		else if (*letters == 'P') {
			uint8_t encoding = (uint8_t)bytes_number(&data, 1);

			if (encoding != DW_EH_PE_OMIT)
				encoded_number(&data, encoding & DW_EH_PE_FORMAT);
		} else if (*letters == 'L')
			bytes_number(&data, 1);
		else if (*letters == 'S')
			cie->is_signal_frame = true;
		else if (*letters != 'B' && *letters != 'G') /* arm64: B, signed with key B; G, memory is tagged */
			break; /* an unknown letter; it can be skipped, as the data's length is known */
	}
	return !data.bad && !body->bad;
}

/*
 * Since DWARF 4 a CIE has the width of addresses and of segment numbers. Only .debug_frame has CIEs of that version.
 * False for widths or versions that we do not support.
 */
static bool read_widths(const struct cfi *cfi, uint8_t version, struct bytes *body)
{
	if (version == 1 || version == 3)
		return true;
	return version == 4 && cfi->section.is_debug_frame && bytes_number(body, 1) == 8 && bytes_number(body, 1) == 0;
}

static int parse_cie(struct cfi *cfi, struct entry *entry, struct cfi_cie *cie)
{
	struct bytes *body = &entry->body;
	uint8_t version = (uint8_t)bytes_number(body, 1);
	const char *letters = (const char *)body->at;
	uint64_t ra;

	if (!memchr(letters, '\0', bytes_left(body) < MAX_LETTERS ? bytes_left(body) : MAX_LETTERS))
		return -EINVAL;
	body->at += strlen(letters) + 1;
	if (!read_widths(cfi, version, body))
		return -EINVAL;
	*cie = (struct cfi_cie){.offset = entry->offset};
	cie->code_align = bytes_uleb(body);
	cie->data_align = bytes_sleb(body);
	ra = version == 1 ? bytes_number(body, 1) : bytes_uleb(body);
	if (body->bad || ra != cfi->machine->ra || !read_augmentation(cie, letters, body))
		return -EINVAL;
	return run_initial(cfi, cie, *body);
}

/* Finds or reads the CIE at `offset`; returns its index. Backwards: there are few, and FDEs follow theirs. */
static int find_cie(struct cfi *cfi, uint64_t offset, uint32_t *ret)
{
	struct entry entry;
	struct cfi_cie cie;
	int err;

	for (size_t i = cfi->cies.len; i-- > 0 && cfi->budget;) {
		cfi->budget--;
		if (cfi->cies.items[i].offset == offset) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	if (cfi->cies.len >= MAX_CIES || !cfi->budget || offset >= cfi->section.len ||
	    !entry_at(cfi, offset, &entry) || !entry.is_cie)
		return -EINVAL;
	err = parse_cie(cfi, &entry, &cie);
	if (!err)
		err = vec_push(&cfi->cies, cie);
	if (!err)
		*ret = (uint32_t)cfi->cies.len - 1;
	return err;
}

/* Returns 0, also if the FDE is ignored, or -ENOMEM. */
static int add_fde(struct cfi *cfi, struct entry *entry)
{
	const struct cfi_section *section = &cfi->section;
	struct bytes *body = &entry->body;
	const struct cfi_cie *cie;
	struct cfi_fde fde;
	uint64_t len;
	int err = find_cie(cfi, entry->cie, &fde.cie);

	if (err)
		return err == -ENOMEM ? err : 0;
	cie = &cfi->cies.items[fde.cie];
	fde.start = cfi_pointer(cfi, body, cie->encoding);
	len = encoded_number(body, cie->encoding & DW_EH_PE_FORMAT);
	if (cie->has_augmentation_data)
		bytes_take(body, bytes_uleb(body));
	if (body->bad || bytes_left(body) > MAX_PROGRAM || fde.start < section->code_start ||
	    fde.start >= section->code_end || !len || len > section->code_end - fde.start)
		return 0;
	fde.end = fde.start + len;
	fde.program = *body;
	return vec_push(&cfi->fdes, fde);
}

static void sort_fdes(struct cfi *cfi)
{
	struct cfi_fde *fdes = cfi->fdes.items;
	size_t kept = 0;

	if (fdes)
		qsort(fdes, cfi->fdes.len, sizeof(*fdes), vec_by_u64);
	for (size_t i = 0; i < cfi->fdes.len; i++)
		if (!kept || fdes[i].start >= fdes[kept - 1].end)
			fdes[kept++] = fdes[i];
	cfi->fdes.len = kept;
}

void cfi_begin(struct cfi *cfi, const struct cfi_machine *machine, const struct cfi_section *section)
{
	*cfi = (struct cfi){.machine = machine, .section = *section};
	cfi->budget = section->len * STEPS_PER_BYTE + STEPS_MIN;
}

int cfi_find(struct cfi *cfi)
{
	struct entry entry;
	int err = 0;

	while (!err && cfi->at < cfi->section.len && entry_at(cfi, cfi->at, &entry)) {
		cfi->at = (size_t)(entry.body.end - (const uint8_t *)cfi->section.bytes);
		if (!entry.is_cie)
			err = add_fde(cfi, &entry);
	}
	if (!err)
		sort_fdes(cfi);
	return err;
}

void cfi_release(struct cfi *cfi)
{
	if (!cfi)
		return;
	vec_release(&cfi->cies);
	vec_release(&cfi->fdes);
}
