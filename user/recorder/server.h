/* SPDX-License-Identifier: MIT */
/*
 * Commands by HTTP, as async-profiler's server= has them: GET /start?event=cpu&interval=1ms executes
 * "start,event=cpu,interval=1ms", and the answer's body is the reply or the report. The recorder serves, so nothing is
 * added to the process that is recorded. Whoever reaches the address may send commands, but no names of files. It
 * serves a few words to tools like curl. No HTTP library: see status/status.h.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "recorder/recorder_socket.h"

/* Executes a command, and fills *answer, which is initialized empty. */
typedef void (*server_execute)(void *context, const char *command, struct recorder_answer *answer);

#define SERVER_CLIENTS 8 /* a new client replaces the oldest one */

struct server_client {
	int fd; /* -1 = free */
	uint64_t until_ns; /* CLOCK_MONOTONIC: it has this long to send or to read */
	struct buf request;
	struct buf answer; /* with its head; empty: the request is not whole yet */
	size_t sent; /* bytes of the answer */
	int report; /* descriptor, follows the answer; -1: none */
	off_t report_sent;
	off_t report_bytes;
};

struct server {
	bool is_open;
	int listener;
	bool is_local; /* the address is one of the loopback interface */
	server_execute execute;
	void *context; /* of execute */
	struct server_client clients[SERVER_CLIENTS];
};

/*
 * Listens at "PORT" of the loopback interface, or at "HOST:PORT". `pid`: the process that is recorded, whose
 * network must be ours. Returns 0, or -errno with one sentence in `why`. *server must be zeroed or closed.
 */
int server_open(struct server *server, const char *address, pid_t pid, struct buf *why);
/* Fills in what poll() waits for; entries without use have the descriptor -1. */
void server_poll(const struct server *server, struct pollfd fds[SERVER_CLIENTS + 1]);
void server_step(struct server *server); /* takes and answers what has come; sends without blocking */
void server_close(struct server *server);
