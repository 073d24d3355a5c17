/* SPDX-License-Identifier: MIT */
/* What an agent sends on the control socket: packets {length, bytes}, through the handshake and beyond. */
#include <sys/socket.h>

#include "fuzz.h"
#include "jvms/agents.h"

static void settle(struct agent *agent)
{
	/* BPF acts on it, so it must be a signal that a profiler may take, with a handler. */
	FUZZ_CHECK(agent->state != AGENT_RUNNING || (agent->signo >= 34 && agent->signo <= 64 && agent->handler > 1));
	FUZZ_CHECK(agent->state != AGENT_FAILED || (agent->why[0] && agent->socket < 0));
	FUZZ_CHECK(memchr(agent->vm, '\0', sizeof(agent->vm)) && memchr(agent->why, '\0', sizeof(agent->why)));
}

static void hear(struct agent *agent, int peer, struct input *input)
{
	size_t len = input_number(input, 2) % 600;
	void *packet = input_block(input, len);

	if (agent->socket >= 0 && send(peer, packet, len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		agent_step(agent);
	free(packet);
	settle(agent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct process process = {.pid = 1};
	struct intern strings;
	struct agent *agent = calloc(1, sizeof(*agent));
	int pair[2];

	FUZZ_CHECK(agent && !intern_init(&strings) && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	*agent = (struct agent){
		.origin.process = process_ref(&process),
		.jvm = jvm_new(&strings),
		.start = {.engine = DUET_ENGINE_BPF, .java_depth = 100, .sample_lane_bytes = 65536},
		.state = AGENT_GREETING,
		.socket = pair[0],
	};
	while (input.left) {
		hear(agent, pair[1], &input);
		if (agent->state == AGENT_RUNNING && input_number(&input, 1) == 's')
			agent_stop(agent);
	}
	agent_free(agent);
	close(pair[1]);
	intern_release(&strings);
	return 0;
}
