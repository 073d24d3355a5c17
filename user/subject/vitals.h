/* SPDX-License-Identifier: MIT */
/*
 * What is known of JVMs and the machine beside samples, as notes of the profile: once for each JVM its system
 * properties and how it was started, then each second the CPU time of the JVMs and of the machine, code that was
 * mapped, the heap after a collection, and how many threads there are. All is read from /proc and from the JVM's
 * performance counters: no JVM is asked.
 */
#pragma once

#include "base/map.h"
#include "proc/process.h"
#include "profile/profile.h"

#define VITALS_JVMS_MAX 64 /* JVMs that are followed */

struct vitals_jvm {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t user_ns, system_ns; /* CPU time when it was read last */
	uint64_t collections;
	uint64_t threads[4]; /* numbers of the last PROFILE_NOTE_THREADS */
	uint32_t maps_version; /* new libraries in mappings of this version were added; 0 = none */
	bool is_recorded; /* its command line is */
	bool has_properties; /* those of its counters were added */
};

struct vitals {
	struct profile *profile;
	struct vitals_jvm jvms[VITALS_JVMS_MAX];
	size_t count;
	uint64_t busy_ns, all_ns; /* CPU time of the machine when it was read last */
	uint64_t looked_ns; /* 0 = never */
	struct map libraries; /* those that were added: hash of path, place and JVM -> 1 */
};

/* Call when the recording begins. */
void vitals_open(struct vitals *vitals, struct profile *profile);
void vitals_release(struct vitals *vitals);
/* Adds a JVM, unless it is known or there are too many. Returns its state, or NULL. */
struct vitals_jvm *vitals_jvm(struct vitals *vitals, const struct process *process);
/* Adds notes of what is new about the JVM. Call once a second for each. */
void vitals_report(struct vitals *vitals, struct vitals_jvm *jvm, const struct process *process, uint64_t now_ns);
/* Adds a note about the CPU time since the last call. Call after vitals_report() of all JVMs. */
void vitals_report_load(struct vitals *vitals, uint64_t now_ns);
