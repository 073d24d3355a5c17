/* SPDX-License-Identifier: MIT */
/*
 * Threads that sleep over an edge: the end of the recording, or of a window. Such a thread takes no sample itself
 * before the edge, so BPF lists the sleeping threads (bpf/event_offcpu_edge.bpf.c), and the loader walks them from
 * outside. A thread is walked once for each sleep, even if that lasts over several edges. The time that is sampled at
 * an edge is subtracted from the sample that the thread takes when it wakes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_record.h"

struct duet_bpf;
struct process_table;
struct sleepers;

/* Attaches the programs that list the threads; nothing runs yet. 0 or -errno. */
int sleepers_open(struct sleepers **ret, struct duet_bpf *bpf, uint32_t user_depth);
void sleepers_close(struct sleepers *sleepers);

/* Called for a thread. `sample` has its process, its kernel frames and its registers, and is valid during the call. */
typedef void (*sleepers_handler)(void *context, const struct duet_sample *sample);
/*
 * Passes the first thread of each process that sleeps to `handler`; in most processes it does. So the caller can
 * prepare the processes for the walk before the edge. Works for a slice: returns 1 if there is more to do, 0 or -errno.
 */
int sleepers_preview(struct sleepers *sleepers, sleepers_handler handler, void *context);
/*
 * Walks the threads that sleep now, except those that were walked in this sleep. Users take turns, and pay. Works for a
 * slice: returns 1 if there is more to do, 0 or -errno. sleepers_stop_walk() leaves it at that.
 */
int sleepers_walk(struct sleepers *sleepers, struct process_table *processes);
void sleepers_stop_walk(struct sleepers *sleepers);
/*
 * Asks BPF how long each walked thread that still sleeps has slept before `edge_ns`, CLOCK_MONOTONIC, since the edge
 * before that or since it left its CPU. Sleep after the edge is sampled at the next edge, or when the thread wakes.
 * Call sleepers_walk() just before. Returns 0 or -errno.
 */
int sleepers_ask(struct sleepers *sleepers, uint64_t edge_ns);
/* Passes the samples of the last sleepers_ask(), of just before the edge. Works for a slice: true if there are more. */
bool sleepers_pass(struct sleepers *sleepers, sleepers_handler handler, void *context);
size_t sleepers_stop_pass(struct sleepers *sleepers); /* drops the others, and returns how many */
