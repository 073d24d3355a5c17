/* SPDX-License-Identifier: MIT */
/*
 * The names of a JVM's threads, as its agent or reader reports them. They are reported late: a thread that changes its
 * name for each request has had others since. The kernel's name, which each sample has, is of the right moment, but has
 * 15 bytes at most, and does not change when another thread renames this one.
 */
#pragma once

#include <stdint.h>

#include "base/intern.h"
#include "base/map.h"
#include "duet_agent.h"

/* Initialize with {0}. */
struct thread_names {
	struct map threads; /* tid -> struct thread_name *, owned */
	struct map ended; /* threads that have ended: tid -> when */
};

void thread_names_release(struct thread_names *names);
/* Applies a record, whose lengths were checked. Returns 0 or -ENOMEM. */
int thread_names_apply(struct thread_names *names, struct intern *strings, const struct duet_thread *record);
/* See jvm_thread_name(). */
uint32_t thread_names_find(const struct thread_names *names, const struct intern *strings, uint32_t tid,
			   uint64_t time_ns, const char *comm);
uint64_t thread_names_java_id(const struct thread_names *names, uint32_t tid); /* Thread.threadId(); 0: not known */
/* Forgets the threads that ended before time_ns. */
void thread_names_forget(struct thread_names *names, uint64_t time_ns);
void thread_names_move_strings(struct thread_names *names, struct intern_move *move);
size_t thread_names_bytes(const struct thread_names *names);
