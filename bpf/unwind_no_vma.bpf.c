// SPDX-License-Identifier: GPL-2.0-only
/* Replaces unwind_vma.bpf.c on kernels before Linux 5.17. */
#include "unwind_native.bpf.h"

__noinline int unwind_find_unpublished(u32 level)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
