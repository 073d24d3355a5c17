/* SPDX-License-Identifier: MIT */
/* The threads that sleep over the end of a window or of the recording (collect/sleepers.h). */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "collect/sleepers.h"
#include "session_internal.h"

#define PREVIEW_NS (10 * NS_PER_SEC)
#define FIRST_PREVIEW_NS (NS_PER_SEC / 10)
#define PREPARE_NS NS_PER_SEC /* longest time at the end to prepare processes for the walk */

static void meet(void *context, const struct duet_sample *sample)
{
	(void)session_meet(context, sample);
}

static void take(void *context, const struct duet_sample *sample)
{
	session_on_sample(context, sample);
}

static void explain(int err)
{
	if (err < 0)
		log_debug("threads that sleep cannot be listed: %s", strerrordesc_np(-err));
}

static void preview(struct session *session, struct sleepers *sleepers, uint64_t now_ns)
{
	explain(sleepers_preview(sleepers, meet, session));
	session->sleepers_ns = now_ns;
}

/* Walks again what has fallen asleep during a long first walk. */
static void tell(struct session *session, struct sleepers *sleepers, uint64_t edge_ns)
{
	explain(sleepers_walk(sleepers));
	explain(sleepers_walk(sleepers));
	explain(sleepers_tell(sleepers, edge_ns, take, session));
}

void session_step_sleepers(struct session *session, uint64_t now_ns)
{
	struct sleepers *sleepers = session->engine.collector ? collector_sleepers(session->engine.collector) : NULL;
	uint64_t until_ns = session->profile.until_ns;

	if (!sleepers)
		return;
	if (now_ns - session->started_ns > FIRST_PREVIEW_NS && now_ns - session->sleepers_ns > PREVIEW_NS)
		preview(session, sleepers, now_ns);
	if (session->options->window_ns && now_ns >= until_ns && session->edge_ns != until_ns) {
		tell(session, sleepers, until_ns);
		session->edge_ns = until_ns;
	}
}

void session_end_sleepers(struct session *session)
{
	struct sleepers *sleepers = session->engine.collector ? collector_sleepers(session->engine.collector) : NULL;
	uint64_t now_ns = clock_monotonic_ns();

	if (!sleepers)
		return;
	if (!session->sleepers_ns)
		preview(session, sleepers, now_ns);
	if (session->unwinding.wanted.len)
		unwinding_work(&session->unwinding, &session->processes, now_ns + PREPARE_NS);
	tell(session, sleepers, clock_monotonic_ns());
}
