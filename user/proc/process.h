/* SPDX-License-Identifier: MIT */
/*
 * The processes seen so far: identity, names, mappings, namespaces. A process is identified by {pid, start time},
 * because pids are reused. Everything read from /proc may be hostile and may vanish at any moment. Fields that could
 * not be read stay empty.
 */
#pragma once

#include <dirent.h>
#include <elf.h>
#include <sys/types.h>

#include "base/map.h"
#include "proc/allowance.h"
#include "proc/maps.h"

/* The folders that keep state for each process. The number is the position of the folder's words among all words. */
enum process_folder {
	PROCESS_OF_COLLECT,
	PROCESS_OF_JVMS,
	PROCESS_OF_SUBJECT = PROCESS_OF_JVMS + 4,
	PROCESS_OF_JOIN = PROCESS_OF_SUBJECT + 13,
	PROCESS_STATE_WORDS
};
#define PROCESS_STATE_BYTES(folder, next) (((next) - (folder)) * sizeof(uint64_t))

/* payer.key of all processes that ended before it was known whose they are */
#define PROCESS_OF_NOBODY UINT64_MAX

struct process {
	pid_t pid; /* in the loader's pid namespace */
	uint64_t start_ticks; /* /proc/PID/stat field 22, USER_HZ ticks since boot */
	char comm[16];
	char *executable; /* link text of /proc/PID/exe, or NULL */
	pid_t ns_pid; /* innermost pid of NSpid: in /proc/PID/status */
	uid_t uid; /* effective user id, for attach */
	gid_t gid;
	struct payer payer; /* whose allowance pays for reading the process */
	struct maps maps; /* as of maps_ns */
	uint64_t maps_ns; /* 0 = not read since the program was started */
	uint64_t maps_cost_ns; /* CPU time of reading and publishing them minus allowance accrued up to maps_paid_ns */
	uint64_t maps_paid_ns;
	uint32_t maps_version; /* incremented when `maps` changes */
	pid_t living; /* a thread of it whose memory and files /proc shows: pid, unless its first thread has ended */
	bool is_over_share; /* `maps` is empty because the user has his share of mappings */
	bool is_unread; /* its user's allowance was used up: it is read when its mappings are wanted */
	bool exited; /* exited, or known from records only: its stacks are kept, but /proc does not have it */
	uint64_t read_ns; /* when it was read from /proc, as a whole; 0: `maps` is of an older program */
	uint64_t exited_ns; /* when we learned that, CLOCK_MONOTONIC */
	uint32_t programs; /* incremented when it executes another program: `maps` is of the newest one */
	uint32_t references; /* see process_ref() */
	uint64_t states[PROCESS_STATE_WORDS]; /* see process_state() */
};

struct process_table {
	struct map by_pid; /* pid -> the current struct process */
	struct vec(struct process *) all; /* owned; includes processes that have exited */
};

/* Whoever keeps a pointer has a reference: between records, an ended process without any may be freed. */
static inline struct process *process_ref(struct process *process)
{
	process->references++;
	return process;
}

static inline void process_unref(struct process *process)
{
	process->references--;
}

void process_table_init(struct process_table *table);
void process_table_release(struct process_table *table);

/*
 * Returns the process that had `pid` with this start time (0 = the one that runs now), and reads a new one from /proc.
 * Returns NULL when out of memory. A different start time means that the pid was reused: the older process is marked as
 * exited.
 */
struct process *process_get(struct process_table *table, pid_t pid, uint64_t start_ticks);
uint64_t process_mapping_id(const struct process *process, const struct mapping *mapping); /* a hash */
/* returns NULL if the process was not seen */
struct process *process_find(const struct process_table *table, pid_t pid);
/*
 * Returns the state that a folder keeps for the process: PROCESS_STATE_BYTES for each number up to the next folder's.
 * It is zeroed at first, is freed with the process, and owns nothing.
 */
