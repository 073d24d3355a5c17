/* SPDX-License-Identifier: MIT */
/*
 * Root and the user of a process may both have a recorder of it, because only root's may use BPF for it. There is one
 * recording at a time: what runs in one recorder is seen, dumped and stopped by commands to the other one.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "recorder/arguments.h"
#include "recorder/recorder_socket.h"

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
/* Returns true if the command reads from root's recording, which `begun` started, what processes of all users use. */
bool peer_recorder_shows_others(const struct asprof_arguments *arguments, const struct asprof_arguments *begun);
