/* SPDX-License-Identifier: MIT */
/*
 * What this kernel, and what this user's rights, allow. Inside collect/ only;
 * collector_probe() shows it to the user.
 */
#ifndef COLLECT_PROBE_H
#define COLLECT_PROBE_H

#include <stdbool.h>

#include "base/buf.h"

void probe_init(void); /* before any other use of libbpf: its messages go to the debug log */

bool probe_has_task_pt_regs(void); /* bpf_task_pt_regs() in perf_event programs, 5.15 */
bool probe_has_attach_cookie(void); /* bpf_get_attach_cookie() in perf_event programs, 5.15 */
bool probe_has_signal_cookie(void); /* bpf_send_signal_task(), 6.13 */

/* Appends cause and way out of the first required feature that is missing; false when none is. */
bool probe_explain(struct buf *why);

#endif
