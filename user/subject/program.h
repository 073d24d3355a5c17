/* SPDX-License-Identifier: MIT */
/*
 * What a stack belongs to. Which program a JVM runs is found from its process, its arguments and its own counters. All
 * of these are untrusted.
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"
#include "duet_record.h"
#include "event/options.h"
#include "proc/containers.h"
#include "proc/process.h"
#include "profile/profile.h"

/* Appends "17.0.15": by its counters, or as the file `release` of its JDK has it. Returns 0 or -errno. */
int program_java_version(const struct charge *charge, const struct process *process, struct buf *version);

/* The JVMs that run here, and those that run a program of some name. All they say of themselves is untrusted. */
struct running_jvm {
	const struct process *process; /* owned by the table */
	char *program; /* "shop.jar", "com.acme.Main", "module/com.acme.Main"; if unknown, the process's name */
};

struct running {
	struct process_table processes;
	struct vec(struct running_jvm) jvms; /* by pid */
};

/*
 * Finds those whose program has this name: a jar without its folders, or a class with or without its package or module;
 * NULL for all. The helper runs from this call to running_release(), which is needed in any case. Returns 0 or -errno.
 */
int running_find(struct running *ret, const char *name);
void running_release(struct running *running);
bool running_is_called(const char *program, const char *name);
const char *running_short_name(const char *program); /* a class without its package and module; a jar as it is */
/* Appends "123 (shop.jar), 124 (shop.jar)", and "and 7 more" for those above the first eight. */
void running_list(const struct running *running, struct buf *out);

/* The state of a process that belongs to subject/. The fields up to `vm` but `contexts` are interned, 0 = not known. */
struct subject {
	uint32_t service, attributes; /* as in struct profile_owner */
	uint32_t keys; /* as struct published has them */
	uint32_t contexts; /* how many different attributes of threads' contexts it has in the profile */
	uint32_t program; /* the program that a JVM runs */
	uint32_t application; /* the same as people name it, with the name that Spark has for it if possible */
	uint32_t executed_as; /* the path by which the process was started */
	uint32_t libjvm; /* the build of its JVM */
	uint32_t vm_flags; /* the VM flags set by options */
	uint32_t vm; /* name and version of the VM, as its agent reported them */
	uint32_t owner; /* row of the profile for the owner of its last sample */
	uint32_t owner_version; /* maps_version of that sample */
	uint64_t owner_cgroup; /* cgroup of that sample */
	uint64_t owner_ns; /* when it was looked up; 0: never */
	uint64_t ask_ns; /* when it may be asked for what is not known of its program */
	uint64_t pause_ns; /* after the next time that it is asked in vain */
	/* of what it publishes: where, when that was changed, and when it is looked at again */
	uint64_t published_at, published_ns, look_ns;
};
_Static_assert(sizeof(struct subject) <= PROCESS_STATE_BYTES(PROCESS_OF_SUBJECT, PROCESS_OF_JOIN), "too large");

static inline struct subject *subject_of(struct process *process)
{
	return process_state(process, PROCESS_OF_SUBJECT);
}

/* A sample's owner, a row of the profile: container, pod, cgroup, executable, application of its process. */
struct owners {
	struct profile *profile;
	struct containers containers;
	bool spark_names; /* add the Spark name to the main class of a Spark application */
	uint64_t looks_ns; /* when the next look at what a program publishes may be, but for first looks */
	struct map contexts; /* cache: hash of a thread's attributes and of what their process publishes -> string */
};

void owners_open(struct owners *owners, struct profile *profile, bool spark_names);
void owners_release(struct owners *owners);

/*
 * Returns the owner's row for one sample of the process. The cgroup is the one that BPF recorded, so a process that
 * moves has several rows. Without `sample` (timer engines), or where cgroup v2 does not identify the container, the row
 * is by the cgroup that /proc showed at most a second ago.
 */
uint32_t owners_row(struct owners *owners, struct process *process, const struct duet_sample *sample);
/*
 * Returns the interned attributes of a sample's thread, as profile/attributes.h. Looks at what the process publishes if
 * it does not know their names. 0: there are none, or they are new, and the profile `is_closed` to new texts of the
 * process, or has too many of it.
 */
uint32_t owners_context(struct owners *owners, struct process *process, const void *attributes, size_t bytes,
			bool is_closed);
/* Call while the process runs, if samples lack the cgroup: they may be decided when /proc shows none any more. */
void owners_note(struct owners *owners, struct process *process);
/* Call after an exec: the process runs another program. */
void owners_exec(struct process *process);
/* Call when the profile is exchanged: rows are no longer valid. `move` gives the strings' new ids; NULL: they stay. */
void owners_new_profile(struct process *process, struct intern_move *move);
/* Returns the container or plain cgroup that the process is in now, as /proc shows it. Never NULL. */
const struct container *owners_container(struct owners *owners, const struct process *process);
/*
 * Returns true if the list names the JVM: by its user, process name, main class or jar, container (name, id, label) or
 * cgroup. Also returns true while the JVM is too young to know what it runs: ask again later.
 */
bool owners_is_listed(struct owners *owners, struct process *process, const struct owners_list *list);
