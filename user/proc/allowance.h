/* SPDX-License-Identifier: MIT */
/*
 * The CPU time that the loader spends on reading what a user's processes map, and the files that they have mapped. A
 * user who starts thousands of processes, or maps thousands of large files, would keep the loader busy. So each user
 * has an allowance of CPU time, which grows as time passes, and all users together have another one. When the allowance
 * of a user is used up, the processes of that user are not read until it has grown. When the common one is used up,
 * only users who have used little are read.
 *
 * There is no limit for the processes of the user who runs duet, nor for those of root outside containers.
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
/* Returns false if nothing may be read for the payer now, and counts the read as put off. */
bool allowance_has(const struct payer *payer);
void allowance_charge(const struct payer *payer, uint64_t cpu_ns);
/* Finds a payer, not returned yet, whose reads were put off, among the first 8. Returns false if there is none. */
bool allowance_next_spent(uid_t *ret_uid);
