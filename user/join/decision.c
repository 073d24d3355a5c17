/* SPDX-License-Identifier: MIT */
#include "join/decision.h"

#include <stdlib.h>

#include "base/buf.h"

struct held *held_new(const struct decision *decision, uint64_t now_ns)
{
	const struct duet_java_sample *java = decision->java;
	size_t java_bytes = java ? sizeof(*java) + java->java_depth * sizeof(struct duet_java_frame) : 0;
	size_t sample_bytes = decision->sample->head.size;
	struct held *held = calloc(1, sizeof(*held));

	if (!held)
		return NULL;
	*held = (struct held){*decision, now_ns, decision->process->programs, sample_bytes + java_bytes};
	process_ref(decision->process);
	origin_ref(decision->origin);
	held->decision.sample = buf_duplicate(decision->sample, sample_bytes);
	held->decision.java = java ? buf_duplicate(java, java_bytes) : NULL;
	if (held->decision.sample && (!java || held->decision.java))
		return held;
	held_free(held);
	return NULL;
}

void held_free(struct held *held)
{
	if (!held)
		return;
	free((void *)held->decision.sample);
	free((void *)held->decision.java);
	process_unref(held->decision.process);
	origin_unref(held->decision.origin);
	free(held);
}
