/* SPDX-License-Identifier: MIT */
#include "session/sleep_edges.h"

#include <string.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "collect/collector.h"
#include "collect/engines.h"
#include "collect/sleepers/sleepers.h"
#include "collect/tables/unwinding.h"
#include "profile/profile.h"
#include "session/intake.h"

#define PREVIEW_NS (10 * NS_PER_SEC)
#define FIRST_PREVIEW_NS (NS_PER_SEC / 10)
/* The walk begins this long before an edge. Then few threads wake between the walk and the edge. */
#define AHEAD_NS (NS_PER_SEC / 5)
/* A walk at the end that takes longer is followed by a second one, for the threads that fell asleep meanwhile. */
#define LONG_WALK_NS (2 * NS_PER_MS)
#define PREPARE_NS NS_PER_SEC /* longest time at the end to prepare processes for the walk */

/* Returns NULL if the engine or the events do not show threads that sleep. */
static struct sleepers *sleepers_of(const struct sleep_edges *edges)
{
	return edges->of.engine->collector ? collector_sleepers(edges->of.engine->collector) : NULL;
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

static void preview(struct sleep_edges *edges, struct sleepers *sleepers, uint64_t now_ns)
{
	check(sleepers_preview(sleepers, meet, edges->of.intake));
	edges->prepared_ns = now_ns;
}

void sleep_edges_start(struct sleep_edges *edges, const struct sleep_edges_deps *of, uint64_t started_ns,
		       uint64_t duration_ns)
{
	*edges = (struct sleep_edges){.of = *of, .started_ns = started_ns};
	edges->prepared_ns = of->is_prepared ? started_ns : 0;
	edges->end_ns = duration_ns ? started_ns + duration_ns : UINT64_MAX;
}

/* Returns when the next window or the recording ends, as far as that is known. */
static uint64_t next_edge(const struct sleep_edges *edges)
{
	uint64_t until_ns = edges->of.profile->until_ns ? edges->of.profile->until_ns : UINT64_MAX;

	return until_ns != edges->sampled_ns && until_ns < edges->end_ns ? until_ns : edges->end_ns;
}

void sleep_edges_step(struct sleep_edges *edges, uint64_t now_ns)
{
	struct sleepers *sleepers = sleepers_of(edges);
	uint64_t edge_ns = next_edge(edges);

	if (!sleepers)
		return;
	if (now_ns - edges->started_ns > FIRST_PREVIEW_NS && now_ns - edges->prepared_ns > PREVIEW_NS)
		preview(edges, sleepers, now_ns);
	if (now_ns + AHEAD_NS >= edge_ns && edges->walked_ns != edge_ns) {
		check(sleepers_walk(sleepers));
		edges->walked_ns = edge_ns;
		now_ns = clock_monotonic_ns();
	}
	if (now_ns >= edge_ns && edge_ns == edges->of.profile->until_ns) {
		check(sleepers_walk(sleepers));
		check(sleepers_tell(sleepers, edge_ns));
		sleepers_pass(sleepers, take, edges->of.intake);
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

void sleep_edges_end(struct sleep_edges *edges)
{
	struct sleepers *sleepers = sleepers_of(edges);
	uint64_t now_ns = clock_monotonic_ns();

	if (!sleepers)
		return;
	if (!edges->prepared_ns)
		preview(edges, sleepers, now_ns);
	if (edges->of.unwinding->wanted.len)
		unwinding_work(edges->of.unwinding, edges->of.processes, now_ns + PREPARE_NS);
	walk_at_end(sleepers);
	check(sleepers_tell(sleepers, clock_monotonic_ns()));
}

void sleep_edges_pass(struct sleep_edges *edges)
{
	struct sleepers *sleepers = sleepers_of(edges);

	if (sleepers)
		sleepers_pass(sleepers, take, edges->of.intake);
}
