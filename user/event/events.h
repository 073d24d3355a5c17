/* SPDX-License-Identifier: MIT */
/* The rows of events.c. */
#ifndef EVENT_EVENTS_H
#define EVENT_EVENTS_H

#include "event/event.h"

extern const struct event event_cpu;
extern const struct event event_page_faults;
extern const struct event event_context_switches;
extern const struct event event_minor_faults;
extern const struct event event_major_faults;
extern const struct event event_cpu_migrations;
extern const struct event event_alignment_faults;
extern const struct event event_emulation_faults;
extern const struct event event_cycles;
extern const struct event event_instructions;
extern const struct event event_cache_references;
extern const struct event event_cache_misses;
extern const struct event event_branch_instructions;
extern const struct event event_branch_misses;
extern const struct event event_bus_cycles;
extern const struct event event_stalled_frontend;
extern const struct event event_stalled_backend;
extern const struct event event_ref_cycles;
extern const struct event event_syscalls;
extern const struct event event_offcpu;
extern const struct event event_wall;
extern const struct event event_wakeup;
extern const struct event event_holders; /* of no list that a user gives */
extern const struct event event_io;
extern const struct event event_io_bytes;
extern const struct event event_rss;
extern const struct event event_mmap;
extern const struct event event_alloc;
extern const struct event event_tlab; /* of event_alloc's samples; not in the table */
extern const struct event event_live;
extern const struct event event_lock;
extern const struct event event_nativemem;
extern const struct event event_leak;
extern const struct event event_free;
extern const struct event event_nativelock;
extern const struct event event_wait;
extern const struct event event_exceptions;
extern const struct event event_gc;
extern const struct event event_safepoint;
extern const struct event event_class_load;
extern const struct event event_compilation;
extern const struct event event_span;
extern const struct event event_user;

#endif
