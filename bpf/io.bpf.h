/* SPDX-License-Identifier: GPL-2.0-only */
/* The map of the programs for I/O. */
#ifndef DUET_IO_BPF_H
#define DUET_IO_BPF_H

#include "core.bpf.h"

/* When the I/O call of a thread began, by tid. The loader sets the size. The oldest rows make room for new ones. */
struct duet_io_calls_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
};
extern struct duet_io_calls_map io_calls SEC(".maps");

#endif
