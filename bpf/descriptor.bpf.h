/* SPDX-License-Identifier: GPL-2.0-only */
/* What a file descriptor of the current thread stands for. */
#pragma once

#include "compat.bpf.h"

#define S_IFMT 0170000 /* include/uapi/linux/stat.h */
#define S_IFIFO 0010000
#define S_IFSOCK 0140000

/* Returns NULL if the current thread has no such descriptor any more. */
static __always_inline struct file *descriptor_file(u32 fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	return file;
}

static __always_inline u32 descriptor_type(struct file *file)
{
	return BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
}
