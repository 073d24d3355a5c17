/* SPDX-License-Identifier: MIT */
/*
 * Who makes the samples of a JVM's events: BPF's ticks, BPF's probes, or its agent. Probes in HotSpot sample the
 * allocations of JVMs that cannot do so themselves, and with --tlab of all.
 */
#pragma once

#include <stdbool.h>

struct event;
struct agent;
struct jvms;
struct process;

/* Returns true if a JVM with this path of libjvm.so is older than JDK 9, and so does not sample its allocations. */
bool sources_is_old(const char *libjvm);
/* Returns true if BPF samples what the process allocates, not the agent. The process may be NULL. */
bool sources_has_probes(const struct jvms *jvms, const struct process *process);
/* Returns true if that is so for some JVM of the recording, or may be for one that is not known yet. */
bool sources_may_have_probes(const struct jvms *jvms);
/* Returns true if the agent makes the samples of the event. */
bool sources_is_agent(const struct jvms *jvms, const struct process *process, const struct event *event);
/* Returns true if that is so for an event that needs no ticks. */
bool sources_needs_agent(const struct jvms *jvms, const struct process *process);
/* Returns true if BPF or the agent's ticks walk stacks of this JVM. */
bool sources_needs_layout(const struct jvms *jvms, const struct process *process);
/*
 * Call when a JVM is read from outside or has an agent. Sets the probes if BPF samples what it allocates. Says at most
 * once for each run of an agent or reader why it cannot.
 */
void sources_probe(const struct jvms *jvms, struct process *process);

/* Reports the events for which this JVM gives no samples. */
void sources_report_refused(const struct jvms *jvms, const struct agent *agent);

/* Shows BPF which threads of the process wait for locks, if that was asked for. Called when the agent runs. */
void sources_watch_locks(struct jvms *jvms, const struct agent *agent);
