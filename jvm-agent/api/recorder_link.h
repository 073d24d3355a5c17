/* SPDX-License-Identifier: MIT */
/*
 * The connection to the recorder of this process, which is hired when there is something to ask. All threads may ask;
 * one question is under way at a time.
 */
#ifndef API_RECORDER_LINK_H
#define API_RECORDER_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "duet_recorder.h"

struct link_answer {
	struct duet_answer head;
	char *text; /* head.log_bytes of log, then the reply; terminated; owned */
	size_t bytes;
	int report; /* descriptor, or -1; owned */
};

/*
 * Asks, and hires a recorder if there is none. `text`: the arguments. Fills *ret in any case; release it. What went
 * wrong here is an answer too: its code is DUET_ANSWER_REFUSED.
 */
void link_ask(const struct duet_question *question, const char *text, struct link_answer *ret);
/* The same, but does nothing if no recorder was ever asked. Waits for wait_ms at most. */
void link_ask_if_hired(const struct duet_question *question, int wait_ms);
const char *link_reply(const struct link_answer *answer); /* the text after the log */
void link_answer_release(struct link_answer *answer);

#endif
