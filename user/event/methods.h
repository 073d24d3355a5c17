/* SPDX-License-Identifier: MIT */
/* Events of Java methods, which the agent makes by instrumenting them: from what the user wrote to what START says. */
#ifndef EVENT_METHODS_H
#define EVENT_METHODS_H

#include "event/event.h"

/* Each is a make() of an event_family. event->place.name is the target as START has it. */
int event_make_method(struct event *event, const char *text, struct buf *why);
/* The same for CLASS.METHOD[(SIGNATURE)][:THRESHOLD], whose calls are timed: event->place.offset is in ns. */
int event_make_trace(struct event *event, const char *text, struct buf *why);

#endif
