/* SPDX-License-Identifier: MIT */
/* The loader's requests to an agent: none is lost, and none is sent without need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "jvms/agents.h"

#define SECOND 1000000000ull

static struct agent agent;
static int peer;

static int open_pair(void **state)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	agent = (struct agent){.state = AGENT_RUNNING, .socket = pair[0]};
	peer = pair[1];
	return 0;
}

static int close_pair(void **state)
{
	map_release(&agent.asked);
	close(agent.socket);
	close(peer);
	return 0;
}

static bool want(uint64_t key, uint64_t now_ns)
{
	return agent_want(&agent, &(struct duet_want){.key = key, .kind = DUET_WANT_METHOD}, now_ns);
}

/* Wants that have arrived; `keys` counts each. */
static uint32_t receive(uint32_t *keys, size_t count)
{
	struct duet_message_want message;
	uint32_t got = 0;

	while (recv(peer, &message, sizeof(message), MSG_DONTWAIT) == sizeof(message)) {
		assert_int_equal(message.head.type, DUET_MESSAGE_WANT);
		for (uint32_t i = 0; i < message.count; i++)
			if (message.wants[i].key < count)
				keys[message.wants[i].key]++;
		got += message.count;
	}
	return got;
}

static void test_asked_once(void **state)
{
	uint32_t keys[4] = {0};

	assert_true(want(1, SECOND));
	assert_true(want(2, SECOND));
	assert_false(want(1, SECOND + 1000));
	agent_ask(&agent);
	assert_int_equal(receive(keys, 4), 2);
	agent_ask(&agent);
	assert_int_equal(receive(keys, 4), 0);
}

/* The answer arrived and was dropped since, or had no room. */
static void test_asked_again(void **state)
{
	uint32_t keys[4] = {0};

	assert_true(want(1, SECOND));
	assert_false(want(1, 3 * SECOND)); /* the answer is still due */
	assert_true(want(1, 7 * SECOND));
	agent.answered = 2;
	assert_false(want(1, 7 * SECOND + SECOND / 100));
	assert_true(want(1, 7 * SECOND + SECOND / 10));
	agent_ask(&agent);
	assert_int_equal(receive(keys, 4), 3);
}

/* A request that waits for its answer is not sent again, even if answers to other requests arrive meanwhile. */
static void test_slow_agent(void **state)
{
	enum { KEYS = 900 };
	uint32_t keys[KEYS + 1] = {0};
	uint64_t now_ns = SECOND;

	for (; agent.answered < KEYS; agent.answered += 2, agent.unanswered -= 2, now_ns += SECOND / 100)
		for (uint64_t key = agent.answered + 1; key <= KEYS; key++)
			want(key, now_ns);
	agent_ask(&agent);
	assert_int_equal(receive(keys, KEYS + 1), KEYS);
}

/* Samples in one compilation meet many pcs of it before its code has come. */
static void test_one_compilation_is_asked_for_once(void **state)
{
	struct duet_want code = {.key = 0x1000, .id = 7, .kind = DUET_WANT_CODE};
	uint32_t keys[1];

	assert_true(agent_want(&agent, &code, SECOND));
	code.key = 0x1010;
	code.unloads = 5;
	assert_false(agent_want(&agent, &code, SECOND));
	code.id = 8;
	assert_true(agent_want(&agent, &code, SECOND));
	code.id = 0; /* whatever is there */
	assert_true(agent_want(&agent, &code, SECOND));
	code.key = 0x1020;
	assert_true(agent_want(&agent, &code, SECOND));
	agent_ask(&agent);
	assert_int_equal(receive(keys, 0), 4);
}

/* The agent waits for room in its ring, and reads nothing from the socket in the meantime. */
static void test_full_socket(void **state)
{
	enum { KEYS = 40000 };
	uint32_t *keys = calloc(KEYS, sizeof(*keys)), got = 0;
	uint64_t now_ns = SECOND;

	assert_non_null(keys);
	for (int step = 0; step < 1000 && got < KEYS - 1; step++, now_ns += SECOND / 1000) {
		for (uint64_t key = 1; key < KEYS; key++)
			if (!keys[key])
				want(key, now_ns);
		agent_ask(&agent);
		if (step % 4 == 3) {
			uint32_t now = receive(keys, KEYS);

			got += now;
			agent.unanswered -= now;
		}
	}
	for (uint64_t key = 1; key < KEYS; key++)
		assert_int_equal(keys[key], 1);
	free(keys);
}

static void test_stop_waits_for_room(void **state)
{
	struct duet_message message[66];
	uint32_t keys[1];
	char full[1024] = {0};

	while (send(agent.socket, full, sizeof(full), MSG_DONTWAIT) > 0)
		;
	agent_stop(&agent);
	assert_int_equal(agent.state, AGENT_STOPPING);
	assert_true(agent.stop_is_unsent);
	while (recv(peer, full, sizeof(full), MSG_DONTWAIT) > 0)
		;
	agent_ask(&agent);
	assert_false(agent.stop_is_unsent);
	assert_int_equal(recv(peer, message, sizeof(message), MSG_DONTWAIT), sizeof(message[0]));
	assert_int_equal(message[0].type, DUET_MESSAGE_STOP);
	assert_int_equal(receive(keys, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_asked_once, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_asked_again, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_slow_agent, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_one_compilation_is_asked_for_once, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_full_socket, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_stop_waits_for_room, open_pair, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
