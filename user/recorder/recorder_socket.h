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
#include "recorder/arguments.h"

struct recorder_question {
	struct duet_question head; /* checked: kind is known, name is terminated */
	struct buf arguments;
	int socket; /* that came with it; -1: none */
	bool is_other; /* it comes from another user: root, or the process's own user if the recorder is root's */
	bool is_of_server; /* from whoever reaches the port of server= */
};

struct recorder_answer {
	enum duet_answer_code code;
	enum duet_answer_stream stream;
	struct buf log; /* lines; empty for `asprof` */
	struct buf text; /* the reply, or why it was refused */
	int report; /* descriptor of the report, read from its beginning; -1: none */
	bool is_private; /* the recording has what processes of all users use, and files of it are root's alone */
};

#define RECORDER_ANSWER_NONE {.log = BUF_NONE, .text = BUF_NONE, .report = -1}

/* Returns the listening socket, or -errno with one sentence in `why`: -EADDRINUSE if the process has a recorder. */
int recorder_listen(pid_t pid, uint64_t start_ticks, struct buf *why);
void recorder_unlink_socket(pid_t pid, uint64_t start_ticks); /* removes the name of the socket */
/* Removes what recorders have left that were killed. Waits for none: one may be stopped. */
void recorder_sweep_sockets(void);
/* Returns a connection to the recorder of that process, or -errno: -ENOENT when it has none. */
int recorder_connect(pid_t pid, uint64_t start_ticks, struct buf *why);

/* Returns true if the user at the other end may ask us about the process. */
bool recorder_permits(int connection, pid_t pid, bool *ret_is_other);

/*
 * Sends arguments of `asprof` and waits for the answer. Returns 0, or -errno with why. Release the answer in both
 * cases.
 */
int recorder_request(int connection, const char *arguments, struct recorder_answer *ret, struct buf *why);
void recorder_answer_release(struct recorder_answer *answer);

/*
 * Returns 0 and the question that has arrived, or -errno: -EPIPE when there will be no more. Release the question in
 * both cases.
 */
int recorder_receive(int connection, struct recorder_question *ret);
void recorder_question_release(struct recorder_question *question);
/* Returns 0 or -errno. Does not block. */
int recorder_reply(int connection, const struct recorder_answer *answer);
/* Hands the socket of a process's library to its recorder. Returns 0 or -errno: -EBUSY if that has a library. */
int recorder_hand_over(int connection, int socket);

/*
 * Root and the user of a process may both have a recorder of it, because only root's may use BPF for it. There is one
 * recording at a time: what runs in one recorder is seen, dumped and stopped by commands to the other one. Root trusts
 * no report of the other's: it gets the recording in the format duet, with the samples and stacks of the report that
 * was requested, and makes the report of it (recording_report_of()).
 */

/* Returns a connection to the other user's recorder, if a recording runs there; else -errno. */
int peer_recorder_find(pid_t pid, uint64_t start_ticks);
/*
 * Sends the command to that recorder. The answer is checked: the other user may send anything. Returns 0, or -errno
 * with one sentence in `why`. Release the answer in both cases. `words` are the command's own; those about files and
 * logs are left out, as the other recorder writes none for us.
 */
int peer_recorder_request(int connection, const struct asprof_arguments *arguments, const char *words,
			  struct recorder_answer *ret, struct buf *why);
/* The same, but an error is an answer, too. Adds to *answer, which is initialized. */
void peer_recorder_answer(int connection, const struct asprof_arguments *arguments, const char *words,
			  struct recorder_answer *answer);
/* Returns true if the command may come from another user. */
bool peer_recorder_may_request(const struct asprof_arguments *arguments);
