// SPDX-License-Identifier: GPL-2.0-only
/* Programs for I/O by io_uring: from the submission of a request to its completion. */
#include "core.bpf.h"
#include "early.bpf.h"
#include "resource.bpf.h"

#define URING_SKIPS_SUCCESS (1 << 6) /* IOSQE_CQE_SKIP_SUCCESS, include/uapi/linux/io_uring.h */
#define URING_MORE (1 << 1) /* IORING_CQE_F_MORE */
#define URING_OPCODES 64 /* a power of 2; the newest kernel has fewer */

/* What of a request is sampled: by the index of its event here. */
enum uring_amount {
	URING_TIME,
	URING_BYTES,
	URING_AMOUNTS
};

/* A request that is under way. */
struct uring_request {
	u64 began_ns; /* when it was submitted, or its last completion but the final one */
	u64 user_data;
	u32 tgid; /* of the submitter, in the loader's pid namespace, and so is tid */
	u32 tid;
	u8 opcode;
	bool by_kernel; /* a thread of the kernel has submitted it */
	struct early_chosen early[URING_AMOUNTS]; /* what of it is chosen */
};

/* By the address of the kernel's request. The loader sets the size. A request that never ends gives way to new ones. */
OWN_MAP(uring_requests, LRU_HASH, 1, u64, struct uring_request);

struct uring_name {
	u64 ring;
	u64 user_data;
};

/* The addresses of requests that may complete several times: only the final completion has the address. */
OWN_MAP(uring_repeated, LRU_HASH, 1, struct uring_name, u64);

/* What requests amount to, as far as known, by enum uring_amount and opcode. */
OWN_MAP(uring_foreseen, ARRAY, URING_AMOUNTS * URING_OPCODES, u32, u64);

/* X(opcode, name, moves_bytes): enum io_uring_op, include/uapi/linux/io_uring.h */
/* clang-format off */
#define URING_CALLS(X) \
	X(1, READV, true) X(2, WRITEV, true) X(3, FSYNC, false) X(4, READ_FIXED, true) X(5, WRITE_FIXED, true) \
	X(8, SYNC_FILE_RANGE, false) X(9, SENDMSG, true) X(10, RECVMSG, true) X(13, ACCEPT, false) \
	X(16, CONNECT, false) X(22, READ, true) X(23, WRITE, true) X(26, SEND, true) X(27, RECV, true) \
	X(30, SPLICE, true) X(33, TEE, false) X(46, URING_CMD, false) X(47, SEND_ZC, true) X(48, SENDMSG_ZC, true) \
	X(49, READ_MULTISHOT, true) X(58, RECV_ZC, true) X(60, READV_FIXED, true) X(61, WRITEV_FIXED, true)
/* clang-format on */

#define URING_NUMBER(opcode, name, moves_bytes) URING_##name = opcode,
enum uring_opcode { URING_CALLS(URING_NUMBER) };
#undef URING_NUMBER

static __always_inline bool uring_is_io(u8 opcode)
{
#define URING_CASE(opcode, name, moves_bytes) case opcode:
	switch (opcode) {
		URING_CALLS(URING_CASE)
		return true;
	default:
		return false;
	}
#undef URING_CASE
}

/* Returns true if the result is the number of bytes that were moved. */
static __noinline bool uring_moves_bytes(u32 opcode)
{
#define URING_CASE(opcode, name, moves_bytes) \
	case opcode: \
		return moves_bytes;
	switch (opcode) {
		URING_CALLS(URING_CASE)
	default:
		return false;
	}
#undef URING_CASE
}

/* Returns true if more than one completion may have a result of its own. */
static __always_inline bool uring_may_repeat(u8 opcode)
{
	return opcode == URING_ACCEPT || opcode == URING_RECV || opcode == URING_RECVMSG ||
	       opcode == URING_READ_MULTISHOT || opcode == URING_RECV_ZC;
}

static __always_inline u64 *uring_foreseen_of(enum uring_amount amount, u8 opcode)
{
	u32 key = amount * URING_OPCODES + (opcode & (URING_OPCODES - 1));

	return bpf_map_lookup_elem(&uring_foreseen, &key);
}

static __always_inline u32 uring_event(enum uring_amount amount)
{
	return duet_config.event_of[amount == URING_TIME ? DUET_PROGRAM_IO : DUET_PROGRAM_IO_BYTES];
}

