/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Fixed-width types in all three worlds: BPF programs (vmlinux.h has been
 * included before), the loader and the agent (libc).
 */
#ifndef DUET_TYPES_H
#define DUET_TYPES_H

#ifndef __bpf__
#include <stdint.h>
#endif

/* The contracts are compiled three times; a size that differs is a build error. */
#define DUET_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " must be " #bytes " bytes")

#define DUET_COMM_LEN 16 /* TASK_COMM_LEN, include/linux/sched.h */

#endif
