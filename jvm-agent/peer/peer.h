/* SPDX-License-Identifier: MIT */
/* The peer at the control socket's other end: who may connect, and duet_agent.h's messages. Nothing is trusted. */
#pragma once

#include <sys/socket.h>

#include "duet_agent.h"

struct stay;

/* Returns a listening socket with this abstract name, or -errno. */
int peer_listen(const char *name);
/* Waits for the first allowed peer with the secret. Returns its socket, or -ETIMEDOUT, or accept()'s -errno. */
int peer_accept(int listener, const char secret[DUET_SECRET_DIGITS], uint64_t timeout_ns);

/* The answer to START. */
struct peer_started {
	int error; /* 0 or -errno */
	const char *why; /* the reason for `error`, or for an engine that was not asked for; else "" */
	const struct stay *stay; /* this and the next two are not used after an error */
	uintptr_t handler; /* of the loader's signal */
	uint64_t lock_waiters; /* lock_waiters_address() */
	uint32_t refused; /* bit i: events[i] of START will have no samples */
	const char *refused_why; /* the reason for `refused`, else "" */
};

/* Return 0 or -errno. */
int peer_send_hello(int peer);
int peer_send_started(int peer, const struct peer_started *from);
int peer_send(int peer, enum duet_message_type type); /* a message that is a head only */
/* MAPPED or HALF, from any thread. Does not wait: a message that does not fit is lost. Async-signal-safe. */
void peer_send_note(int peer, enum duet_message_type type);

#define PEER_FDS 3
/*
 * Waits for START, at most timeout_ms. Returns 0 and in ret_fds the files of the ring and of the unwind tables, and
 * BPF's array of DUET_NEWEST_SHARED (-1: none), which the caller owns. Returns -errno on failure, -EPROTO for anything
 * malformed.
 */
int peer_receive_start(int peer, int timeout_ms, struct duet_message_start *ret_start, int ret_fds[PEER_FDS]);
/* Returns the event that a standalone engine ticks for, the clock if there is one, or NULL. */
const struct duet_agent_event *peer_find_ticks(const struct duet_message_start *start);
void peer_close_fds(const int fds[PEER_FDS]);
/* A message of the loader after START. */
union peer_message {
	struct duet_message head;
	struct duet_message_finish finish;
	struct duet_message_want want;
};
/*
 * Reads the loader's next message, which must have arrived. Returns its type: DUET_MESSAGE_STOP, DUET_MESSAGE_FINISH,
 * DUET_MESSAGE_FLUSH, or DUET_MESSAGE_WANT with at most DUET_WANTS_AT_ONCE entries; or -EPROTO, also at the end.
 */
int peer_receive(int peer, union peer_message *ret);

/* Bytes of msg_control for descriptors (SCM_RIGHTS): no more arrive. Fewer do not help: the kernel rounds up. */
#define PASSED_MAX 4
union passed {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(PASSED_MAX * sizeof(int))];
};

/* Stores the first `count` descriptors, which the caller owns, and -1 for missing ones. Closes all others. */
void passed_take(struct msghdr *message, int *ret_fds, int count);
