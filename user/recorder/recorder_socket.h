/* SPDX-License-Identifier: MIT */
/*
 * The socket through which a command reaches the recorder of a process. It is in a folder of the user who runs both,
 * which no other user may enter. Only root's sockets are also open to the user of the process that is recorded. A
 * request is one packet, and so is its answer, which may carry a descriptor: the report.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "duet_recorder.h"

struct recorder_question {
	struct duet_question head; /* checked: kind is known, name is terminated */
	struct buf arguments;
	int socket; /* that came with it; -1: none */
	bool is_other; /* it comes from another user: root, or the process's own user if the recorder is root's */
};

struct recorder_answer {
	enum duet_answer_code code;
	enum duet_answer_stream stream;
	struct buf log; /* lines; empty for `asprof` */
	struct buf text; /* the reply, or why it was refused */
	int report; /* descriptor of the report, read from its beginning; -1: none */
};

#define RECORDER_ANSWER_NONE                                                                                           \
	{                                                                                                              \
		.log = {.data = buf_empty}, .text = {.data = buf_empty}, .report = -1                                  \
	}

/* Returns the listening socket, or -errno with one sentence in `why`: -EADDRINUSE if the process has a recorder. */
int recorder_listen(pid_t pid, uint64_t start_ticks, struct buf *why);
void recorder_unlink_socket(pid_t pid, uint64_t start_ticks); /* removes the name of the socket */
/* Returns a connection to the recorder of that process, or -errno: -ENOENT when it has none. */
int recorder_connect(pid_t pid, uint64_t start_ticks, struct buf *why);

/*
 * The same for a recorder that another user runs: the process's own if we are root, else root's. A user may stop his
 * recorder, so questions time out.
 */
int recorder_connect_peer(pid_t pid, uint64_t start_ticks);
/* Returns true if the user at the other end may ask us about the process. */
bool recorder_permits(int connection, pid_t pid, bool *ret_is_other);

/*
 * Sends arguments of `asprof` and waits for the answer. Returns 0, or -errno with why. Release the answer in both
 * cases.
 */
int recorder_request(int connection, enum duet_question_kind kind, const char *arguments, struct recorder_answer *ret,
		     struct buf *why);
void recorder_answer_release(struct recorder_answer *answer);

/*
 * Returns 0 and the question that has arrived, or -errno: -EPIPE when there will be no more. Release the question in
 * both cases.
 */
int recorder_receive(int connection, struct recorder_question *ret);
void recorder_question_release(struct recorder_question *question);
/* Returns 0 or -errno. Does not block. */
int recorder_reply(int connection, const struct recorder_answer *answer);
/* Hands the socket of a process's library to the recorder that the process has. Returns 0 or -errno. */
int recorder_hand_over(int connection, int socket);
