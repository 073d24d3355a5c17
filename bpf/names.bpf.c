// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names an address of the kernel, as printk() does. The loader runs the program for one address after the other. Each
 * takes microseconds, while /proc/kallsyms takes tens of milliseconds to read. The program is an object of its own,
 * because it is also used where the other programs are not: by "duet check" and with --engine perf.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "duet_config.h"

char duet_name[DUET_NAME_BYTES]; /* "function+0xoffset/0xsize [module]", or the address in hex if it has no name */

/* Run by the loader only. The context is the address. No type of the kernel is used, so its BTF need not be read. */
SEC("raw_tp")
int name_address(const u64 *ctx)
{
	return (int)BPF_SNPRINTF(duet_name, sizeof(duet_name), "%pS", ctx[0]);
}

char LICENSE[] SEC("license") = "GPL";
