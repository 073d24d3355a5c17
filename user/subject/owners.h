/* SPDX-License-Identifier: MIT */
/*
 * The owner of a sample: container, pod, cgroup, executable and application of its process. Owners are rows of the
 * profile.
 */
#ifndef SUBJECT_OWNERS_H
#define SUBJECT_OWNERS_H

#include "duet_record.h"
#include "base/opt.h"
#include "proc/containers.h"
#include "proc/process.h"
#include "profile/profile.h"

/* Names and users of JVMs, as the configuration lists them. */
struct owners_list {
	struct opt_strings patterns; /* patterns for names; not owned */
	struct vec(uid_t) users; /* effective user ids as the host numbers them */
};

struct owners {
	struct profile *profile;
	struct containers containers;
	bool spark_names; /* add the Spark name to the main class of a Spark application */
};

void owners_open(struct owners *owners, struct profile *profile, bool spark_names);
void owners_release(struct owners *owners);

/*
 * Returns the owner's row for one sample of the process. The cgroup is the one that BPF recorded, so a process that
 * moves has several rows. Without `sample` (timer engines), or where cgroup v2 does not identify the container, the row
 * is by the cgroup that /proc showed at most a second ago.
 */
uint32_t owners_row(struct owners *owners, struct process *process, const struct duet_sample *sample);
/* Call after an exec: the process runs another program. */
void owners_exec(struct process *process);
/*
 * Returns true if the list names the JVM: by its user, process name, main class or jar, container (name, id, label) or
 * cgroup. Also returns true while the JVM is too young to know what it runs: ask again later.
 */
bool owners_is_listed(struct owners *owners, struct process *process, const struct owners_list *list);

#endif
