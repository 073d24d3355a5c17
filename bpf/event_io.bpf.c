// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs for I/O by system calls: how long a call took, or how many bytes it moved, with the file or the peer. A
 * call's start is stored when it enters the kernel. When it returns, the thread still has the registers of the call,
 * and samples itself with a probability in proportion to the time or the bytes.
 */
#include "core.bpf.h"
#include "of_thread.bpf.h"
#include "resource.bpf.h"
#include "sample.bpf.h"

#define IO_MOST_MESSAGES 1024 /* of one call, UIO_MAXIOV in include/uapi/linux/uio.h */
#define IO_SENT_BYTES 56 /* of struct mmsghdr, before the number of bytes that a message had: sizeof(struct msghdr) */
#define IO_MESSAGE_BYTES 64 /* sizeof(struct mmsghdr) */

/* When the I/O call of a thread began; 0: it is in none. The loader sets the size of the second. */
OF_THREAD(io_threads, u64);
OWN_MAP(io_calls, LRU_HASH, 1, u32, u64);

static __always_inline u64 *io_began(bool create)
{
	static const u64 none;

	return of_thread(&io_threads, &io_calls, &none, create);
}

/* What the result of a call is. */
enum io_result {
	IO_ERROR, /* whether the call has failed */
	IO_MOVED, /* the number of bytes that it has moved */
	IO_MESSAGES, /* the number of messages that it has sent or received */
	IO_PEER, /* the descriptor of a new connection */
	IO_NO_FILE, /* as IO_ERROR, and the first argument is no descriptor */
};

/* X(number, name, result): arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h */
/* clang-format off */
#ifdef __TARGET_ARCH_x86
#define IO_CALLS(X) \
	X(0, READ, MOVED) X(1, WRITE, MOVED) X(17, PREAD64, MOVED) X(18, PWRITE64, MOVED) X(19, READV, MOVED) \
	X(20, WRITEV, MOVED) X(26, MSYNC, NO_FILE) X(40, SENDFILE, MOVED) X(42, CONNECT, ERROR) X(43, ACCEPT, PEER) \
	X(44, SENDTO, MOVED) X(45, RECVFROM, MOVED) X(46, SENDMSG, MOVED) X(47, RECVMSG, MOVED) X(74, FSYNC, ERROR) \
	X(75, FDATASYNC, ERROR) X(162, SYNC, NO_FILE) X(275, SPLICE, MOVED) X(276, TEE, ERROR) \
	X(277, SYNC_FILE_RANGE, ERROR) X(278, VMSPLICE, MOVED) X(288, ACCEPT4, PEER) X(295, PREADV, MOVED) \
	X(296, PWRITEV, MOVED) X(299, RECVMMSG, MESSAGES) X(306, SYNCFS, ERROR) X(307, SENDMMSG, MESSAGES) \
	X(326, COPY_FILE_RANGE, MOVED) X(327, PREADV2, MOVED) X(328, PWRITEV2, MOVED)
#else
#define IO_CALLS(X) \
	X(63, READ, MOVED) X(64, WRITE, MOVED) X(65, READV, MOVED) X(66, WRITEV, MOVED) X(67, PREAD64, MOVED) \
	X(68, PWRITE64, MOVED) X(69, PREADV, MOVED) X(70, PWRITEV, MOVED) X(71, SENDFILE, MOVED) \
	X(75, VMSPLICE, MOVED) X(76, SPLICE, MOVED) X(77, TEE, ERROR) X(81, SYNC, NO_FILE) X(82, FSYNC, ERROR) \
	X(83, FDATASYNC, ERROR) X(84, SYNC_FILE_RANGE, ERROR) X(202, ACCEPT, PEER) X(203, CONNECT, ERROR) \
	X(206, SENDTO, MOVED) X(207, RECVFROM, MOVED) X(211, SENDMSG, MOVED) X(212, RECVMSG, MOVED) \
	X(227, MSYNC, NO_FILE) X(242, ACCEPT4, PEER) X(243, RECVMMSG, MESSAGES) X(267, SYNCFS, ERROR) \
	X(269, SENDMMSG, MESSAGES) X(285, COPY_FILE_RANGE, MOVED) X(286, PREADV2, MOVED) X(287, PWRITEV2, MOVED)
#endif
/* clang-format on */

#define IO_NUMBER(nr, name, result) IO_CALL_##name = nr,
enum io_call { IO_CALLS(IO_NUMBER) };
#undef IO_NUMBER

static __always_inline bool io_is_call(u64 number)
{
#define IO_CASE(nr, name, result) case nr:
	switch (number) {
		IO_CALLS(IO_CASE)
		return true;
	default:
		return false;
	}
#undef IO_CASE
}

static __noinline u32 io_result(s64 number)
{
#define IO_CASE(nr, name, result) \
	case nr: \
		return IO_##result;
	switch (number) {
		IO_CALLS(IO_CASE)
	default:
		return IO_ERROR;
	}
#undef IO_CASE
}

/*
 * Returns the bytes of so many messages. `at` is the array that the program gave. Not static: the verifier goes through
 * the loop once, and not through the caller's rest after each number of messages.
 */
