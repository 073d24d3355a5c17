// SPDX-License-Identifier: GPL-2.0-only
/* Defines all maps; the other files declare them. The linker of libbpf 1.1 requires definitions before uses. */
#include "core.bpf.h"
#include "holders.bpf.h"
#include "offcpu.bpf.h"
#include "packets.bpf.h"
#include "sample.bpf.h"

const volatile struct duet_config duet_config = {};
volatile uint32_t duet_every = 1;
volatile uint64_t duet_started_ns = 0;
volatile uint64_t duet_edge_ns = 0;
volatile uint64_t duet_last_edge_ns = 0;
volatile bool duet_look_leaders = false;
volatile bool duet_needs_fallback_hook = false;
volatile uint32_t duet_fallback_hook = DUET_RETURN_NONE;

struct duet_ring_map ring SEC(".maps");
struct duet_jvms_map jvms SEC(".maps");
struct duet_layouts_map jvm_layouts SEC(".maps");
struct duet_contexts_map contexts SEC(".maps");
struct duet_targets_map targets SEC(".maps");
struct duet_seen_map seen SEC(".maps");
struct duet_counters_map counters SEC(".maps");
struct duet_costs_map costs SEC(".maps");
struct duet_run_times_map run_times SEC(".maps");
struct duet_scratch_map scratch SEC(".maps");
struct duet_unwind_rows_map unwind_rows SEC(".maps");
struct duet_unwind_pages_map unwind_pages SEC(".maps");
struct duet_unwind_modules_map unwind_modules SEC(".maps");
struct duet_unwind_mappings_map unwind_mappings SEC(".maps");
struct duet_unwind_processes_map unwind_processes SEC(".maps");
struct duet_unwind_files_map unwind_files SEC(".maps");
struct duet_unwind_learnt_map unwind_learnt SEC(".maps");
struct duet_unwind_heirs_map unwind_heirs SEC(".maps");
struct duet_offcpu_threads_map offcpu_threads SEC(".maps");
struct duet_offcpu_tids_map offcpu_tids SEC(".maps");
struct duet_offcpu_parked_map offcpu_parked SEC(".maps");
struct duet_offcpu_kernel_map offcpu_kernel SEC(".maps");
struct duet_offcpu_kernels_map offcpu_kernels SEC(".maps");
struct duet_lock_waiters_map lock_waiters SEC(".maps");
struct duet_irqs_map irqs SEC(".maps");
struct duet_packets_map packets SEC(".maps");
struct duet_unwind_known_map unwind_known SEC(".maps");

char LICENSE[] SEC("license") = "GPL";
