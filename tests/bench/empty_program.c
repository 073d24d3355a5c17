/* SPDX-License-Identifier: MIT */
/*
 * Runs a BPF program that does nothing at each context switch. What the kernel's statistics tell of it is the time that
 * the statistics take, which is in those of every program. As root; ends by a signal.
 */
#include <stdio.h>
#include <unistd.h>

#include <bpf/bpf.h>

int main(void)
{
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K}, /* r0 = 0 */
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "empty", "GPL", program, 2, NULL);

	if (fd < 0 || bpf_raw_tracepoint_open("sched_switch", fd) < 0) {
		perror("sched_switch");
		return 1;
	}
	puts("READY");
	fflush(stdout);
	pause();
}