__noinline u64 io_message_bytes(u64 at, s64 count)
{
	u64 sum = 0;
	u32 bytes;

	for (s64 i = 0; i < IO_MOST_MESSAGES && i < count; i++) {
		bytes = 0;
		bpf_probe_read_user(&bytes, sizeof(bytes), (void *)at + i * IO_MESSAGE_BYTES + IO_SENT_BYTES);
		sum += bytes;
	}
	return sum;
}

static __always_inline u64 io_moved(struct pt_regs *regs, s64 returned)
{
	u32 result = io_result(regs_syscall(regs));

	if (result == IO_MOVED)
		return returned;
	return result == IO_MESSAGES ? io_message_bytes(PT_REGS_PARM2_CORE_SYSCALL(regs), returned) : 0;
}

/* Reads the address of a struct msghdr of the program: its first two fields. */
static __always_inline void io_message_peer(struct resource_given *given, u64 at)
{
	bpf_probe_read_user(&given->address, sizeof(given->address), (void *)at);
	bpf_probe_read_user(&given->bytes, sizeof(given->bytes), (void *)at + sizeof(given->address));
}

/* Finds the address that the program gave for the call, or got from it. */
static __always_inline void io_find_given(struct resource_given *given, struct pt_regs *regs, s64 returned)
{
	switch (regs_syscall(regs)) {
	case IO_CALL_CONNECT:
		given->is_first = true;
		given->address = PT_REGS_PARM2_CORE_SYSCALL(regs);
		given->bytes = PT_REGS_PARM3_CORE_SYSCALL(regs);
		return;
	case IO_CALL_SENDTO:
		given->address = PT_REGS_PARM5_CORE_SYSCALL(regs);
		given->bytes = regs_sixth(regs);
		return;
	case IO_CALL_RECVFROM:
		if (returned < 0)
			return;
		given->address = PT_REGS_PARM5_CORE_SYSCALL(regs);
		bpf_probe_read_user(&given->bytes, sizeof(given->bytes), (void *)regs_sixth(regs));
		return;
	case IO_CALL_RECVMSG:
		if (returned < 0)
			return;
		io_message_peer(given, PT_REGS_PARM2_CORE_SYSCALL(regs));
		return;
	case IO_CALL_SENDMSG:
		io_message_peer(given, PT_REGS_PARM2_CORE_SYSCALL(regs));
		return;
	}
}

/* Fills the attribute. Returns its size; 0: the call has no descriptor, or an invalid one. */
static __noinline u32 io_describe(struct resource_attribute *to, struct pt_regs *regs, s64 returned)
{
	u32 result = io_result(regs_syscall(regs)), fd = PT_REGS_PARM1_CORE_SYSCALL(regs);
	struct resource_given given = {};
	struct file *file;

	if (result == IO_NO_FILE)
		return 0;
	file = descriptor_file(result == IO_PEER && returned >= 0 ? returned : fd);
	if (!file)
		return 0;
	io_find_given(&given, regs, returned);
	return resource_describe(to, file, &given);
}

SEC("?raw_tracepoint/sys_enter")
int io_enter(struct bpf_raw_tracepoint_args *ctx)
{
	u64 *began_ns;

	if (!io_is_call(ctx->args[1]) || regs_are_of_32_bits((struct pt_regs *)ctx->args[0]))
		return 0;
	began_ns = io_began(true);
	if (began_ns)
		*began_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int io_sample(struct bpf_raw_tracepoint_args *ctx, u32 event, u64 amount)
{
	u64 began_ns = bpf_ktime_get_ns(), pending = sample_add_pending(event, amount);
	struct resource_attribute *attribute;
	struct duet_scratch *room;

	if (!pending)
		return 0;
	room = sample_take(&(struct sample_from){.ctx = ctx, .began_ns = began_ns, .event = event});
	if (room) {
		attribute = (struct resource_attribute *)&room->part;
		sample_end_with(room, attribute,
				io_describe(attribute, (struct pt_regs *)ctx->args[0], ctx->args[1]));
	}
	return sample_end_chosen(began_ns, event, amount, pending, room != NULL);
}

/* A call that has begun before the recording is left out. */
SEC("?raw_tracepoint/sys_exit")
int io_exit(struct bpf_raw_tracepoint_args *ctx)
{
	u64 *began_ns = io_began(false), took_ns;

	if (!began_ns || !*began_ns)
		return 0;
	took_ns = bpf_ktime_get_ns() - *began_ns;
	*began_ns = 0;
	return io_sample(ctx, duet_config.event_of[DUET_PROGRAM_IO], took_ns);
}

SEC("?raw_tracepoint/sys_exit")
int io_exit_bytes(struct bpf_raw_tracepoint_args *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx->args[0];
	s64 returned = ctx->args[1];
	u64 bytes;

	if (returned <= 0 || regs_are_of_32_bits(regs))
		return 0;
	bytes = io_moved(regs, returned);
	return bytes ? io_sample(ctx, duet_config.event_of[DUET_PROGRAM_IO_BYTES], bytes) : 0;
}

char LICENSE[] SEC("license") = "GPL";
