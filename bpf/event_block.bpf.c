// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs for requests to block devices: from the issue to the device to the completion.
 *
 * The stack is taken when a request is first seen: when it is inserted into a queue or, without a scheduler, when it is
 * issued. Both happen on the thread that submits it, also when it has waited in the thread's plug. A request that was
 * inserted may be issued by any thread, and is completed by an interrupt. What threads of the kernel submit (written
 * back data, journals, the flushes of other requests) has their stack, which has no frames of a program.
 */
#include "core.bpf.h"
#include "early.bpf.h"

#define BLOCK_OPERATIONS 64 /* a power of 2, above the kernel's numbers */
#define BLOCK_OPERATION 0xff /* REQ_OP_MASK, include/linux/blk_types.h */
#define BLOCK_NAME_BYTES 32 /* DISK_NAME_LEN, include/linux/blkdev.h */

/* A request that was seen to begin. */
struct block_request {
	u64 issued_ns; /* 0: it is not at the device */
	u64 bytes;
	u32 tgid; /* of the submitter, in the loader's pid namespace, and so is tid */
	u32 tid;
	bool by_kernel; /* a thread of the kernel has submitted it */
	bool is_requeued; /* the device did not take it, so it is inserted or issued again */
	struct early_chosen early;
};

/* By the address of the kernel's request, which is used for others again. The loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct block_request);
} block_requests SEC(".maps");

/* How long requests take, as far as known, by operation. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BLOCK_OPERATIONS);
	__type(key, u32);
	__type(value, u64);
} block_foreseen SEC(".maps");

static __always_inline u32 block_event(void)
{
	return duet_config.event_of[DUET_PROGRAM_BLOCK];
}

/* Before Linux 5.11 the queue comes before the request, but for the completion. */
static __always_inline u64 block_key(struct bpf_raw_tracepoint_args *ctx)
{
	return duet_config.block_queue_first ? ctx->args[1] : ctx->args[0];
}

static __always_inline u32 block_operation(u64 key)
{
	return BPF_CORE_READ((struct request *)key, cmd_flags) & BLOCK_OPERATION;
}

static __always_inline u64 *block_foreseen_of(u64 key)
{
	u32 operation = block_operation(key) & (BLOCK_OPERATIONS - 1);

	return bpf_map_lookup_elem(&block_foreseen, &operation);
}

/* Returns the new entry of a request, or NULL. Not inline: the walk needs the BPF stack. */
static __noinline struct block_request *block_begin(u64 key)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct block_request request = {};
	struct filter_ids ids = {};

	if (filter_pass(task, &ids, BPF_CORE_READ(task, group_leader, start_boottime)))
		request.early.chance = early_choose(block_foreseen_of(key), block_event());
	request.tgid = ids.tgid;
	request.tid = ids.tid;
	request.by_kernel = (BPF_CORE_READ(task, flags) & PF_KTHREAD) != 0;
	if (bpf_map_update_elem(&block_requests, &key, &request, BPF_ANY)) {
		duet_count(DUET_BPF_BLOCK_FULL);
		return NULL;
	}
	return bpf_map_lookup_elem(&block_requests, &key);
}

static __always_inline void block_take(void *ctx, struct block_request *request)
{
	const struct sample_from from = {ctx, NULL, bpf_ktime_get_ns(), block_event(), STACK_OF_TRACEPOINT};

	early_take(&from, &request->early);
}

SEC("?raw_tracepoint/block_rq_insert")
int block_insert(struct bpf_raw_tracepoint_args *ctx)
{
	u64 key = block_key(ctx);
	struct block_request *request = bpf_map_lookup_elem(&block_requests, &key);

	if (request && request->is_requeued)
		return 0;
	request = block_begin(key);
	if (request)
		block_take(ctx, request);
	return 0;
}

