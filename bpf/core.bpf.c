// SPDX-License-Identifier: GPL-2.0-only
/* Defines the variables and the maps that several files use. */
#define DUET_MAPS /* not extern */

#include "core.bpf.h"
#include "offcpu.bpf.h"
#include "packets.bpf.h"
#include "sample.bpf.h"

const volatile struct duet_config duet_config = {};
volatile uint32_t duet_every = 1;
volatile uint64_t duet_started_ns = 0;
volatile uint64_t duet_edge_ns = 0;
volatile uint64_t duet_last_edge_ns = 0;
volatile bool duet_look_leaders = false;
volatile bool duet_look_again = false;
volatile bool duet_needs_fallback_hook = false;
volatile uint32_t duet_fallback_hook = DUET_RETURN_NONE;

char LICENSE[] SEC("license") = "GPL";
