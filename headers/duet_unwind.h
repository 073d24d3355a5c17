/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Unwind rows, which the loader makes from .eh_frame and .debug_frame and BPF reads, and the flat arrays that hold
 * them: the rows of all files, an index of pages into each file's rows, the files ("modules"), and the mappings of each
 * process.
 *
 * The loader writes only to parts of the arrays that nobody reads yet, and then makes them reachable with one store.
 * After a part has become unreachable, the loader waits for DUET_UNWIND_GRACE_NS before it writes there again.
 */
#pragma once

#include "duet_context.h"
#include "duet_types.h"

/* Sizes for a whole host. With chosen targets, BPF has half of the rows and pages, and a quarter of the mappings. */
#define DUET_UNWIND_MAX_ROWS (4u << 20)	     /* 32 MB; libjvm.so has 0.18 million */
#define DUET_UNWIND_MAX_PAGES (512u << 10)    /* 4 MB: 512 MB of code */
#define DUET_UNWIND_MAX_MODULES 4096	     /* files */
#define DUET_UNWIND_MAX_MAPPINGS (128u << 10) /* 4 MB, of all processes */
#define DUET_UNWIND_MAX_PROCESSES 8192
#define DUET_UNWIND_PROCESS_MAPPINGS 4096    /* of one process */
#define DUET_UNWIND_PAGE_SHIFT 10	     /* 1 KB of code a page: about 14 rows, never more than 1025 */
#define DUET_UNWIND_GRACE_NS 100000000ull    /* longest use of a looked-up row by a walk is some milliseconds */

/* How to find the canonical frame address (CFA): the stack pointer's value before the call. */
enum duet_unwind_cfa {
	DUET_CFA_NONE,	   /* nothing is known about this code */
	DUET_CFA_ENTRY,	   /* no caller: the return address is undefined */
	DUET_CFA_SIGNAL,   /* the kernel's signal frame lies at the stack pointer */
	DUET_CFA_SP,	   /* sp + cfa */
	DUET_CFA_FP,	   /* fp + cfa */
	DUET_CFA_DEREF_FP, /* the word at fp + cfa: functions that align their stack */
	DUET_CFA_DEREF_SP, /* the word at sp + cfa, plus 8: assembly that switches to an aligned stack */
	DUET_CFA_PLT,	   /* x86-64: sp + 8, or sp + 16 from byte `saved` of a 16-byte PLT entry on */
	DUET_CFA_SWITCHED, /* x86-64: fp + 16, with the caller's fp at fp, on another stack than sp */
};

#define DUET_ROW_CFA 0x0f      /* enum duet_unwind_cfa */
/* the caller's fp is at CFA + saved; without this flag or FP_AT_FP, fp still holds it */
#define DUET_ROW_FP_SAVED 0x10
/*
 * arm64: the return address is at CFA + saved, or 8 bytes above the saved fp if fp is saved too; else it is in lr.
 * x86-64: it is in rdi, not on the stack: vfork(3) of glibc.
 */
#define DUET_ROW_RA_SAVED 0x20
#define DUET_ROW_FP_AT_FP 0x40 /* the caller's fp is where fp points */
#define DUET_ROW_FROM_BASE 0x80 /* `saved` counts from the CFA's base, sp or fp: arm64 saves at a frame's lower end */

struct duet_unwind_row {
	uint32_t pc;  /* offset from the module's first byte of code; the row is valid up to the next row's pc */
	int16_t cfa;  /* words of 8 bytes */
	int8_t saved; /* words of 8 bytes */
	uint8_t rule; /* DUET_ROW_* */
};
DUET_ASSERT_SIZE(struct duet_unwind_row, 8);

/* The rows that can apply to one page of code, as indices from the module's first row. */
struct duet_unwind_page {
	uint32_t first; /* the row for the page's first byte; if that is before the module's first row, the first row */
	uint32_t end;	/* exclusive */
};
DUET_ASSERT_SIZE(struct duet_unwind_page, 8);

