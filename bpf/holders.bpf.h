/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include "core.bpf.h"
#include "duet_record.h"

/* Processes whose waits have holders. The loader inserts rows; the programs for exec and exit delete them. */
struct duet_lock_waiters_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct duet_lock_waiters);
};
extern struct duet_lock_waiters_map lock_waiters SEC(".maps");