static __always_inline u64 uring_choose(enum uring_amount amount, u8 opcode)
{
	return early_choose(uring_foreseen_of(amount, opcode), uring_event(amount));
}

/* Makes the request findable by what all its completions have. */
static __always_inline void uring_note_name(struct io_kiocb *kernel, const struct uring_request *request)
{
	struct uring_name name = {.ring = (u64)BPF_CORE_READ(kernel, ctx), .user_data = request->user_data};
	u64 key = (u64)kernel;

	if (uring_may_repeat(request->opcode))
		bpf_map_update_elem(&uring_repeated, &name, &key, BPF_ANY);
}

/* Stores a request that is chosen. Returns NULL if its thread is not to be sampled, or if there are too many. */
static __always_inline struct uring_request *uring_store(struct io_kiocb *kernel, struct uring_request *request)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct filter_ids ids = {};
	u64 key = (u64)kernel;

	if (!filter_pass(task, &ids, BPF_CORE_READ(task, group_leader, start_boottime)))
		return NULL;
	if (BPF_CORE_READ(kernel, flags) & URING_SKIPS_SUCCESS) {
		duet_count(DUET_BPF_URING_SILENT);
		return NULL;
	}
	request->began_ns = bpf_ktime_get_ns();
	request->user_data = BPF_CORE_READ(kernel, cqe.user_data);
	request->tgid = ids.tgid;
	request->tid = ids.tid;
	request->by_kernel = (BPF_CORE_READ(task, flags) & PF_IO_WORKER) != 0;
	if (bpf_map_update_elem(&uring_requests, &key, request, BPF_ANY)) {
		duet_count(DUET_BPF_URING_FULL);
		return NULL;
	}
	uring_note_name(kernel, request);
	return bpf_map_lookup_elem(&uring_requests, &key);
}

/* Returns the request, if it is chosen. Not inline: the walk needs the BPF stack. */
static __noinline struct uring_request *uring_begin(struct io_kiocb *kernel)
{
	struct uring_request request = {.opcode = BPF_CORE_READ(kernel, opcode)};
	u64 key = (u64)kernel;

	if (!uring_is_io(request.opcode))
		return NULL;
	/* The kernel uses the memory again. A completion that had no room in the ring is not reported. */
	if (!bpf_map_delete_elem(&uring_requests, &key))
		duet_count(DUET_BPF_URING_UNENDED);
	if (duet_config.uring & DUET_URING_TIME)
		request.early[URING_TIME].chance = uring_choose(URING_TIME, request.opcode);
	if (duet_config.uring & DUET_URING_BYTES && uring_moves_bytes(request.opcode))
		request.early[URING_BYTES].chance = uring_choose(URING_BYTES, request.opcode);
	if (!request.early[URING_TIME].chance && !request.early[URING_BYTES].chance)
		return NULL;
	return uring_store(kernel, &request);
}

/* The loader attaches it to io_uring_submit_req, or to the older name of that. */
SEC("?raw_tracepoint")
int uring_submit(struct bpf_raw_tracepoint_args *ctx)
{
	struct uring_request *request = uring_begin((struct io_kiocb *)ctx->args[0]);
	struct sample_from from = {ctx, NULL, bpf_ktime_get_ns(), uring_event(URING_TIME), STACK_OF_TRACEPOINT};

	if (!request)
		return 0;
	early_take(&from, &request->early[URING_TIME]);
	from.event = uring_event(URING_BYTES);
	early_take(&from, &request->early[URING_BYTES]);
	return 0;
}

/* One completion, whatever form the kernel's tracepoint has. */
struct uring_completion {
	u64 key; /* the request's address; 0: there will be others, and it is not known */
	struct uring_name name;
	s64 result;
	bool is_last;
};

static __always_inline void uring_read(struct bpf_raw_tracepoint_args *ctx, struct uring_completion *completion)
{
	struct io_uring_cqe *entry = (struct io_uring_cqe *)ctx->args[2];
	u32 flags;

	completion->key = ctx->args[1];
	completion->name.ring = ctx->args[0];
	if (duet_config.uring & DUET_URING_HAS_ENTRY) {
		completion->name.user_data = BPF_CORE_READ(entry, user_data);
		completion->result = BPF_CORE_READ(entry, res);
		flags = BPF_CORE_READ(entry, flags);
	} else {
		completion->name.user_data = ctx->args[2];
		completion->result = (s32)ctx->args[3];
		flags = ctx->args[4];
	}
	completion->is_last = !(flags & URING_MORE);
}

