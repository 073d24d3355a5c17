/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps of the programs for io_uring. */
#ifndef DUET_URING_BPF_H
#define DUET_URING_BPF_H

#include "core.bpf.h"

#define URING_OPCODES 64 /* a power of 2; the newest kernel has fewer */

/* What of a request is chosen: by the index of its event here. */
enum uring_amount {
	URING_TIME,
	URING_BYTES,
	URING_AMOUNTS
};

/* The stack of a request, which was taken when it was submitted. */
struct uring_chosen {
	u64 id; /* of the record with the stack; 0: it could not be taken, and the next request stands for this one */
	u64 chance; /* of this request to be sampled, in URING_CHANCES; 0: it is not sampled */
};

/* A request that is under way. */
struct uring_request {
	u64 began_ns; /* when it was submitted, or its last completion but the final one */
	u64 user_data;
	u32 tgid; /* of the submitter, in the loader's pid namespace, and so is tid */
	u32 tid;
	u8 opcode;
	bool by_kernel; /* a thread of the kernel has submitted it */
	struct uring_chosen chosen[URING_AMOUNTS];
};

/* By the address of the kernel's request. The loader sets the size. */
struct duet_uring_requests_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct uring_request);
};
extern struct duet_uring_requests_map uring_requests SEC(".maps");

struct uring_name {
	u64 ring;
	u64 user_data;
};

/* The addresses of requests that may complete several times: only the final completion has the address. */
struct duet_uring_repeated_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct uring_name);
	__type(value, u64);
};
extern struct duet_uring_repeated_map uring_repeated SEC(".maps");

/* What requests amount to, as far as known, by enum uring_amount and opcode. */
struct duet_uring_foreseen_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, URING_AMOUNTS * URING_OPCODES);
	__type(key, u32);
	__type(value, u64);
};
extern struct duet_uring_foreseen_map uring_foreseen SEC(".maps");

#endif
