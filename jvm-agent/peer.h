/* SPDX-License-Identifier: MIT */
/*
 * The other end of the control socket: who may connect, and the messages of
 * duet_agent.h. Nothing it says is trusted.
 */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "duet_agent.h"

/* A listening socket with this abstract name, or -errno. */
int peer_listen(const char *name);
/*
 * The first peer that is allowed and knows the secret, or -errno: -ETIMEDOUT, or what accept() says to a listener that
 * was shut down. The caller closes both sockets.
 */
int peer_accept(int listener, const char secret[DUET_SECRET_DIGITS], uint64_t timeout_ns);

/* 0 or -errno */
int peer_send_hello(int peer);
int peer_send_started(int peer, int error, int signo, const char *why);
int peer_send_stopped(int peer);
int peer_send_ending(int peer);

/*
 * Waits for START. 0 with the files of the ring and of the unwind tables, or -1, both owned by the caller; or -errno,
 * -EPROTO for anything malformed.
 */
int peer_receive_start(int peer, int timeout_ms, struct duet_message_start *ret_start, int ret_fds[2]);
void peer_close_fds(const int fds[2]);
/*
 * Reads the loader's next message, which must have arrived. Returns its type: DUET_MESSAGE_STOP, or DUET_MESSAGE_WANT,
 * which fills *ret_wants with at most DUET_WANTS_AT_ONCE entries. Returns -EPROTO for any other message, and when the
 * loader has closed the socket.
 */
int peer_receive(int peer, struct duet_message_want *ret_wants);

#endif
