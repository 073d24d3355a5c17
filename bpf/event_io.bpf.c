// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs for I/O by system calls: how long a call took, or how many bytes it moved, with the file or the peer. A
 * call's start is stored when it enters the kernel. When it returns, the thread still has the registers of the call,
 * and samples itself with a probability in proportion to the time or the bytes.
 */
#include "core.bpf.h"
#include "descriptor.bpf.h"
#include "io.bpf.h"
#include "sample.bpf.h"

#define IO_COMPONENTS 24 /* most components of a path that are told, from its end; the rest is cut */
#define IO_AF_UNIX 1 /* include/linux/socket.h */
#define IO_AF_INET 2
#define IO_AF_INET6 10

/* ---- which calls ---- */

/*
 * The first argument of each is a descriptor. X(number, name, moves_bytes): arch/x86/entry/syscalls/syscall_64.tbl,
 * include/uapi/asm-generic/unistd.h
 */
/* clang-format off */
#ifdef __TARGET_ARCH_x86
#define IO_CALLS(X) \
	X(0, read, true) X(1, write, true) X(17, pread64, true) X(18, pwrite64, true) X(19, readv, true) \
	X(20, writev, true) X(40, sendfile, true) X(42, connect, false) X(43, accept, false) X(44, sendto, true) \
	X(45, recvfrom, true) X(46, sendmsg, true) X(47, recvmsg, true) X(74, fsync, false) \
	X(75, fdatasync, false) X(275, splice, true) X(277, sync_file_range, false) X(288, accept4, false) \
	X(295, preadv, true) X(296, pwritev, true) X(299, recvmmsg, false) X(306, syncfs, false) \
	X(307, sendmmsg, false) X(326, copy_file_range, true) X(327, preadv2, true) X(328, pwritev2, true)
#else
#define IO_CALLS(X) \
	X(63, read, true) X(64, write, true) X(65, readv, true) X(66, writev, true) X(67, pread64, true) \
	X(68, pwrite64, true) X(69, preadv, true) X(70, pwritev, true) X(71, sendfile, true) X(76, splice, true) \
	X(82, fsync, false) X(83, fdatasync, false) X(84, sync_file_range, false) X(202, accept, false) \
	X(203, connect, false) X(206, sendto, true) X(207, recvfrom, true) X(211, sendmsg, true) \
	X(212, recvmsg, true) X(242, accept4, false) X(243, recvmmsg, false) X(267, syncfs, false) \
	X(269, sendmmsg, false) X(285, copy_file_range, true) X(286, preadv2, true) X(287, pwritev2, true)
#endif
/* clang-format on */

static __always_inline bool io_is_call(u64 number)
{
#define IO_CASE(nr, name, moves_bytes) case nr:
	switch (number) {
		IO_CALLS(IO_CASE)
		return true;
	default:
		return false;
	}
#undef IO_CASE
}

/* Returns true for calls that return the number of bytes that they have moved. */
static __noinline bool io_moves_bytes(s64 number)
{
#define IO_CASE(nr, name, moves_bytes) \
	case nr: \
		return moves_bytes;
	switch (number) {
		IO_CALLS(IO_CASE)
	default:
		return false;
	}
#undef IO_CASE
}

/* ---- what a descriptor stands for ---- */

/* The attribute, as the sample has it, and room for what the verifier thinks the last component may take. */
struct io_attribute {
	struct duet_attribute head;
	struct duet_resource resource;
	u8 text[DUET_MAX_RESOURCE_TEXT * 2 + 8];
};

_Static_assert(sizeof(struct io_attribute) <= sizeof(((struct duet_scratch *)0)->part), "it is built there");

/* Adds the components of the path, the last one first, each with its NUL. */
static __always_inline void io_add_path(struct io_attribute *to, struct file *file)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry), *parent;
	struct vfsmount *mount = BPF_CORE_READ(file, f_path.mnt);
	u32 bytes = 0;
	long got;

	for (u32 i = 0; i < IO_COMPONENTS; i++) {
		parent = BPF_CORE_READ(dentry, d_parent);
		if (dentry == parent || dentry == BPF_CORE_READ(mount, mnt_root)) {
			struct mount *on = (void *)mount - bpf_core_field_offset(struct mount, mnt);
			struct mount *above = BPF_CORE_READ(on, mnt_parent);

			to->resource.is_whole = above == on;
			if (above == on)
				break;
			dentry = BPF_CORE_READ(on, mnt_mountpoint);
			mount = (void *)above + bpf_core_field_offset(struct mount, mnt);
			continue;
		}
		if (bytes >= DUET_MAX_RESOURCE_TEXT)
			break;
		got = bpf_probe_read_kernel_str(to->text + bytes, DUET_MAX_RESOURCE_TEXT,
						BPF_CORE_READ(dentry, d_name.name));
		if (got <= 0 || bytes + got > DUET_MAX_RESOURCE_TEXT)
			break;
		bytes += got;
		dentry = parent;
	}
	to->resource.text_bytes = bytes;
}

