/* SPDX-License-Identifier: MIT */
#include "join/nameless.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"

static void free_halves(const struct nameless_sample *sample)
{
	free((void *)sample->decision.sample);
	free((void *)sample->decision.java);
}

void nameless_release(struct nameless *nameless)
{
	for (size_t i = 0; i < nameless->samples.len; i++)
		free_halves(&nameless->samples.items[i]);
	vec_release(&nameless->samples);
	nameless->bytes = 0;
}

int nameless_hold(struct nameless *nameless, const struct decision *decision, uint64_t now_ns)
{
	const struct duet_java_sample *java = decision->java;
	size_t java_bytes = java ? sizeof(*java) + java->java_depth * sizeof(struct duet_java_frame) : 0;
	size_t sample_bytes = decision->sample->head.size;
	struct nameless_sample held = {*decision, now_ns, sample_bytes + java_bytes};

	held.decision.sample = buf_duplicate(decision->sample, sample_bytes);
	held.decision.java = java ? buf_duplicate(java, java_bytes) : NULL;
	if (!held.decision.sample || (java && !held.decision.java) || vec_push(&nameless->samples, held) < 0) {
		free_halves(&held);
		return -ENOMEM;
	}
	nameless->bytes += held.bytes;
	return 0;
}

void nameless_sift(struct nameless *nameless, bool (*is_done)(void *context, const struct nameless_sample *sample),
		   void *context)
{
	size_t kept = 0;

	for (size_t i = 0; i < nameless->samples.len; i++) {
		const struct nameless_sample *sample = &nameless->samples.items[i];

		if (!is_done(context, sample)) {
			nameless->samples.items[kept++] = *sample;
			continue;
		}
		nameless->bytes -= sample->bytes;
		free_halves(sample);
	}
	nameless->samples.len = kept;
	if (!kept)
		vec_release(&nameless->samples);
}

bool nameless_holds(const struct nameless *nameless, const void *owner)
{
	for (size_t i = 0; i < nameless->samples.len; i++)
		if (nameless->samples.items[i].decision.owner == owner)
			return true;
	return false;
}

uint64_t nameless_oldest_ns(const struct nameless *nameless)
{
	uint64_t oldest_ns = UINT64_MAX;

	for (size_t i = 0; i < nameless->samples.len; i++) {
		uint64_t time_ns = nameless->samples.items[i].decision.sample->head.time_ns;

		oldest_ns = time_ns < oldest_ns ? time_ns : oldest_ns;
	}
	return oldest_ns;
}
