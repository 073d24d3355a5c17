// SPDX-License-Identifier: GPL-2.0-only
/* In place of unwind_vma.bpf.c for kernels before Linux 5.17. */
#include "unwind_native.bpf.h"

__noinline int unwind_find_unpublished(u32 level)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
