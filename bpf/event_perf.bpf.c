// SPDX-License-Identifier: GPL-2.0-only
/* Events of the perf subsystem, opened on each CPU: a clock ticks or something is counted, and who runs is sampled. */
#include "core.bpf.h"
#include "sample.bpf.h"
#include "signal.bpf.h"

/* Which of the recording's events this run is of. */
static __always_inline u32 perf_event_index(struct bpf_perf_event_data *ctx)
{
	return duet_config.event_count > 1 ? bpf_get_attach_cookie(ctx) & (DUET_MAX_EVENTS - 1) : 0;
}

/* The "?": nothing loads by itself, the loader picks one. */
SEC("?perf_event")
int perf_plain(struct bpf_perf_event_data *ctx)
{
	u64 began_ns = bpf_ktime_get_ns();
	u32 event = perf_event_index(ctx);
	enum sample_answer answer;
	struct duet_sample *sample = sample_take(ctx, event, began_ns, &answer);

	if (sample) {
		signal_java_thread(sample);
		sample_end();
	}
	sample_cost(event, began_ns, answer);
	return 0;
}

SEC("?perf_event")
int perf_cookie(struct bpf_perf_event_data *ctx)
{
	u64 began_ns = bpf_ktime_get_ns();
	u32 event = perf_event_index(ctx);
	enum sample_answer answer;
	struct duet_sample *sample = sample_take(ctx, event, began_ns, &answer);

	if (sample) {
		signal_java_thread_cookie(sample);
		sample_end();
	}
	sample_cost(event, began_ns, answer);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
