// SPDX-License-Identifier: GPL-2.0-only
/* Definitions of what core.bpf.h declares. */
#include "core.bpf.h"
#include "sample.bpf.h"

const volatile struct duet_config duet_config = {};

struct duet_ring_map ring SEC(".maps");
struct duet_jvms_map jvms SEC(".maps");
struct duet_targets_map targets SEC(".maps");
struct duet_seen_map seen SEC(".maps");
struct duet_counters_map counters SEC(".maps");
struct duet_scratch_map scratch SEC(".maps");

char LICENSE[] SEC("license") = "GPL";
