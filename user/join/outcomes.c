/* SPDX-License-Identifier: MIT */
#include "join/outcomes.h"

#include "base/counters.h"

static void count_jvm_walk(struct outcomes *outcomes, const struct duet_sample *sample, enum join_outcome outcome,
			   const struct splice_verdict *verdict)
{
	if (sample->flags & DUET_SAMPLE_SIGNALLED && sample->flags & DUET_SAMPLE_WALKED)
		outcomes->checked++;
	else if (sample->flags & DUET_SAMPLE_SIGNALLED)
		outcomes->needed++;
	outcomes->witnesses[verdict->witnesses]++;
	outcomes->bcis[verdict->bcis]++;
	outcomes->names[verdict->names]++;
	outcomes->estimated += verdict->is_estimated;
	if (verdict->is_missing_code && outcome == JOIN_WALKED)
		outcomes->joined--; /* count_outcome() has counted it, but its frames have a gap */
	if (sample->flags & DUET_SAMPLE_USER_COMPLETE)
		outcomes->rooted++;
	else
		outcomes->walk_ends[sample->walk_end]++;
}

static void count_outcome(struct outcomes *outcomes, const struct duet_sample *sample,
			  const struct duet_java_sample *java, enum join_outcome outcome, bool jvm)
{
	bool is_joined = outcome == JOIN_JOINED || outcome == JOIN_WALKED;
	int code = java ? -java->status : 0;

	outcomes->jvm_samples += jvm && (is_joined || sample->no_signal != DUET_NO_SIGNAL_EVENT);
	outcomes->joined += is_joined;
	/* If the walk is whole, a failure of AsyncGetCallTrace lost nothing. */
	if (java && java->status <= 0 && !(java->flags & DUET_JAVA_NO_THREAD) &&
	    !(sample->flags & DUET_SAMPLE_USER_COMPLETE))
		outcomes->failures[code < OUTCOMES_FAILURES ? code : OUTCOMES_FAILURES - 1]++;
}

/* Skips stacks whose walk was cut but which a Java half continues. */
static void count_losses(const struct duet_sample *sample, const struct duet_java_sample *java)
{
	static const int losses[DUET_WALK_END_MAX] = {
		[DUET_WALK_NO_ROW] = DUET_LOADER_STACK_NO_ROW,	       [DUET_WALK_BAD_FP] = DUET_LOADER_STACK_NO_ROW,
		[DUET_WALK_UNREADABLE] = DUET_LOADER_STACK_UNREADABLE, [DUET_WALK_BAD_CFA] = DUET_LOADER_STACK_BAD_CFA,
		[DUET_WALK_DEPTH] = DUET_LOADER_STACK_DEPTH,	       [DUET_WALK_LONG] = DUET_LOADER_STACK_LONG,
	};

	if (java && java->java_depth && !(sample->flags & DUET_SAMPLE_USER_COMPLETE))
		return;
	loader_counters[DUET_LOADER_STACK_LEFT_OUT] += sample->left_out != 0;
	loader_counters[DUET_LOADER_STACK_GUESSED] += sample->guessed_depth != 0;
	if (losses[sample->walk_end])
		loader_counters[losses[sample->walk_end]]++;
}

void outcomes_add(struct outcomes *outcomes, const struct duet_sample *sample, const struct duet_java_sample *java,
		  enum join_outcome outcome, const struct splice_verdict *verdict)
{
	count_outcome(outcomes, sample, java, outcome, verdict != NULL);
	if (verdict)
		count_jvm_walk(outcomes, sample, outcome, verdict);
	count_losses(sample, java);
}

void outcomes_add_own(struct outcomes *outcomes, const struct duet_sample *sample)
{
	static const enum duet_bpf_counter counters[] = {
		[DUET_NO_SIGNAL_SYSCALL] = DUET_BPF_SIGNAL_SYSCALL,
		[DUET_NO_SIGNAL_BLOCKED] = DUET_BPF_SIGNAL_BLOCKED,
		[DUET_NO_SIGNAL_EXITING] = DUET_BPF_SIGNAL_EXITING,
	};

	if (sample->flags & DUET_SAMPLE_USER_COMPLETE) /* samples that BPF has not counted */
		return;
	if (sample->no_signal == DUET_NO_SIGNAL_SYSCALL || sample->no_signal == DUET_NO_SIGNAL_BLOCKED ||
	    sample->no_signal == DUET_NO_SIGNAL_EXITING)
		outcomes->own_unsignalled[counters[sample->no_signal]]++;
}

struct outcomes outcomes_since(const struct outcomes *now, const struct outcomes *before)
{
	struct outcomes since = *now;
	uint64_t *count = (uint64_t *)&since;
	const uint64_t *subtract = (const uint64_t *)before;

	_Static_assert(sizeof(since) % sizeof(uint64_t) == 0, "a count that is no uint64_t");
	for (size_t i = 0; i < sizeof(since) / sizeof(uint64_t); i++)
		count[i] -= subtract[i];
	return since;
}
