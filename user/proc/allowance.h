/* SPDX-License-Identifier: MIT */
/*
 * The CPU time that duet spends on a user's processes: the loader's, its helper's and its readers'. A user who starts
 * thousands of processes, or maps thousands of large files, would keep the loader busy. So each user has an allowance
 * of CPU time, which grows as time passes, and all users together have another one. When the allowance of a user is
 * used up, nothing is done for the processes of that user until it has grown. When the common one is used up, only
 * users who have used little are served.
 *
 * There is no limit for the processes of the user who runs duet, nor for those of root outside containers.
 *
 * Whatever opens, reads, asks or walks for a process takes a struct charge. So there is no work without a payer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Whose allowance pays for a process. It is the user's; each pid namespace has its own. For a process in a user
 * namespace it is that of the user who made the outermost one, because ids in it cost nothing. If root made it, the
 * namespace has its own.
 */
struct payer {
	uint64_t key; /* 0: no limit */
	uid_t uid; /* for messages */
};

/* `uid`: the real user id of the process. `proc_fd` is /proc/PID. Takes no lock of the process's mappings. */
struct payer allowance_payer(int proc_fd, uid_t uid);
uint64_t allowance_used_ns(void); /* CPU time that all users together have been charged */
/*
 * Returns true, and the payer, if a glance at the process shows that its user has used up the allowance. Then even
 * reading who exactly pays would cost too much: there may be thousands of new processes a second.
 */
bool allowance_is_spent(int proc_fd, struct payer *ret_payer);
/* Before the first tick of a recording of the host, users have half of it: the rest is for when samples come. */
void allowance_set_starting(bool is_starting);
/* Finds a payer, not returned yet, whose work was put off, among the first 8. Returns false if there is none. */
bool allowance_next_spent(uid_t *ret_uid);

/*
 * Work for a process, from charge_begin() to charge_end(). The payer pays for the CPU time of the loader and its helper
 * in between, except for what a charge inside of this one pays for.
 */
struct charge {
	struct payer payer;
	pid_t pid;
	pid_t living; /* process->living: whose files /proc shows */
	uint64_t begin_ns; /* CPU time that nobody had paid for when it began */
	uint64_t until_ns; /* end of its slice, CLOCK_MONOTONIC */
};

struct process;

#define CHARGE_SLICE_NS (20 * NS_PER_MS) /* most time of work between two looks at the rings */

/* Returns false if the payer has used up the allowance: then the work is put off, which is counted. */
bool charge_begin(struct charge *charge, const struct process *process);
/* The same, for work that another charge has begun: its process may have ended since. */
bool charge_go_on(struct charge *charge, const struct charge *begun);
/* For reading who pays, a constant cost: set charge->payer before charge_end(). */
void charge_begin_unknown(struct charge *charge, pid_t pid);
uint64_t charge_end(const struct charge *charge); /* returns what it has cost: CPU time */
uint64_t charge_all_ns(void); /* CPU time of the loader and its helper so far */
/* Call during long work. Returns true when it must stop, so that rings are read; it may go on in another charge. */
bool charge_slice_is_over(const struct charge *charge);
/*
 * Call during long work that cannot be left, such as a wait for a helper. Once in CHARGE_SLICE_NS, it calls the
 * function that was set, which empties the rings.
 */
void charge_pause(void);
void charge_set_pause(void (*pause)(void *context), void *context); /* NULL: none */
/* True for users who have used little: they are served before those who have used much. */
bool charge_is_little(const struct payer *payer);
/* Adds what another process, a reader or an attaching child, has used for the payer. */
void charge_cpu(const struct payer *payer, uint64_t cpu_ns);
/* For what is done for duet itself, or for commands that do one thing for the user who asks. It ends by itself. */
#define CHARGE_OWN(of) (&(const struct charge){.pid = (of), .living = (of)})
