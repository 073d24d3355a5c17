/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel types that look the same on every architecture; see README.md. Included by <arch>/vmlinux.h only. */
#ifndef VMLINUX_COMMON_H
#define VMLINUX_COMMON_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

typedef __s32 s32;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;

/* bpf_helper_defs.h names these. */
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* What <stdint.h> and <stdbool.h> would give; headers/ needs them. */
typedef __s8 int8_t;
typedef __u8 uint8_t;
typedef __s16 int16_t;
typedef __u16 uint16_t;
typedef __s32 int32_t;
typedef __u32 uint32_t;
typedef __s64 int64_t;
typedef __u64 uint64_t;
typedef _Bool bool;
#define UINT32_MAX 0xffffffffu
enum { false = 0, true = 1 };
#define NULL ((void *)0)

/* Numbers of the bpf() ABI, include/uapi/linux/bpf.h. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

/* Context of raw tracepoints; the ABI fixes it, no relocation. */
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

/* Below: kernel-internal, so every access is relocated to the running kernel's layout. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

enum pid_type {
	PIDTYPE_PID = 0,
};

typedef struct {
	int counter;
} atomic_t;

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[0];
};

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct sigpending {
	sigset_t signal;
};

typedef void (*__sighandler_t)(int);

struct sigaction {
	__sighandler_t sa_handler;
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[64];
};

struct signal_struct {
	atomic_t live;
};

struct mm_struct {
	unsigned long brk; /* the end of the heap */
};

struct super_block {
	unsigned int s_dev;
};

struct inode {
	u16 i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
	s64 i_size;
	s64 i_mtime_sec; /* Linux 6.11 */
	u32 i_mtime_nsec;
};

struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
};

struct inode___before_6_11 {
	struct timespec64 __i_mtime;
};

struct inode___before_6_7 {
	struct timespec64 i_mtime;
};

struct qstr {
	const unsigned char *name;
};

struct hlist_bl_node {
	void *pprev; /* NULL: in no list */
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode;
	void *private_data;
	struct inode *f_inode;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num; /* its own port, in the order of bytes of the machine */
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	long sk_rcvtimeo;
	long sk_sndtimeo;
};

struct socket {
	struct sock *sk;
};

struct Qdisc {
	int (*enqueue)(void); /* NULL: the device has no queue */
};

struct netdev_queue {
	struct Qdisc *qdisc;
};

struct net_device {
	unsigned int flags;
	struct netdev_queue *_tx; /* the first one */
};

struct sk_buff {
	struct net_device *dev;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	int len; /* of the family and the name */
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

/* What overlayfs maps: `file` is the lower file's, `user_path` the overlay's. */
struct backing_file {
	struct file file;
	struct path user_path;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct kernfs_node {
	u64 id;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct cgroup_root *root;
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[0]; /* by level, itself included; Linux 6.1 */
};

/* Before: the ids themselves. */
struct cgroup___before_6_1 {
	u64 ancestor_ids[0];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct sched_info {
	unsigned long long run_delay; /* time spent waiting for a CPU */
};

struct rseq;

struct task_struct {
	unsigned int __state; /* Linux 5.14 */
	unsigned int on_cpu; /* an int; u8 since Linux 7.2, which libbpf reads only where this is unsigned */
	unsigned long nvcsw; /* context switches, also those that it did not ask for */
	unsigned long nivcsw;
	void *stack;
	unsigned int flags;
	unsigned int policy; /* SCHED_* of sched(7) */
	struct sched_info sched_info;
	struct mm_struct *mm;
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	u64 start_time;
	u64 start_boottime;
	char comm[16];
	struct files_struct *files;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	sigset_t blocked;
	struct sigpending pending;
	struct css_set *cgroups;
	int *clear_child_tid;
	struct rseq *rseq; /* Linux 6.19 has a struct of this name instead */
};

struct task_struct___preempt_rt {
	int softirq_disable_cnt;
};

struct task_struct___before_5_14 {
	long state;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct pcpu_hot { /* x86-64, Linux 6.2 to 6.14 */
	int preempt_count;
};

struct io_ring_ctx;

struct io_cqe {
	u64 user_data;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	u64 flags; /* 32 bits before Linux 6.9 */
	struct io_cqe cqe; /* Linux 5.19 */
	struct io_ring_ctx *ctx;
};

/* Both are what struct io_kiocb begins with, depending on the opcode. */
struct io_accept {
	u32 file_slot; /* not 0: the new connection gets no descriptor */
};

struct io_connect {
	void *addr;
	int addr_len;
};

struct io_uring_cqe {
	u64 user_data;
	s32 res;
	u32 flags;
};

struct gendisk {
	char disk_name[32];
};

struct request_queue {
	struct gendisk *disk; /* Linux 5.15 */
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
};

struct request___before_5_17 {
	struct gendisk *rq_disk;
};

#pragma clang attribute pop

#endif
