/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Unwind rows as the loader makes them from .eh_frame and BPF reads them, and the flat arrays that hold them: rows of
 * all files in one, an index of pages into each file's rows, files ("modules"), and the mappings of each process.
 * The loader writes what nobody reads yet, then makes it reachable with one store; what is no longer
 * reachable it leaves alone for DUET_UNWIND_GRACE_NS before it writes there again.
 */
#ifndef DUET_UNWIND_H
#define DUET_UNWIND_H

#include "duet_types.h"

/* For the processes of a host; for chosen ones half of it, and a quarter of the mappings. */
#define DUET_UNWIND_MAX_ROWS (4u << 20)	     /* 32 MB; libjvm.so has 0.18 million */
#define DUET_UNWIND_MAX_PAGES (512u << 10)    /* 4 MB: 512 MB of code */
#define DUET_UNWIND_MAX_MODULES 4096	     /* files */
#define DUET_UNWIND_MAX_MAPPINGS (128u << 10) /* 4 MB, of all processes */
#define DUET_UNWIND_MAX_PROCESSES 8192
#define DUET_UNWIND_PROCESS_MAPPINGS 4096    /* of one process */
#define DUET_UNWIND_PAGE_SHIFT 10	     /* 1 KB of code a page: about 14 rows, never more than 1025 */
#define DUET_UNWIND_GRACE_NS 100000000ull    /* a BPF program runs some microseconds with what it looked up */

/* How to find the canonical frame address (CFA): the stack pointer's value before the call. */
enum duet_unwind_cfa {
	DUET_CFA_NONE,	   /* nothing known from here on */
	DUET_CFA_ENTRY,	   /* no caller: the return address is undefined */
	DUET_CFA_SIGNAL,   /* the kernel's signal frame lies at the stack pointer */
	DUET_CFA_SP,	   /* sp + cfa */
	DUET_CFA_FP,	   /* fp + cfa */
	DUET_CFA_DEREF_FP, /* what lies at fp + cfa: functions that align their stack */
	DUET_CFA_DEREF_SP, /* 8 more than what lies at sp + cfa: assembly that switches to an aligned stack */
	DUET_CFA_PLT,	   /* x86-64: sp + 8, and 16 from byte `saved` of a PLT entry of 16 bytes on */
};

#define DUET_ROW_CFA 0x0f      /* enum duet_unwind_cfa */
#define DUET_ROW_FP_SAVED 0x10 /* the caller's fp lies at CFA + saved, else fp still holds it */
#define DUET_ROW_RA_SAVED 0x20 /* arm64: the return address lies at CFA + saved, behind fp if that is too; else in lr */
#define DUET_ROW_FP_AT_FP 0x40 /* the caller's fp lies where fp points */
#define DUET_ROW_FROM_BASE 0x80 /* `saved` counts from sp or fp, the CFA's base: arm64 saves at a frame's lower end */

struct duet_unwind_row {
	uint32_t pc;  /* from the module's first byte of code on; valid up to the next row's */
	int16_t cfa;  /* words of 8 bytes */
	int8_t saved; /* words of 8 bytes */
	uint8_t rule; /* DUET_ROW_* */
};
DUET_ASSERT_SIZE(struct duet_unwind_row, 8);

/* Which rows can be in force in one page of code, counted from the module's first. */
struct duet_unwind_page {
	uint32_t first; /* in force at the page's first byte; before the first row of all the first */
	uint32_t end;	/* exclusive */
};
DUET_ASSERT_SIZE(struct duet_unwind_page, 8);

/* One file. */
struct duet_unwind_module {
	uint32_t first_row;
	uint32_t first_page;
	uint32_t pages; /* 0: its rows had no room */
	uint32_t used; /* by BPF, since the loader last looked */
};
DUET_ASSERT_SIZE(struct duet_unwind_module, 16);

#define DUET_UNWIND_NO_MODULE UINT32_MAX

/* Where code comes from. */
enum duet_code {
	DUET_CODE_UNKNOWN, /* in no mapping that is known, or made by HotSpot */
	DUET_CODE_FILE,	   /* may be built without frame pointers: its rows tell */
	DUET_CODE_MEMORY,  /* made while the process runs, by a JIT compiler: has no rows, but frame pointers */
};

/* A process's executable mappings lie side by side, sorted. */
struct duet_unwind_mapping {
	uint64_t start;
	uint64_t end;	 /* exclusive */
	uint64_t base;	 /* where the module's pc 0 is mapped */
	uint32_t module; /* index, or DUET_UNWIND_NO_MODULE: no file, or one without rows */
	uint32_t code; /* enum duet_code */
};
DUET_ASSERT_SIZE(struct duet_unwind_mapping, 32);

/* Value of the map `unwind_processes`, key = tgid as the loader sees it. */
struct duet_unwind_process {
	uint64_t start_ticks; /* as in struct duet_jvm_target */
	uint64_t generation; /* of the slice: no other one of any process has the same */
	uint32_t first;
	uint32_t mappings;
};
DUET_ASSERT_SIZE(struct duet_unwind_process, 24);

#define DUET_UNWIND_MAGIC 0x64757477u /* "dutw" */
#define DUET_UNWIND_VERSION 3
#define DUET_UNWIND_FILE_PAGE 4096 /* rows, pages, modules and mappings each begin on a multiple of it */

/*
 * The same arrays in a sealed memfd for an agent that walks its own process. What is reachable from the slice in force
 * stays as it is until another one is in force for DUET_UNWIND_GRACE_NS: a walk that ends in the generation that it
 * began in has read nothing else.
 */
struct duet_unwind_file {
	uint32_t magic;
	uint32_t version;
	uint32_t rows; /* elements of the arrays; constant */
	uint32_t pages;
	uint32_t modules;
	uint32_t mappings;
	uint64_t generation; /* 0: no slice yet; stored with release order when its slice has been written */
	struct duet_unwind_process slices[2]; /* in force: [generation % 2] */
};
DUET_ASSERT_SIZE(struct duet_unwind_file, 80);

/* Where the arrays lie in the file. */
struct duet_unwind_offsets {
	uint64_t rows;
	uint64_t pages;
	uint64_t modules;
	uint64_t mappings;
	uint64_t end;
};

static inline uint64_t duet_unwind_behind(uint64_t offset, uint64_t elements, uint64_t element_bytes)
{
	uint64_t end = offset + elements * element_bytes;

	return (end + DUET_UNWIND_FILE_PAGE - 1) / DUET_UNWIND_FILE_PAGE * DUET_UNWIND_FILE_PAGE;
}

static inline struct duet_unwind_offsets duet_unwind_offsets(const struct duet_unwind_file *file)
{
	struct duet_unwind_offsets at = {.rows = DUET_UNWIND_FILE_PAGE};

	at.pages = duet_unwind_behind(at.rows, file->rows, sizeof(struct duet_unwind_row));
	at.modules = duet_unwind_behind(at.pages, file->pages, sizeof(struct duet_unwind_page));
	at.mappings = duet_unwind_behind(at.modules, file->modules, sizeof(struct duet_unwind_module));
	at.end = duet_unwind_behind(at.mappings, file->mappings, sizeof(struct duet_unwind_mapping));
	return at;
}

#endif
