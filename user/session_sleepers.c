/* SPDX-License-Identifier: MIT */
/* The threads that sleep over the end of a window or of the recording (collect/sleepers.h). */
#include <string.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "collect/sleepers.h"
#include "session_internal.h"

#define PREVIEW_NS (10 * NS_PER_SEC)
#define FIRST_PREVIEW_NS (NS_PER_SEC / 10)
/* The walk begins this long before an edge. Then few threads wake between the walk and the edge. */
#define AHEAD_NS (NS_PER_SEC / 5)
#define WALKS_AT_END 2 /* the second walk has the threads that fell asleep during a long first one */
#define PREPARE_NS NS_PER_SEC /* longest time at the end to prepare processes for the walk */

/* Returns NULL if the engine or the events do not show threads that sleep. */
static struct sleepers *sleepers_of(const struct session *session)
{
	return session->engine.collector ? collector_sleepers(session->engine.collector) : NULL;
}

static void meet(void *context, const struct duet_sample *sample)
{
	(void)session_meet(context, sample);
}

static void take(void *context, const struct duet_sample *sample)
{
	session_on_sample(context, sample);
}

/* Counts a failure. The first one of the process is explained. */
static void check(int err)
{
	if (err >= 0)
		return;
	if (!loader_counters[DUET_LOADER_SLEEPERS_UNLISTED]++)
		log_warn("some threads that sleep at the end of a window may be missing: listing them failed: %s",
			 strerrordesc_np(-err));
}

static void preview(struct session *session, struct sleepers *sleepers, uint64_t now_ns)
{
	check(sleepers_preview(sleepers, meet, session));
	session->sleepers_ns = now_ns;
}

/* Returns when the next window or the recording ends, as far as that is known. */
static uint64_t next_edge(const struct session *session)
{
	const struct session_options *options = session->options;
	uint64_t end_ns = options->duration_ns ? session->started_ns + options->duration_ns : UINT64_MAX;
	uint64_t until_ns = options->window_ns ? session->profile.until_ns : UINT64_MAX;

	return until_ns != session->edge_ns && until_ns < end_ns ? until_ns : end_ns;
}

void session_step_sleepers(struct session *session, uint64_t now_ns)
{
	struct sleepers *sleepers = sleepers_of(session);
	uint64_t edge_ns = next_edge(session);

	if (!sleepers)
		return;
	if (now_ns - session->started_ns > FIRST_PREVIEW_NS && now_ns - session->sleepers_ns > PREVIEW_NS)
		preview(session, sleepers, now_ns);
	if (now_ns + AHEAD_NS >= edge_ns && session->walked_ns != edge_ns) {
		check(sleepers_walk(sleepers));
		session->walked_ns = edge_ns;
		now_ns = clock_monotonic_ns();
	}
	if (now_ns >= edge_ns && edge_ns == session->profile.until_ns) {
		check(sleepers_walk(sleepers));
		check(sleepers_tell(sleepers, edge_ns));
		sleepers_pass(sleepers, take, session);
		session->edge_ns = edge_ns;
	}
}

void session_end_sleepers(struct session *session)
{
	struct sleepers *sleepers = sleepers_of(session);
	uint64_t now_ns = clock_monotonic_ns();

	if (!sleepers)
		return;
	if (!session->sleepers_ns)
		preview(session, sleepers, now_ns);
	if (session->unwinding.wanted.len)
		unwinding_work(&session->unwinding, &session->processes, now_ns + PREPARE_NS);
	for (int i = 0; i < WALKS_AT_END; i++)
		check(sleepers_walk(sleepers));
	check(sleepers_tell(sleepers, clock_monotonic_ns()));
}

void session_pass_sleepers(struct session *session)
{
	struct sleepers *sleepers = sleepers_of(session);

	if (sleepers)
		sleepers_pass(sleepers, take, session);
}
