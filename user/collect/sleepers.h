/* SPDX-License-Identifier: MIT */
/*
 * Threads that sleep over an edge: the end of the recording, or of a window. Such a thread takes no sample itself
 * before the edge, so BPF lists the threads that sleep (bpf/event_offcpu_edge.bpf.c), and the loader walks them from
 * outside. A thread is walked once for each sleep, over however many edges it sleeps. What is told at an edge is
 * subtracted from the sample that the thread takes when it wakes.
 */
#ifndef COLLECT_SLEEPERS_H
#define COLLECT_SLEEPERS_H

#include <stdint.h>

#include "duet_record.h"

struct duet_bpf;
struct sleepers;

/* Attaches the programs that list the threads; nothing runs yet. 0 or -errno. */
int sleepers_open(struct sleepers **ret, struct duet_bpf *bpf, uint32_t user_depth);
void sleepers_close(struct sleepers *sleepers);

/* Called for a thread; `sample` has its process, its kernel frames and its registers, and lives during the call. */
typedef void (*sleepers_handler)(void *context, const struct duet_sample *sample);
/*
 * Shows the first thread of each process, if it sleeps, as in most processes it does. So what the walk needs to know of
 * the processes can be prepared before the edge. 0 or -errno.
 */
int sleepers_preview(struct sleepers *sleepers, sleepers_handler handler, void *context);
/* Walks the threads that sleep now, except those that were walked in this sleep. 0 or -errno. */
int sleepers_walk(struct sleepers *sleepers);
/*
 * Finds out what each walked thread that still sleeps has slept before `edge_ns`, CLOCK_MONOTONIC, since the edge
 * before or since it left its CPU. What it sleeps after the edge is told at the next edge, or when it wakes. Call
 * sleepers_walk() just before. 0 or -errno.
 */
int sleepers_tell(struct sleepers *sleepers, uint64_t edge_ns);
/* Passes the samples of what was told last. Their time is just before the edge. It takes longer than all the rest. */
void sleepers_pass(struct sleepers *sleepers, sleepers_handler handler, void *context);

#endif