void *process_state(struct process *process, enum process_folder folder);
/* Moves mappings from the mapping log into a process whose own can no longer be read. Empties `maps`. */
void process_adopt_maps(struct process *process, struct maps *maps);
/* Call after an exec: same pid and start time, another program. Reads names and mappings again. */
void process_exec(struct process *process);
void process_exit(struct process *process); /* call when it has exited */

/* Frees processes without references that exited before `before_ns`, after on_free(). Returns their number. */
size_t process_table_sweep(struct process_table *table, uint64_t before_ns,
			   void (*on_free)(void *context, struct process *process), void *context);

/*
 * Reads the mappings again, if the last read is at least `min_age_ns` old (0 = always). Returns 1 if they changed
 * (pointers into the old ones are then invalid), 0 if not, or -errno: -ESRCH if the process has ended. A process that
 * is about to end keeps its old mappings. Also returns 0 while its payer has used up the allowance and, with
 * `min_age_ns`, while the process has cost too much.
 */
int process_refresh_maps(struct process *process, uint64_t now_ns, uint64_t min_age_ns);

/* These read one field of /proc, without a table. Return 0 or -errno (-ESRCH: no such process). */
int process_read_start_ticks(pid_t pid, uint64_t *ret_ticks);
int process_read_leader(pid_t tid, pid_t *ret_pid); /* the process (thread group) that thread `tid` belongs to */
int process_read_uid(pid_t pid, uid_t *ret_uid); /* the effective user id */
uint64_t process_cpu_ns(pid_t pid); /* CPU time of its threads so far; 0 when it has ended */
int process_read_thread_cpu(pid_t pid, pid_t tid, uint64_t *ret_ns); /* `tid` as in the loader's pid namespace */
/* true if the process runs, but /proc is mounted with hidepid and does not show it to us */
bool process_is_hidden(pid_t pid);
char process_read_state(pid_t pid); /* returns 'R', 'S', 'T', 'Z', …; 0 when it cannot be read */
/* Reads the name of a thread; `tid` is as in the loader's pid namespace. "" when the thread has ended. */
void process_read_thread_comm(const struct charge *charge, pid_t tid, char *comm, size_t size);
uint64_t process_age_ns(const struct process *process); /* time since it was forked */
/*
 * Returns a thread of the process that has not ended: `pid`, unless the first thread has ended before the others.
 * Returns 0 if all have ended, or a signal is about to end them.
 */
pid_t process_living_thread(pid_t pid);
bool process_is_there(const struct process *process); /* false when it has ended, or its pid was reused */
bool process_is_ending(const struct process *process); /* also true when it is not there */
bool process_is_kernel_thread(const struct process *process);

/* Returns the next process of the open folder /proc, in no particular order, or 0 at the end. */
pid_t process_next(DIR *folder);
typedef void (*process_visit)(void *context, pid_t pid);
int process_each(process_visit visit, void *context); /* visits all processes in /proc. Returns 0 or -errno */

/* /proc/PID: its stat and those of its threads, which processes run by that, and what kind of program one is. */
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
	STAT_STACK = 28, /* where the program's stack begins; 0 if we may not know */
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
int proc_open(const struct charge *charge, const char *folder);
/* Returns 0, or -EPROTO if it is no such text. */
int proc_stat_parse(struct proc_stat *ret, const char *text);
/*
 * Reads a file of that name in an open folder, or at an absolute path. Returns 0 or -errno. Neither opening nor reading
 * it takes a lock that the process may hold.
 */
int proc_stat_read(struct proc_stat *ret, int folder, const char *name);
int proc_stat_read_again(struct proc_stat *ret, int fd); /* the same, of an open file */
int proc_stat_of(struct proc_stat *ret, pid_t pid); /* the same, of a process with all its threads */

/*
 * Which of the machine's processes run: those whose CPU time grows from one look to the next. Notes the time of all
 * processes but kernel threads: pid -> 1 + the kernel's ticks. Without memory, fewer are noted.
 */
void busy_note(struct map *ret_busy);
/* Calls `visit` for the noted processes that have run since, or run now. */
void busy_each(const struct map *busy, void (*visit)(void *context, pid_t pid), void *context);

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
