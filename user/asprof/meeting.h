/* SPDX-License-Identifier: MIT */
/*
 * The socket through which a command reaches the recorder of a process. It is in a folder of the user who runs both,
 * which no other user may enter. A request is one packet, and so is its answer, which may carry a descriptor: the
 * report.
 */
#ifndef ASPROF_MEETING_H
#define ASPROF_MEETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "asprof/arguments.h"
#include "base/buf.h"

#define MEETING_MAX (128u << 10) /* bytes of a packet's text */

struct meeting_answer {
	enum asprof_code code;
	struct buf text; /* text to print, or the reason for the refusal */
	int report; /* descriptor of the report, read from its beginning; -1: none */
};

/* Returns the listening socket, or -errno with one sentence in `why`: -EADDRINUSE if the process has a recorder. */
int meeting_listen(pid_t pid, uint64_t start_ticks, struct buf *why);
void meeting_end(pid_t pid, uint64_t start_ticks); /* removes the name of the socket */
/* Returns a connection to the recorder of that process, or -errno: -ENOENT when it has none. */
int meeting_connect(pid_t pid, uint64_t start_ticks, struct buf *why);

/*
 * Sends arguments and waits for the answer. Returns 0, or -errno with one sentence in `why`. Release the answer in both
 * cases.
 */
int meeting_ask(int connection, const char *arguments, struct meeting_answer *ret, struct buf *why);
void meeting_answer_release(struct meeting_answer *answer);

/* Appends the request that has arrived. Returns 0, or -errno: -EPIPE when no more can arrive. */
int meeting_receive(int connection, struct buf *ret_arguments);
/* Returns 0 or -errno. Does not block. */
int meeting_reply(int connection, const struct meeting_answer *answer);

#endif
