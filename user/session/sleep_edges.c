/* SPDX-License-Identifier: MIT */
/* The threads that sleep over the end of a window or of the recording (collect/sleepers/sleepers.h). */
#include <string.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "collect/collector.h"
#include "collect/sleepers/sleepers.h"
#include "session/internal.h"

#define PREVIEW_NS (10 * NS_PER_SEC)
#define FIRST_PREVIEW_NS (NS_PER_SEC / 10)
/* The walk begins this long before an edge. Then few threads wake between the walk and the edge. */
#define AHEAD_NS (NS_PER_SEC / 5)
/* A walk at the end that takes longer is followed by a second one, for the threads that fell asleep meanwhile. */
#define LONG_WALK_NS (2 * NS_PER_MS)
#define PREPARE_NS NS_PER_SEC /* longest time at the end to prepare processes for the walk */

/* Returns NULL if the engine or the events do not show threads that sleep. */
static struct sleepers *sleepers_of(const struct session *session)
{
	return session->engine.collector ? collector_sleepers(session->engine.collector) : NULL;
}

static void meet(void *context, const struct duet_sample *sample)
{
	(void)intake_meet(context, sample);
}

static void take(void *context, const struct duet_sample *sample)
{
	intake_on_sample(context, sample);
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
	session->edges.prepared_ns = now_ns;
}

/* Returns when the next window or the recording ends, as far as that is known. */
static uint64_t next_edge(const struct session *session)
{
	uint64_t until_ns = session->profile.until_ns ? session->profile.until_ns : UINT64_MAX;
	uint64_t end_ns = session_end_ns(session);

	return until_ns != session->edges.sampled_ns && until_ns < end_ns ? until_ns : end_ns;
}

void sleep_edges_step(struct session *session, uint64_t now_ns)
{
	struct sleepers *sleepers = sleepers_of(session);
	struct sleep_edges *edges = &session->edges;
	uint64_t edge_ns = next_edge(session);

	if (!sleepers)
		return;
	if (now_ns - session->started_ns > FIRST_PREVIEW_NS && now_ns - edges->prepared_ns > PREVIEW_NS)
		preview(session, sleepers, now_ns);
	if (now_ns + AHEAD_NS >= edge_ns && edges->walked_ns != edge_ns) {
		check(sleepers_walk(sleepers));
		edges->walked_ns = edge_ns;
		now_ns = clock_monotonic_ns();
	}
	if (now_ns >= edge_ns && edge_ns == session->profile.until_ns) {
		check(sleepers_walk(sleepers));
		check(sleepers_tell(sleepers, edge_ns));
		sleepers_pass(sleepers, take, session);
		edges->sampled_ns = edge_ns;
	}
}

static void walk_at_end(struct sleepers *sleepers)
{
	uint64_t began_ns = clock_monotonic_ns();

	check(sleepers_walk(sleepers));
	if (clock_monotonic_ns() - began_ns > LONG_WALK_NS)
		check(sleepers_walk(sleepers));
}

void sleep_edges_end(struct session *session)
{
	struct sleepers *sleepers = sleepers_of(session);
	uint64_t now_ns = clock_monotonic_ns();

	if (!sleepers)
		return;
	if (!session->edges.prepared_ns)
		preview(session, sleepers, now_ns);
	if (session->unwinding.wanted.len)
		unwinding_work(&session->unwinding, &session->processes, now_ns + PREPARE_NS);
	walk_at_end(sleepers);
	check(sleepers_tell(sleepers, clock_monotonic_ns()));
}

void sleep_edges_pass(struct session *session)
{
	struct sleepers *sleepers = sleepers_of(session);

	if (sleepers)
		sleepers_pass(sleepers, take, session);
}
