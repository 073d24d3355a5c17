/* SPDX-License-Identifier: MIT */
#include "jvms/failures.h"

#include <errno.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "jvms/readers.h"
#include "jvms/sources.h"
#include "reader/reader.h"

#define FIRST_RETRY_S 2
#define RETRY_GROWTH 4 /* a hung JVM costs at most four attaches: at once, and after 2, 8 and 32 s */
#define RETRIES 3

/* False if its failure may end the recording before it begins. Then the start of the session reports it. */
static bool goes_on_without(const struct jvms *jvms)
{
	return jvms->options->host || jvms->is_ticking || jvms->agents.len > 1 || jvms->natives ||
	       jvms_agents_are_optional(jvms) || jvms_have_rest(jvms);
}

/* Its Java frames are read from outside while it has no agent. */
static void read_instead(struct jvms *jvms, struct agent *agent)
{
	const char *why;

	if (agent->reader || agent->outside || jvms->of.engine->row->standalone ||
	    !sources_needs_layout(jvms, agent->origin.process))
		return;
	why = readers_start(jvms, agent->origin.process);
	if (why)
		log_debug("JVM %d: %s", agent->origin.process->pid, why);
}

/* Appends "its Java frames are read from outside, no samples of alloc, lock". */
static void add_left(const struct jvms *jvms, const struct agent *agent, struct buf *left)
{
	bool is_read = agent->outside && agent->outside->state <= AGENT_RUNNING;
	const char *before = ", no samples of ";

	buf_add_str(left, is_read ? "its Java frames are read from outside" : "native frames only");
	for (size_t i = 0; !agent->reader && i < jvms->options->events.len; i++) {
		const struct event *event = jvms->options->events.items[i].event;

		if (event_has_ticks(event) || !sources_is_agent(jvms, agent->origin.process, event))
			continue;
		buf_printf(left, "%s%s", before, event->name);
		before = ", ";
	}
}

static uint64_t plan_retry(struct agent *agent)
{
	struct jvm_process *process = jvm_process(agent->origin.process);
	uint64_t delay_s = FIRST_RETRY_S;

	for (uint32_t i = 0; i < process->attach_failures; i++)
		delay_s *= RETRY_GROWTH;
	process->attach_failures++;
	agent->retry_ns = clock_monotonic_ns() + delay_s * NS_PER_SEC;
	return delay_s;
}

/* Warns only at the first failure, and when it gives up: the user can do nothing in between. */
static void on_failed_agent(struct jvms *jvms, struct agent *agent)
{
	bool is_reported = jvm_process(agent->origin.process)->attach_failures;
	struct buf left = BUF_INIT;

	read_instead(jvms, agent);
	add_left(jvms, agent, &left);
	if (agent_may_try_again(agent) && jvm_process(agent->origin.process)->attach_failures < RETRIES)
		log_print(is_reported ? LOG_DEBUG : LOG_WARN, "%s: %s, trying again in %d s", agent->why, left.data,
			  (int)plan_retry(agent));
	else
		log_warn("%s: %s", agent->why, left.data);
	buf_release(&left);
}

void failures_note(struct jvms *jvms, struct agent *agent)
{
	bool is_ended = agent->error == -ESRCH, is_current = jvm_process(agent->origin.process)->agent == agent;

	if (!agent->reader && !goes_on_without(jvms))
		return;
	if (process_is_ending(agent->origin.process)) { /* else it executes another program, which is no JVM */
		loader_counters[DUET_LOADER_JVMS_ENDED] += is_current;
		is_ended = true;
	}
	if (is_ended || !is_current)
		log_debug("%s", agent->why);
	else if (agent->reader && jvms->options->agent == AGENT_NEEDED && agent->error != -READER_FOREIGN)
		readers_give_way(jvms, agent);
	else if (agent->reader && agent_may_try_again(agent))
		readers_replace_later(jvms, agent);
	else
		on_failed_agent(jvms, agent);
}
