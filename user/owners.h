/* SPDX-License-Identifier: MIT */
/* Whom samples belong to: container, pod, cgroup, executable and application of their process, rows of the profile. */
#ifndef OWNERS_H
#define OWNERS_H

#include "duet_record.h"
#include "base/opt.h"
#include "proc/containers.h"
#include "proc/process.h"
#include "profile/profile.h"

/* Which JVMs a list of the host's owner is about. */
struct owners_list {
	struct opt_strings patterns; /* of names, not owned */
	struct vec(uid_t) users; /* effective ids as the host numbers them */
};

struct owners {
	struct profile *profile;
	struct containers containers;
	bool spark_names; /* applications of Spark have those beside their main class */
};

void owners_open(struct owners *owners, struct profile *profile, bool spark_names);
void owners_release(struct owners *owners);

/*
 * The row for one sample of the process: of the cgroup where BPF saw it, so that one that moves has several. Without
 * `sample` (timer engines), or where v2 does not tell the container, where it was during the last second.
 */
uint32_t owners_row(struct owners *owners, struct process *process, const struct duet_sample *sample);
/* It is another program now. */
void owners_exec(struct process *process);
/*
 * Is this JVM on the list: its user, or one of its names: process, main class or jar, container (name, id, label),
 * cgroup? Also true of one so young that it is not known yet what it runs: it is to be asked again.
 */
bool owners_is_listed(struct owners *owners, struct process *process, const struct owners_list *list);

#endif
