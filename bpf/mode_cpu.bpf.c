// SPDX-License-Identifier: GPL-2.0-only
/* -e cpu: a clock ticks on each CPU, and whoever runs there is sampled. */
#include "core.bpf.h"
#include "sample.bpf.h"
#include "signal.bpf.h"

/* The "?": nothing loads by itself, the loader picks one. */
SEC("?perf_event")
int cpu_plain(struct bpf_perf_event_data *ctx)
{
	u64 began_ns = bpf_ktime_get_ns();
	struct duet_sample *sample = sample_take(ctx, began_ns);

	if (sample) {
		signal_java_thread(sample);
		sample_end();
	}
	sample_cost(began_ns, sample != NULL);
	return 0;
}

SEC("?perf_event")
int cpu_cookie(struct bpf_perf_event_data *ctx)
{
	u64 began_ns = bpf_ktime_get_ns();
	struct duet_sample *sample = sample_take(ctx, began_ns);

	if (sample) {
		signal_java_thread_cookie(sample);
		sample_end();
	}
	sample_cost(began_ns, sample != NULL);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
