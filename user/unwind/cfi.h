/* SPDX-License-Identifier: MIT */
/*
 * Call frame information, as .eh_frame and .debug_frame hold it. It consists of CIEs (what several functions have in
 * common) and FDEs (one for each range of code). Their programs say where the registers of a frame are saved. Format:
 * the LSB's chapter on exception frames, DWARF 5 section 6.4.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "duet_unwind.h"

struct cfi_machine { /* DWARF's register numbers */
	uint8_t sp;
	uint8_t fp;
	uint8_t ra; /* the column of the return address */
	bool ra_on_stack; /* a call pushes the return address: x86-64 */
	uint8_t link; /* if so: the register that may have it instead, as in vfork(3) */
};

extern const struct cfi_machine cfi_x86_64;
extern const struct cfi_machine cfi_aarch64;
#ifdef __x86_64__
#define CFI_HOST cfi_x86_64
#else
#define CFI_HOST cfi_aarch64
#endif

enum cfi_rule {
	CFI_SAME,      /* still in its register */
	CFI_UNDEFINED, /* lost; for the return address: there is no caller */
	CFI_OFFSET,    /* at CFA + offset */
	CFI_AT_FP,     /* where fp points */
	CFI_LINKED,    /* the return address, in the machine's register for that */
	CFI_UNKNOWN,   /* described in a way that rows cannot express */
};

struct cfi_register {
	enum cfi_rule rule;
	int64_t offset;
};

struct cfi_state { /* the rules for the registers that matter, at one pc */
	enum duet_unwind_cfa cfa; /* DUET_CFA_NONE: cannot be expressed */
	uint64_t cfa_register;
	int64_t cfa_offset;
	uint8_t plt_push_end; /* for DUET_CFA_PLT: the byte of the entry at which its push ends */
	struct cfi_register fp;
	struct cfi_register ra;
};

struct cfi_section {
	const void *bytes; /* owned by the caller; must live as long as the struct cfi read from them */
	size_t len;
	uint64_t vaddr; /* for .eh_frame */
	bool is_debug_frame;
	uint64_t code_start; /* the file's code; FDEs for other addresses are ignored: linkers leave some behind */
	uint64_t code_end;
};

struct cfi_cie {
	size_t offset; /* in the section */
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of an FDE's addresses */
	bool has_augmentation_data;
	bool is_signal_frame;
	struct cfi_state initial;
};

/* Untrusted bytes, from which numbers are read. */
struct bytes {
	const uint8_t *at;
	const uint8_t *end;
	bool bad; /* a read went past the end, and returned 0: a parser can check once after several reads */
};

struct cfi_fde {
	uint64_t start; /* virtual addresses */
	uint64_t end;
	struct bytes program;
	uint32_t cie;
};

struct cfi {
	const struct cfi_machine *machine;
	struct cfi_section section;
	struct vec(struct cfi_cie) cies;
	struct vec(struct cfi_fde) fdes; /* sorted once all are found; overlapping ones are dropped */
	uint64_t budget; /* program steps left: bounds the time for a file */
	size_t at; /* offset of the entry that is read next */
};

void cfi_begin(struct cfi *cfi, const struct cfi_machine *machine, const struct cfi_section *section);
int cfi_find(struct cfi *cfi); /* finds all FDEs, up to the first damaged one; returns 0 or -ENOMEM */
void cfi_release(struct cfi *cfi);

/* Called for each range of code with one state, which starts at `pc`. A nonzero result ends the run and is returned. */
typedef int (*cfi_emit)(void *context, uint64_t pc, const struct cfi_state *state);
/* Runs an FDE's program; a damaged instruction makes the state unknown. 0, the result of `emit`, or -E2BIG. */
int cfi_run(struct cfi *cfi, const struct cfi_fde *fde, cfi_emit emit, void *context);