SEC("?raw_tracepoint/block_rq_issue")
int block_issue(struct bpf_raw_tracepoint_args *ctx)
{
	u64 key = block_key(ctx);
	struct block_request *request = bpf_map_lookup_elem(&block_requests, &key);

	if (!request || request->issued_ns) {
		request = block_begin(key);
		if (!request)
			return 0;
		block_take(ctx, request);
	}
	request->bytes = BPF_CORE_READ((struct request *)key, __data_len);
	request->is_requeued = false;
	request->issued_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("?raw_tracepoint/block_rq_requeue")
int block_requeue(struct bpf_raw_tracepoint_args *ctx)
{
	u64 key = block_key(ctx);
	struct block_request *request = bpf_map_lookup_elem(&block_requests, &key);

	if (request) {
		request->is_requeued = true;
		request->issued_ns = 0;
	}
	return 0;
}

/* The request has become part of another one, which was submitted before. */
SEC("?raw_tracepoint/block_rq_merge")
int block_merge(struct bpf_raw_tracepoint_args *ctx)
{
	u64 key = block_key(ctx);

	bpf_map_delete_elem(&block_requests, &key);
	return 0;
}

/* The record of a weight, and the attributes. */
struct block_record {
	struct duet_slept_record slept;
	struct duet_attribute size_head;
	u64 size;
	struct duet_attribute head;
	struct duet_resource resource;
	u8 text[4 * BLOCK_NAME_BYTES];
};

_Static_assert(sizeof(struct block_record) <= sizeof(((struct duet_scratch *)0)->part), "it is built there");

/* Returns the device's name; NULL: the request is about none, as commands to a controller are. */
static __always_inline const char *block_device(struct request *kernel)
{
	struct request___before_5_17 *old = (void *)kernel;
	struct gendisk *disk;

	if (bpf_core_field_exists(old->rq_disk))
		disk = BPF_CORE_READ(old, rq_disk);
	else
		disk = BPF_CORE_READ(kernel, q, disk);
	return disk ? (const char *)disk + bpf_core_field_offset(struct gendisk, disk_name) : NULL;
}

/* Appends a text. Returns where its NUL is. */
#define BLOCK_APPEND(to, at, text) \
	(__builtin_memcpy((to) + ((at) & (2 * BLOCK_NAME_BYTES - 1)), text, sizeof(text)), (at) + (u32)sizeof(text) - 1)

/* enum req_op, include/linux/blk_types.h */
static __always_inline u32 block_append_operation(u8 *to, u32 at, u32 operation)
{
	switch (operation) {
	case 0:
		return BLOCK_APPEND(to, at, ": read");
	case 1:
		return BLOCK_APPEND(to, at, ": write");
	case 2:
		return BLOCK_APPEND(to, at, ": flush");
	case 3:
		return BLOCK_APPEND(to, at, ": discard");
	case 5:
		return BLOCK_APPEND(to, at, ": secure erase");
	case 9:
		return BLOCK_APPEND(to, at, ": write zeroes");
	default:
		return BLOCK_APPEND(to, at, ": other");
	}
}

/* Fills the text: the device, the kind of request, and who has submitted it. Returns its bytes. */
static __always_inline u32 block_describe(u8 *to, u64 key, bool by_kernel)
{
	const char *name = block_device((struct request *)key);
	long got = name ? bpf_probe_read_kernel_str(to, BLOCK_NAME_BYTES, name) : 0;
	u32 at = got > 1 ? got - 1 : BLOCK_APPEND(to, 0, "[no device]");

	at = block_append_operation(to, at, block_operation(key));
	return by_kernel ? BLOCK_APPEND(to, at, ", by the kernel's thread") : at;
}

static __noinline int block_fill(struct block_record *record, const struct block_request *request, u64 key)
{
	__builtin_memset(record, 0, sizeof(*record)); /* also what pads the text */
	early_fill(&record->slept, request->tgid, request->tid);
	record->size_head = (struct duet_attribute){.type = DUET_ATTRIBUTE_SIZE, .bytes = sizeof(record->size)};
	record->size = request->bytes;
	record->head.type = DUET_ATTRIBUTE_RESOURCE;
	record->resource.kind = DUET_RESOURCE_NAME;
	record->resource.text_bytes = block_describe(record->text, key, request->by_kernel);
	record->head.bytes = sizeof(record->resource) + record->resource.text_bytes;
	record->slept.attribute_bytes = sizeof(record->size_head) + sizeof(record->size) + sizeof(record->head) +
					((record->head.bytes + 7) & ~7u);
	return 0;
}

/* A request completes in parts, if the driver says so: the last part is as large as what is left. */
SEC("?raw_tracepoint/block_rq_complete")
int block_complete(struct bpf_raw_tracepoint_args *ctx)
{
	u64 key = ctx->args[0], took_ns, now_ns = bpf_ktime_get_ns();
	struct block_request *request = bpf_map_lookup_elem(&block_requests, &key);
	struct duet_scratch *room;

	if (!request || (u32)ctx->args[2] < BPF_CORE_READ((struct request *)key, __data_len))
		return 0;
	took_ns = now_ns - request->issued_ns;
	if (request->issued_ns) {
		early_foresee(block_foreseen_of(key), took_ns);
		room = request->early.id ? scratch_take() : NULL;
		if (room)
			block_fill((struct block_record *)&room->part, request, key);
		else if (request->early.id)
			duet_count(DUET_BPF_NO_LEVEL);
		early_emit_weight(room ? (struct duet_slept_record *)&room->part : NULL, &request->early,
				  block_event(), took_ns);
		if (room)
			scratch_release(room);
	}
	bpf_map_delete_elem(&block_requests, &key);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
