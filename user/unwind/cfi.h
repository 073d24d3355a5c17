/* SPDX-License-Identifier: MIT */
/*
 * Call frame information as .eh_frame and .debug_frame hold it: CIEs (what functions have in common) and FDEs (one
 * range of code each), with programs that tell how a frame's registers are found. Format: the LSB's chapter on
 * exception frames, DWARF 5 section 6.4.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "duet_unwind.h"
#include "unwind/bytes.h"

struct cfi_machine { /* DWARF's register numbers */
	uint8_t sp;
	uint8_t fp;
	uint8_t ra; /* the column that stands for the return address */
	bool ra_on_stack; /* the call pushes it: x86-64 */
};

extern const struct cfi_machine cfi_x86_64;
extern const struct cfi_machine cfi_aarch64;

enum cfi_rule {
	CFI_SAME,      /* still in its register */
	CFI_UNDEFINED, /* lost; of the return address: there is no caller */
	CFI_OFFSET,    /* at CFA + offset */
	CFI_AT_FP,     /* where fp points */
	CFI_UNKNOWN,   /* told in a way that rows cannot express */
};

struct cfi_register {
	enum cfi_rule rule;
	int64_t offset;
};

struct cfi_state { /* of the registers that matter, at one pc */
	enum duet_unwind_cfa cfa; /* DUET_CFA_NONE: cannot be expressed */
	uint64_t cfa_register;
	int64_t cfa_offset;
	uint8_t plt_push_end; /* of DUET_CFA_PLT */
	struct cfi_register fp;
	struct cfi_register ra;
};

#define CFI_SAVED_STATES 8 /* nested DW_CFA_remember_state; compilers nest once */

struct cfi_section {
	const void *bytes; /* the caller's, needed as long as what is read from them */
	size_t len;
	uint64_t vaddr; /* of .eh_frame */
	bool is_debug_frame;
	uint64_t code_start; /* the file's; what is told of other code, as linkers leave it behind, does not count */
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
	struct vec(struct cfi_fde) fdes; /* sorted, overlapping ones dropped */
	uint64_t budget; /* program steps left: what a file may cost us */
};

/* Finds all FDEs. What is damaged ends the search, what was found before stays. 0 or -ENOMEM. */
int cfi_read(struct cfi *cfi, const struct cfi_machine *machine, const struct cfi_section *section);
void cfi_release(struct cfi *cfi);

/* Inside unwind/. An address encoded as DW_EH_PE_*; sets bytes->bad when the encoding is not for files. */
uint64_t cfi_pointer(const struct cfi *cfi, struct bytes *bytes, uint8_t encoding);

/* Called for each stretch of one state from `pc` on; nonzero ends the run and is returned. */
typedef int (*cfi_emit)(void *context, uint64_t pc, const struct cfi_state *state);
/* Runs an FDE's program; from a damaged instruction on the state is unknown. 0, what `emit` returned, or -E2BIG. */
int cfi_run(struct cfi *cfi, const struct cfi_fde *fde, cfi_emit emit, void *context);
/* The CIE's own instructions, from the machine's state at a function's first byte. */
int cfi_run_initial(struct cfi *cfi, struct cfi_cie *cie, struct bytes program);

#endif
