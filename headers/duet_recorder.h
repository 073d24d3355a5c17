/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The questions to the recorder of a process (user/recorder/recorder.h), and its answers. One question is one packet of
 * a SOCK_SEQPACKET socket, and so is its answer.
 *
 *   client -> question   struct duet_question, then the arguments: text without NUL
 *   recorder -> answer   struct duet_answer, then text; a report comes as a descriptor (SCM_RIGHTS)
 *
 * Clients are `asprof` and the library in the process itself, when a program or the JVM's command line drives it. The
 * library starts the recorder with one end of a socket pair. The recorder then first sends an answer whose text is its
 * version.
 */
#pragma once

#include "duet_agent.h"

#define DUET_RECORDER_WORD "--recorder" /* duet asprof --recorder FD: how the library starts it */
#define DUET_RECORDER_TEXT_MAX (128u << 10) /* bytes of text in a packet */

enum duet_question_kind {
	DUET_QUESTION_COMMAND, /* of `asprof`, which writes the file of a report itself */
	DUET_QUESTION_AGENT,   /* arguments of an agent; messages go to the log that the arguments name */
	DUET_QUESTION_API,     /* arguments from a program; the answer is for its caller */
	DUET_QUESTION_SAMPLES, /* the answer's text is the number of samples; no arguments */
	/* the process is about to end: stop, and write the file that was named at the start; no arguments */
	DUET_QUESTION_EXIT,
	/* comes with a socket of the process's library, which is a client from now on; without one: may it come? */
	DUET_QUESTION_ADOPT,
	/* the arguments may be sent as a command soon: what can be done before is done; the answer is empty */
	DUET_QUESTION_PREPARE,
	/*
	 * like COMMAND, of a recorder of the same process that another user runs: for root's, the process's own user;
	 * for that user's, root. Only commands about a recording that runs, which name no file.
	 */
	DUET_QUESTION_SHARED,
	DUET_QUESTION_CHOOSE, /* arguments "+TID" or "-TID": the program adds a thread to its filter, or removes it */
	DUET_QUESTION_KIND_MAX
};

struct duet_question {
	uint32_t kind; /* enum duet_question_kind */
	uint32_t reserved; /* 0 */
	/* where the agent in the process listens, see duet_agent.h; "": there is no agent */
	char name[DUET_NAME_MAX + 1];
	char secret[DUET_SECRET_DIGITS]; /* not a string */
};
DUET_ASSERT_SIZE(struct duet_question, 8 + DUET_NAME_MAX + 1 + DUET_SECRET_DIGITS);

/* The first three are exit codes of `asprof`, and results of Agent_OnAttach. */
enum duet_answer_code {
	DUET_ANSWER_DONE = 0,
	DUET_ANSWER_NOT_UNDERSTOOD = 100, /* the arguments */
	DUET_ANSWER_REFUSED = 200, /* the command was refused, or failed */
	DUET_ANSWER_NO_FILE = 201, /* the file of the report cannot be written; the recording continues */
};

enum duet_answer_stream { /* Stream of the client's process for the log. */
	DUET_ANSWER_NOWHERE,
	DUET_ANSWER_STDOUT,
	DUET_ANSWER_STDERR,
};

struct duet_answer {
	uint32_t code; /* enum duet_answer_code */
	uint32_t stream; /* enum duet_answer_stream */
	/* bytes of the text that are lines for the log; the rest is the reply, or the reason for a refusal */
	uint32_t log_bytes;
	uint32_t is_private; /* the recording tells of processes of all users: a file of it is for root alone */
};
DUET_ASSERT_SIZE(struct duet_answer, 16);
