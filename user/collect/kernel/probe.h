/* SPDX-License-Identifier: MIT */
/*
 * The features of this kernel, and the rights of this user. Used inside collect/ only; collector_probe() shows them to
 * the user.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

void probe_init(void); /* sends libbpf's messages to the debug log; call before any other use of libbpf */

unsigned probe_kernel_version(void); /* 6015 for Linux 6.15 */
bool probe_has_task_pt_regs(void); /* bpf_task_pt_regs() in perf_event programs, 5.15 */
bool probe_has_attach_cookie(void); /* bpf_get_attach_cookie() in perf_event programs, 5.15 */
bool probe_has_signal_cookie(void); /* bpf_send_signal_task(), 6.13 */
bool probe_has_find_vma(void); /* bpf_find_vma() in perf_event programs, 5.17 */
bool probe_has_preempt_count(void); /* BPF sees whether an interrupt is being served */
bool probe_has_wakers(void); /* the same, or the kernel's frames, which show it, have names */
bool probe_has_sleeps(void); /* a hook at which threads that have slept can take their samples */
/*
 * The tracepoint at which requests of io_uring are submitted: "io_uring_submit_req", or its older name. NULL before
 * Linux 5.19, where no tracepoint shows the request. *ret_has_entry: see DUET_URING_HAS_ENTRY.
 */
const char *probe_uring(bool *ret_has_entry);
/* Returns the number of a tracepoint's arguments; 0: this kernel has no such tracepoint. */
unsigned probe_tracepoint_arguments(const char *name);
/* Breakpoints that stop what they should: some hypervisors take them and never do. True if that cannot be tried. */
bool probe_has_breakpoints(void);
bool probe_has_task_storage(void); /* task storage that can be allocated while the scheduler runs, 6.4 */
/* Returns true if the kernel's BTF has a type of this name and BTF_KIND_*. */
bool probe_has_type(const char *name, uint32_t kind);

/* Appends the cause and the way out for the first required feature that is missing. False if none is missing. */
bool probe_explain(struct buf *why);
