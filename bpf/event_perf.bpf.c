// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs for perf events. The loader opens each event on each CPU. The program runs when the clock ticks or the
 * counter overflows, and samples the thread that the CPU runs.
 */
#include "core.bpf.h"
#include "sample.bpf.h"
#include "signal.bpf.h"

/* `has_cookie` is a constant, so that a kernel without bpf_send_signal_task() never sees the call. */
static __always_inline int perf_sample(struct bpf_perf_event_data *ctx, bool has_cookie)
{
	const struct sample_from from = {
		.ctx = ctx,
		.regs = &ctx->regs,
		.began_ns = bpf_ktime_get_ns(),
		.event = sample_event(ctx, DUET_PROGRAM_PERF),
		.kernel = STACK_OF_CONTEXT,
	};
	struct duet_scratch *room = sample_take(&from);

	if (room) {
		if (has_cookie)
			signal_java_thread_cookie(&room->sample);
		else
			signal_java_thread(&room->sample);
		sample_end(room);
	}
	sample_cost(&from, room != NULL);
	return 0;
}

/* The "?" keeps libbpf from loading the program automatically: the loader chooses one of the two. */
SEC("?perf_event")
int perf_plain(struct bpf_perf_event_data *ctx)
{
	return perf_sample(ctx, false);
}

SEC("?perf_event")
int perf_cookie(struct bpf_perf_event_data *ctx)
{
	return perf_sample(ctx, true);
}

char LICENSE[] SEC("license") = "GPL";
