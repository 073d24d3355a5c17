/* SPDX-License-Identifier: MIT */
/*
 * The processes seen so far: identity, names, mappings, namespaces. Identity is
 * {pid, start time}: a pid alone is reused. Everything read from /proc is hostile
 * and may vanish at any moment; what could not be read stays empty.
 */
#ifndef PROC_PROCESS_H
#define PROC_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "proc/maps.h"

struct process {
	pid_t pid;		/* in the loader's pid namespace */
	uint64_t start_ticks;	/* /proc/PID/stat field 22, USER_HZ ticks since boot */
	char comm[16];
	char *executable;	/* link text of /proc/PID/exe, or NULL */
	pid_t ns_pid;		/* innermost pid of NSpid: */
	uid_t uid;		/* effective ids, for attach */
	gid_t gid;
	struct maps maps;	/* as of maps_ns */
	uint64_t maps_ns;	/* 0 = never read */
	uint32_t maps_version;	/* grows when `maps` changes */
	bool exited;		/* or known only from records: its stacks stay, /proc is gone */
	void *runtime;		/* the session's own: what it knows of the JVM in there */
	uint32_t examined_version; /* the session's own: 1 more than the maps_version that it searched for a JVM */
	uint32_t attach_failures; /* the session's own: that were tried again */
	uint32_t program; /* the session's own: which program a JVM runs, 0 = not known */
	uint32_t application; /* the session's own: the same as people call it, perhaps with Spark's name for it */
	uint32_t executed_as; /* the session's own: and the path by which it was started, … */
	uint32_t libjvm; /* … its VM's build, … */
	uint32_t vm_flags; /* … and what options set there */
	uint32_t owner; /* the session's own: row of the profile for whom its last sample belonged to … */
	uint64_t owner_cgroup; /* … in this cgroup, … */
	uint32_t owner_version; /* … with maps of this version … */
	uint64_t owner_ns; /* … looked up then; 0 = never */
	uint32_t published_version; /* the session's own: 1 more than the maps_version whose unwind tables BPF has */
	bool awaits_rows; /* the session's own: its unwind tables are to be published */
	bool refused; /* the session's own: there was no room for its agent */
	bool is_sampled; /* the session's own */
	bool was_exited; /* the session's own: already when the window before ended */
	uint64_t stack_rows;	/* the profile's own: frames and stack nodes that its samples added */
};

struct process_table {
	struct map by_pid; /* pid -> the current struct process */
	struct vec(struct process *) all; /* also exited ones, owned */
};

void process_table_init(struct process_table *table);
void process_table_release(struct process_table *table);

/*
 * The process that carried `pid` with this start time (0 = whichever lives
 * now), read from /proc when new. NULL when out of memory. A different start
 * time means the pid was reused: the old one is marked exited.
 */
struct process *process_get(struct process_table *table, pid_t pid, uint64_t start_ticks);
struct process *process_find(const struct process_table *table, pid_t pid); /* NULL when not seen */
/* Takes over mappings that were told of one whose own cannot be read any more, and empties `maps`. */
void process_adopt_maps(struct process *process, struct maps *maps);
/* Same pid and start time, another program: names and maps are read again. */
void process_exec(struct process_table *table, pid_t pid);
void process_exit(struct process_table *table, pid_t pid);

/*
 * Frees the processes for which `is_done` says so: nothing may point to them any more. Asked about each, also of the
 * living.
 */
void process_table_sweep(struct process_table *table, bool (*is_done)(void *context, struct process *process),
			 void *context);

/*
 * Re-reads the mappings; at most once per `min_age_ns` unless it is 0. 1 when
 * they changed (pointers to the old ones are then stale), 0 when not, -errno:
 * -ESRCH when the process is gone. The mappings of a dying process are kept.
 */
int process_refresh_maps(struct process *process, uint64_t now_ns, uint64_t min_age_ns);

/* One field of /proc, without a table. 0 or -errno (-ESRCH: no such process). */
int process_read_start_ticks(pid_t pid, uint64_t *ret_ticks);
int process_read_leader(pid_t tid, pid_t *ret_pid); /* the process that a thread, or a process, is of */
int process_read_uid(pid_t pid, uid_t *ret_uid); /* effective */
int process_read_thread_cpu(pid_t pid, pid_t tid, uint64_t *ret_ns); /* `tid` as the loader numbers it */
bool process_is_hidden(pid_t pid); /* it runs, but /proc, mounted with hidepid, does not show it to us */
char process_read_state(pid_t pid); /* 'R', 'S', 'T', 'Z', …; 0 when it cannot be read */
/* Of an open /proc/PID/stat: start time and state, 'R','S','T',… 0 or -errno. */
int process_read_stat(int stat_fd, uint64_t *ret_ticks, char *ret_state);
/* Name of one thread; `tid` as the loader or as the process itself numbers it. "" when it is gone. */
void process_read_thread_comm(pid_t pid, pid_t tid, char *comm, size_t size);
uint64_t process_age_ns(const struct process *process); /* since its first exec or fork */
bool process_is_ending(const struct process *process); /* or has ended, or its pid is another's */
bool process_is_kernel_thread(const struct process *process);

/* Every process of /proc, in no order. The caller frees *ret_pids. 0 or -errno. */
int process_list(pid_t **ret_pids, size_t *ret_count);

#endif