/* Finds the request. The first of the two completions of SEND_ZC has the result, the other only a release. */
static __always_inline struct uring_request *uring_find(struct uring_completion *completion)
{
	struct uring_request *request;
	u64 *key;

	if (!completion->key) {
		key = bpf_map_lookup_elem(&uring_repeated, &completion->name);
		if (!key)
			return NULL;
		completion->key = *key;
		completion->is_last = false;
	}
	request = bpf_map_lookup_elem(&uring_requests, &completion->key);
	if (request && !uring_may_repeat(request->opcode))
		completion->is_last = true;
	return request;
}

static __always_inline void uring_forget(const struct uring_completion *completion, const struct uring_request *request)
{
	if (uring_may_repeat(request->opcode))
		bpf_map_delete_elem(&uring_repeated, &completion->name);
	bpf_map_delete_elem(&uring_requests, &completion->key);
}

/* The record of a weight, and the attribute. */
struct uring_record {
	struct duet_slept_record slept;
	struct resource_attribute attribute;
};

_Static_assert(sizeof(struct uring_record) <= sizeof(((struct duet_scratch *)0)->part), "it is built there");

/* Returns the file that the request is about: of a new connection, its own, unless that got no descriptor. */
static __always_inline struct file *uring_file(const struct uring_request *request, struct io_kiocb *kernel, s64 result)
{
	struct io_accept *accept = (struct io_accept *)kernel;
	struct file *made = NULL;

	if (request->opcode == URING_ACCEPT && result >= 0 && !BPF_CORE_READ(accept, file_slot))
		made = descriptor_file(result);
	return made ? made : BPF_CORE_READ(kernel, file);
}

/* Fills in whom the request is of and what it is about. */
static __noinline int uring_fill(struct uring_record *record, const struct uring_request *request,
				 const struct uring_completion *completion)
{
	struct io_kiocb *kernel = (struct io_kiocb *)completion->key;
	struct io_connect *connect = (struct io_connect *)kernel;
	struct resource_given given = {.is_first = true};

	early_fill(&record->slept, request->tgid, request->tid);
	record->slept.is_kept = !completion->is_last;
	if (request->opcode == URING_CONNECT) {
		given.address = (u64)BPF_CORE_READ(connect, addr);
		given.bytes = BPF_CORE_READ(connect, addr_len);
	}
	record->slept.attribute_bytes =
		resource_describe(&record->attribute, uring_file(request, kernel, completion->result), &given);
	record->attribute.resource.request = 1 + request->opcode;
	if (request->by_kernel)
		record->attribute.resource.flags |= DUET_RESOURCE_BY_KERNEL;
	return 0;
}

static __always_inline void uring_emit_weight(struct uring_record *record, const struct uring_request *request,
					      enum uring_amount amount, u64 value)
{
	early_foresee(uring_foreseen_of(amount, request->opcode), value);
	early_emit_weight(record ? &record->slept : NULL, &request->early[amount], uring_event(amount), value);
}

static __always_inline void uring_emit_weights(struct uring_record *record, const struct uring_request *request,
					       u64 took_ns, s64 result)
{
	if (duet_config.uring & DUET_URING_TIME)
		uring_emit_weight(record, request, URING_TIME, took_ns);
	if (duet_config.uring & DUET_URING_BYTES && result > 0)
		uring_emit_weight(record, request, URING_BYTES, result);
}

SEC("?raw_tracepoint/io_uring_complete")
int uring_complete(struct bpf_raw_tracepoint_args *ctx)
{
	struct uring_completion completion = {};
	struct uring_request *request;
	u64 now_ns = bpf_ktime_get_ns(), took_ns;
	struct duet_scratch *room;

	uring_read(ctx, &completion);
	request = uring_find(&completion);
	if (!request)
		return 0;
	took_ns = now_ns - request->began_ns;
	request->began_ns = now_ns;
	room = scratch_take();
	if (room) {
		uring_fill((struct uring_record *)&room->part, request, &completion);
		uring_emit_weights((struct uring_record *)&room->part, request, took_ns, completion.result);
		scratch_release(room);
	} else {
		duet_count(DUET_BPF_NO_LEVEL);
		uring_emit_weights(NULL, request, took_ns, completion.result);
	}
	if (completion.is_last)
		uring_forget(&completion, request);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
