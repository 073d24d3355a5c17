/* SPDX-License-Identifier: MIT */
/*
 * The probes of DUET_PROGRAM_TLAB: two functions of libjvm.so in each JVM whose allocations BPF samples. JVMs come and
 * go while the recording runs. Used inside collect/ only.
 */
#ifndef COLLECT_TLAB_PROBES_H
#define COLLECT_TLAB_PROBES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/vec.h"
#include "proc/process.h"

struct bpf_program;
struct tlab_probe;

struct tlab_probes {
	struct vec(struct tlab_probe *) list;
	bool has_started;
	bool has_given_up; /* the kernel has not set a probe in time: no other is tried, as each would be waited for */
};

/*
 * Sets the probes in a process that has libjvm.so mapped; after tlab_probes_start() they sample at once. Returns 0, or
 * -errno with one sentence appended to `why` (the cause and the way out). A process that has its probes keeps them.
 */
int tlab_probes_add(struct tlab_probes *probes, const struct process *process, const struct bpf_program *program,
		    struct buf *why);
void tlab_probes_drop(struct tlab_probes *probes, pid_t pid); /* removes those of the process, if there are any */
int tlab_probes_start(struct tlab_probes *probes, const struct bpf_program *program); /* 0 or -errno */
void tlab_probes_release(struct tlab_probes *probes); /* removes all */

#endif
