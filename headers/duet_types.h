/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Fixed-width types for all parts: BPF programs, which include vmlinux.h first; loader and agent, which use libc. */
#pragma once

#ifndef __bpf__
#include <stdbool.h>
#include <stdint.h>
#endif

/* The contracts are compiled for each part; a size that differs is a build error. */
#define DUET_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " must be " #bytes " bytes")

#define DUET_COMM_LEN 16 /* TASK_COMM_LEN, include/linux/sched.h */
