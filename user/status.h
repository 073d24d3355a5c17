/* SPDX-License-Identifier: MIT */
/*
 * Where a running session answers: `duet status` on an abstract socket, which only root and who runs it may ask, and
 * with --metrics Prometheus over HTTP on the loopback interface or a socket of mode 0600. Nothing here blocks.
 *
 * One page for a peer on this host: a library for it (libmicrohttpd) would bring TLS's seven along.
 */
#ifndef STATUS_H
#define STATUS_H

#include <stdint.h>

#include "base/buf.h"

#define STATUS_NAME "duet-status-" /* and the pid; abstract, unix(7) */
#define STATUS_CLIENTS 32 /* the oldest makes room for the newest */
#define STATUS_REQUEST_BYTES 4096

struct session;

struct status_client {
	int fd; /* -1 = free */
	uint64_t until_ns;
	size_t len;
	char request[STATUS_REQUEST_BYTES];
};

struct status {
	int control_fd; /* these two: -1 = none */
	int metrics_fd;
	char *path; /* of a socket in the file system, to be removed; NULL = none */
	struct status_client clients[STATUS_CLIENTS];
};

void status_init(struct session *session);
/* 0, or -errno after the user has been told why --metrics cannot be served. */
int status_open(struct session *session);
void status_step(struct session *session, uint64_t now_ns);
void status_close(struct session *session);

/* What the session of `pid` says of itself. 0 or -errno, -EACCES when it is not ours to ask, or nobody's we trust. */
int status_ask(int pid, struct buf *ret_text);

#endif
