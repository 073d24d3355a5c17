/* SPDX-License-Identifier: MIT */
/*
 * How a running session reports its state: to `duet status` on an abstract socket, which only root and the user who
 * runs the session may ask; and with --metrics to Prometheus, by HTTP on the loopback interface or on a socket of mode
 * 0600. Nothing here blocks.
 *
 * It serves one page to peers on this host. No HTTP library: libmicrohttpd would add the seven libraries of its TLS.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/io.h"

#define STATUS_NAME "duet-status-" /* followed by the pid; abstract address, unix(7) */
#define STATUS_CLIENTS 32 /* a new client replaces the oldest */

struct status_client {
	int fd; /* -1 = free */
	uint64_t until_ns;
	struct buf request;
};

/* Appends the answer: for people, or in Prometheus' format. */
typedef void (*status_answer)(void *context, bool for_people, struct buf *text);

struct status {
	status_answer answer;
	void *context;
	int control_fd; /* control_fd, metrics_fd: -1 = none */
	int metrics_fd;
	struct out_path at; /* the socket of metrics_fd in the file system, to be removed; its name is NULL for none */
	struct status_client clients[STATUS_CLIENTS];
};

void status_init(struct status *status, status_answer answer, void *context);
/* `metrics`: the address of --metrics, or NULL. Returns 0, or -errno after reporting why it cannot be served. */
int status_open(struct status *status, const char *metrics);
void status_step(struct status *status, uint64_t now_ns); /* accepts and answers; never blocks */
void status_close(struct status *status);

/*
 * Appends the status text of the session with that pid. Returns 0 or -errno: -EACCES if we may not ask it, or if it
 * runs as neither root nor our user; -EAGAIN if it does not accept. Not thread-safe: counts the time that is waited.
 */
int status_ask(int pid, struct buf *ret_text);

/* ---- HTTP, as little of it as duet serves, also the recorder ---- */

/* Returns a socket that listens and does not block, or -errno. */
int http_listen(const struct sockaddr *address, socklen_t len, int backlog);
/*
 * Appends what has come of a request, which may have `max` bytes. Returns 1 if its head is whole, 0 if more may come,
 * or -errno: then there is no use in waiting for more.
 */
int http_receive(int fd, size_t max, struct buf *request);
/* Returns what follows the '/' of the address in a GET, or a POST, with its length; NULL for other requests. */
const char *http_address(const char *request, size_t *ret_len);
/*
 * Returns true for a request that a page of another site has made a browser send. With `is_local` its Host must be a
 * name of the loopback interface, else the page's own name leads here.
 */
bool http_is_of_other_site(const char *request, bool is_local);
bool http_is_local_name(const char *name, size_t length); /* of the loopback interface */
/* Appends the head of an answer whose body has so many bytes. `status`: "200 OK". */
void http_add_head(struct buf *answer, const char *status, const char *type, uint64_t bytes);