/* Adds the path of the peer or, if that has none, the socket's own. */
static __always_inline void io_add_unix(struct io_attribute *to, struct unix_sock *sock)
{
	struct unix_sock *peer = (struct unix_sock *)BPF_CORE_READ(sock, peer);
	struct unix_address *address = BPF_CORE_READ(peer, addr);

	if (!address)
		address = BPF_CORE_READ(sock, addr);
	to->resource.kind = DUET_RESOURCE_UNIX;
	to->resource.port = 0;
	to->resource.text_bytes = DUET_MAX_UNIX_PATH;
	__builtin_memset(to->text, 0, DUET_MAX_UNIX_PATH);
	if (address)
		bpf_core_read(to->text, DUET_MAX_UNIX_PATH, &address->name[0].sun_path);
}

/* Adds the peer's address. */
static __always_inline void io_add_peer(struct io_attribute *to, struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sock = BPF_CORE_READ(socket, sk);
	u16 family = BPF_CORE_READ(sock, __sk_common.skc_family);

	to->resource.kind = DUET_RESOURCE_SOCKET;
	to->resource.port = __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));
	if (family == IO_AF_INET) {
		to->resource.kind = DUET_RESOURCE_INET;
		to->resource.text_bytes = 4;
		bpf_core_read(to->text, 4, &sock->__sk_common.skc_daddr);
	} else if (family == IO_AF_INET6) {
		to->resource.kind = DUET_RESOURCE_INET6;
		to->resource.text_bytes = 16;
		bpf_core_read(to->text, 16, &sock->__sk_common.skc_v6_daddr);
	} else if (family == IO_AF_UNIX) {
		io_add_unix(to, (struct unix_sock *)sock);
	}
}

/* Fills the attribute. Returns its size; 0: the descriptor is closed. Not inline, so that the program stays small. */
static __noinline u32 io_describe(struct io_attribute *to, u32 fd)
{
	struct file *file = descriptor_file(fd);
	u32 type = file ? descriptor_type(file) : 0;

	if (!file)
		return 0;
	__builtin_memset(to, 0, sizeof(to->head) + sizeof(to->resource));
	to->head.type = DUET_ATTRIBUTE_RESOURCE;
	to->resource.kind = DUET_RESOURCE_FILE;
	if (type == S_IFSOCK)
		io_add_peer(to, file);
	else if (type == S_IFIFO)
		to->resource.kind = DUET_RESOURCE_PIPE;
	else
		io_add_path(to, file);
	to->head.bytes = sizeof(to->resource) + to->resource.text_bytes;
	return sizeof(to->head) + ((to->head.bytes + 7) & ~7u);
}

/* Like sample_end(), for a sample with the attribute of the descriptor. */
static __noinline int io_end(struct duet_scratch *room, u32 fd)
{
	struct io_attribute *attribute = (struct io_attribute *)&room->part;
	u32 bytes = sizeof(room->sample) + stack_bytes(room), more = io_describe(attribute, fd);

	/* The mask is for the verifier. The asm hides the value, else the compiler would remove the mask. */
	__asm__("" : "+r"(more));
	more &= DUET_MAX_BPF_ATTRIBUTE_BYTES - 1;
	if (bytes > sizeof(room->room) - DUET_MAX_BPF_ATTRIBUTE_BYTES)
		more = 0;
	if (more && bpf_probe_read_kernel(room->room + bytes, more, attribute))
		more = 0;
	room->sample.attribute_bytes = more;
	sample_emit(room, bytes + more);
	return 0;
}

/* ---- the programs ---- */

SEC("?raw_tracepoint/sys_enter")
int io_enter(struct bpf_raw_tracepoint_args *ctx)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	u64 now_ns;

	if (!io_is_call(ctx->args[1]))
		return 0;
	now_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&io_calls, &tid, &now_ns, BPF_ANY);
	return 0;
}

static __always_inline int io_sample(void *ctx, u32 event, struct pt_regs *regs, u64 amount)
{
	u64 began_ns = bpf_ktime_get_ns(), owed = sample_owe(event, amount);
	struct duet_scratch *room;

	if (!owed)
		return 0;
	room = sample_take(&(struct sample_from){.ctx = ctx, .began_ns = began_ns, .event = event});
	if (room)
		io_end(room, (u32)PT_REGS_PARM1_CORE_SYSCALL(regs));
	return sample_settle(began_ns, event, amount, owed, room != NULL);
}

/* A call that has begun before the recording, or has been forgotten because of many others, is left out. */
SEC("?raw_tracepoint/sys_exit")
int io_exit(struct bpf_raw_tracepoint_args *ctx)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	u64 *began_ns = bpf_map_lookup_elem(&io_calls, &tid), took_ns;

	if (!began_ns)
		return 0;
	took_ns = bpf_ktime_get_ns() - *began_ns;
	bpf_map_delete_elem(&io_calls, &tid);
	return io_sample(ctx, duet_config.event_of[DUET_PROGRAM_IO], (struct pt_regs *)ctx->args[0], took_ns);
}

SEC("?raw_tracepoint/sys_exit")
int io_exit_bytes(struct bpf_raw_tracepoint_args *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx->args[0];
	s64 bytes = ctx->args[1];

	if (bytes <= 0 || !io_moves_bytes(regs_syscall(regs)))
		return 0;
	return io_sample(ctx, duet_config.event_of[DUET_PROGRAM_IO_BYTES], regs, bytes);
}

char LICENSE[] SEC("license") = "GPL";
