/* SPDX-License-Identifier: MIT */
/* The rows of events.c. */
#ifndef EVENT_EVENTS_H
#define EVENT_EVENTS_H

#include "event/event.h"

extern const struct event event_cpu;
extern const struct event event_page_faults;
extern const struct event event_context_switches;
extern const struct event event_syscalls;
extern const struct event event_offcpu;
extern const struct event event_wall;
extern const struct event event_alloc;
extern const struct event event_live;
extern const struct event event_lock;
extern const struct event event_nativemem;
extern const struct event event_leak;
extern const struct event event_wait;

#endif