/* One file. */
struct duet_unwind_module {
	uint32_t first_row;
	uint32_t first_page;
	uint32_t pages; /* 0: there was no room for its rows */
	uint32_t used; /* set by BPF when it uses the rows, cleared when the loader looks */
	uint64_t serial; /* of the file in this slot, unique among all files; 0: the slot is free */
};
DUET_ASSERT_SIZE(struct duet_unwind_module, 24);

#define DUET_UNWIND_NO_MODULE UINT32_MAX

/* Where code comes from. */
enum duet_code {
	DUET_CODE_UNKNOWN, /* in no known mapping, or made by HotSpot */
	DUET_CODE_FILE,	   /* from a file; may be built without frame pointers, so rows are needed */
	DUET_CODE_MEMORY,  /* generated at run time by a JIT compiler: it has no rows, but frame pointers */
};

/* One executable mapping. The mappings of a process are adjacent and sorted. */
struct duet_unwind_mapping {
	uint64_t start;
	uint64_t end;	 /* exclusive */
	uint64_t base;	 /* address at which the module's pc 0 is mapped */
	uint32_t module; /* index of the module, or DUET_UNWIND_NO_MODULE: no file, or a file without rows */
	uint32_t code; /* enum duet_code */
};
DUET_ASSERT_SIZE(struct duet_unwind_mapping, 32);

/* A process's slice of the mappings. Value of the map `unwind_processes`, key = tgid in the loader's pid namespace. */
struct duet_unwind_process {
	uint64_t start_ticks; /* as in struct duet_jvm_target */
	uint64_t generation; /* generation of the slice, unique among all slices of all processes */
	uint32_t first;
	uint32_t mappings;
};
DUET_ASSERT_SIZE(struct duet_unwind_process, 24);

/*
 * A file, and the page in it at which a mapping begins. Key of the map `unwind_files`, by which BPF finds the rows for
 * a mapping that the loader has not published yet. A write to the file changes its time and so the key.
 */
struct duet_mapped_file {
	uint64_t inode;
	uint64_t page; /* number of the file's page at which the mapping begins */
	uint64_t bytes; /* of the file */
	int64_t changed_sec;
	uint32_t changed_nsec;
	uint32_t device; /* the major number << 20 | the minor number */
};
DUET_ASSERT_SIZE(struct duet_mapped_file, 40);

/* Value of the map `unwind_files`. */
struct duet_mapped_rows {
	uint64_t base; /* base of struct duet_unwind_mapping, minus the mapping's start */
	uint64_t serial; /* serial of the module; a module that has another serial no longer has these rows */
	uint32_t module;
	uint32_t reserved;
};
DUET_ASSERT_SIZE(struct duet_mapped_rows, 24);

#define DUET_UNWIND_MAGIC 0x64757477u /* "dutw" */
#define DUET_UNWIND_VERSION 6
#define DUET_UNWIND_FILE_PAGE 4096 /* rows, pages, modules and mappings each begin at a multiple of it */

/*
 * The same arrays in a sealed memfd, for an agent that walks its own process. What is reachable from the current slice
 * does not change until another slice has been current for DUET_UNWIND_GRACE_NS. So a walk that ends in the generation
 * in which it began has read consistent data.
 */
struct duet_unwind_file {
	uint32_t magic;
	uint32_t version;
	uint32_t rows; /* number of rows; this and the next three are constant */
	uint32_t pages;
	uint32_t modules;
	uint32_t mappings;
	uint64_t generation; /* 0: no slice yet; stored with release order after its slice has been written */
	struct duet_unwind_process slices[2]; /* the current one is [generation % 2] */
	struct duet_context_sources contexts; /* 0 until it is known; each `place` is stored last, with release order */
};
DUET_ASSERT_SIZE(struct duet_unwind_file, 80 + sizeof(struct duet_context_sources));

/* Offsets of the arrays in the file. */
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
