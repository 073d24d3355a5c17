/* SPDX-License-Identifier: MIT */
/* The connection to the recorder of this process, which the first question starts. For all threads, one at a time. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "duet_recorder.h"

struct started_recorder {
	int socket; /* blocking, O_CLOEXEC */
	pid_t pid;
};

/*
 * Starts the recorder of this process, `duet`, as the same user. The executable is beside the library (in its folder,
 * or in ../bin), or inside the library. The recorder gets one end of a socket pair and the environment without
 * variables that would make it load libraries, and nothing else. Returns 0, or -errno and one sentence in `why`.
 */
int start_recorder(struct started_recorder *ret, char *why, size_t size);

struct link_answer {
	struct duet_answer head;
	char *text; /* head.log_bytes of log, then the reply; terminated; owned */
	size_t bytes;
	int report; /* descriptor, or -1; owned */
};

/* Sends a question; starts a recorder if there is none. Fills *ret in any case: an error here is an answer, too. */
void link_ask(const struct duet_question *question, const char *text, struct link_answer *ret);
/* The same, but does nothing if there was never a question. Waits for at most `wait_s` seconds. */
void link_ask_if_started(const struct duet_question *question, int wait_s, struct link_answer *ret);
const char *link_reply(const struct link_answer *answer); /* the text after the log */
/* Writes all bytes. Returns false if that fails. */
bool link_write(int fd, const void *bytes, size_t count);
/* Passes the report's bytes, if there is one. */
void link_pass_report(const struct link_answer *answer, void (*to)(const char *bytes, size_t count));
void link_answer_release(struct link_answer *answer);
