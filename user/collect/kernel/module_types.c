/* SPDX-License-Identifier: MIT */
/*
 * libbpf looks for a variable of the kernel that not every kernel has (bpf/event_wakeup.bpf.c) in the types of all
 * modules too. To list these takes CAP_SYS_ADMIN, and libbpf 1.1 refuses the programs without it, though CAP_BPF and
 * CAP_PERFMON are all that they need. The linker puts this function in the place of libbpf's (--wrap).
 */
#include <errno.h>

#include <bpf/bpf.h>

int __real_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id);
int __wrap_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id);

/* Without the right to list them, there are none. */
int __wrap_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id)
{
	int err = __real_bpf_btf_get_next_id(start_id, next_id);

	if (err && errno == EPERM)
		errno = ENOENT;
	return err && errno == ENOENT ? -ENOENT : err;
}
