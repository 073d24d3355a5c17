/* SPDX-License-Identifier: MIT */
/* Whether a program is of the kind that duet itself is: its rows, its reader and its agent fit no other. */
#pragma once

#include <elf.h>
#include <sys/types.h>

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
