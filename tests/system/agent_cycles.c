/* SPDX-License-Identifier: MIT */
/*
 * agent_cycles PID EVENTS CYCLES [MS]: attaches the agent, starts it for these events, stops it MS later, that often,
 * with the loader's own code. Says "ok", or why not. For tests/system/attach_leaks.sh.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/intern.h"
#include "event/event.h"
#include "jvms/agents.h"

#define SAMPLE_LANE_BYTES (1u << 20)
#define METADATA_LANE_BYTES (1u << 20)
#define TABLES_BYTES (8u << 20)
#define TRIES 5 /* a busy machine may take longer to attach than the loader waits; a JVM that hangs does not recover */

static int list_events(const char *text, struct agent_start *start)
{
	struct event_list list = {0};
	struct buf why;

	buf_init(&why);
	if (event_list_parse(&list, text, &why)) {
		printf("%s\n", why.data);
		return -1;
	}
	for (uint32_t i = 0; i < list.len; i++) {
		const struct event *event = list.items[i].event;
		struct duet_agent_event *to = &start->events[i];

		*to = (struct duet_agent_event){.interval = list.items[i].interval, .kind = event->agent, .index = i};
		if (event_has_ticks(event))
			start->engine = DUET_ENGINE_CTIMER;
		if (event_has_ticks(event) || !event->place.name)
			continue;
		snprintf(to->target, sizeof(to->target), "%s", event->place.name);
		to->threshold_ns = event->place.offset;
	}
	start->event_count = (uint32_t)list.len;
	buf_release(&why);
	return 0;
}

static void ignore(void *context, uint16_t type, const void *payload, uint32_t size)
{
	(void)context, (void)type, (void)payload, (void)size;
}

static void serve(struct agent *agent, int timeout_ms)
{
	struct pollfd fd = {.fd = agent_fd(agent), .events = POLLIN};

	if (poll(&fd, 1, timeout_ms) > 0)
		agent_step(agent);
	else
		agent_expire(agent, clock_monotonic_ns());
	agent_read(agent, ignore, NULL);
}

static bool cycle(struct process *process, struct intern *strings, const struct agent_start *start, uint64_t ms)
{
	struct attach_control control;
	struct agent *agent = NULL;
	uint64_t end_ns;
	bool done;

	if (!attach_control_new(&control, process->pid))
		agent = agent_new(process, strings, start, ATTACH_RUNNING, "of the test", &control);
	if (!agent)
		return false;
	while (agent->state < AGENT_RUNNING)
		serve(agent, 100);
	end_ns = clock_monotonic_ns() + ms * NS_PER_MS;
	while (agent->state == AGENT_RUNNING && clock_monotonic_ns() < end_ns)
		serve(agent, 1);
	if (agent->state == AGENT_RUNNING && agent->refused)
		printf("%s\n", agent->refused_why);
	done = agent->state == AGENT_RUNNING && !agent->refused;
	agent_stop(agent);
	while (agent->state == AGENT_STOPPING)
		serve(agent, 100);
	done = done && agent->state == AGENT_GONE;
	if (!done)
		printf("%s\n", agent->why);
	agent_free(agent);
	return done;
}

int main(int argc, char **argv)
{
	struct agent_start start = {
		.engine = DUET_ENGINE_NONE,
		.java_depth = DUET_JAVA_DEPTH,
		.sample_lane_bytes = SAMPLE_LANE_BYTES,
		.metadata_lane_bytes = METADATA_LANE_BYTES,
		.tables_bytes = TABLES_BYTES,
	};
	struct process_table table;
	struct process *process;
	struct intern strings;
	bool done = false;
	uint64_t ms = argc > 4 ? strtoull(argv[4], NULL, 10) : 5;

	if (argc < 4 || list_events(argv[2], &start))
		return 2;
	process_table_init(&table);
	intern_init(&strings);
	process = process_get(&table, atoi(argv[1]), 0);
	for (int i = 0, tries = 0; process && tries <= TRIES && i < atoi(argv[3]); tries++) {
		if (cycle(process, &strings, &start, ms))
			i++, tries = -1;
		done = i == atoi(argv[3]);
	}
	if (done)
		printf("ok\n");
	process_table_release(&table);
	intern_release(&strings);
	return !done;
}
