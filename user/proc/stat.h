/* SPDX-License-Identifier: MIT */
/* /proc/PID: its stat and those of its threads, which processes run by that, and what kind of program one is. */
#pragma once

#include <elf.h>
#include <sys/types.h>

#include "base/map.h"

#define NS_PER_TICK 10000000 /* USER_HZ is 100 */

#define PF_KTHREAD 0x200000 /* linux/sched.h, of STAT_FLAGS */

/* The numbers of fields, as in proc(5). */
enum {
	STAT_PARENT = 4,
	STAT_FLAGS = 9,
	STAT_MINOR_FAULTS,
	STAT_MAJOR_FAULTS = 12,
	STAT_USER = 14, /* in ticks, as STAT_SYSTEM */
	STAT_SYSTEM,
	STAT_THREADS = 20,
	STAT_START = 22, /* in ticks since boot */
	STAT_SIZE,
	STAT_RESIDENT, /* in pages */
	STAT_PENDING = 31, /* the set of signals */
	STAT_FIELDS
};

struct proc_stat {
	char comm[64]; /* any bytes; of a process at most 15, of a kernel thread more */
	char state; /* 'R', 'S', 'T', 'Z', … */
	uint64_t fields[STAT_FIELDS];
};

/*
 * Opens /proc/PID ("") or a folder in it with O_PATH: reads nothing. Unlike the pid, the descriptor can never stand for
 * another process. Returns it, or -errno: -ESRCH if the process has ended.
 */
int proc_open(pid_t pid, const char *folder);
/* Returns 0, or -EPROTO if it is no such text. */
int proc_stat_parse(struct proc_stat *ret, const char *text);
/*
 * Reads a file of that name in an open folder, or at an absolute path. Returns 0 or -errno. Neither opening nor reading
 * it takes a lock that the process may hold.
 */
int proc_stat_read(struct proc_stat *ret, int folder, const char *name);
int proc_stat_read_again(struct proc_stat *ret, int fd); /* the same, of an open file */
int proc_stat_of(struct proc_stat *ret, pid_t pid); /* the same, of a process with all its threads */

/* Which of the machine's processes run: those whose CPU time grows from one look to the next. */
struct busy { /* all zero: nothing noted */
	struct map ticks; /* pid -> 1 + CPU time of the process, in the kernel's ticks */
};

/* Notes the CPU time of all processes but kernel threads. Without memory, fewer are noted. */
void busy_note(struct busy *busy);
/* Calls `visit` for the noted processes that have run since, or run now. */
void busy_each(const struct busy *busy, void (*visit)(void *context, pid_t pid), void *context);
void busy_release(struct busy *busy);

/* Whether a program is of the kind that duet itself is: its rows, its reader and its agent fit no other. */
#if defined(__x86_64__)
#define MACHINE_ELF EM_X86_64
#elif defined(__aarch64__)
#define MACHINE_ELF EM_AARCH64
#endif

/*
 * Returns what the process runs if that is another kind of program, such as "it is a 32-bit program". NULL if it is
 * not, or not known. Static text. May block where its file system does, so call it in a process that may.
 */
const char *machine_foreign(pid_t pid);
