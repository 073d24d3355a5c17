/* SPDX-License-Identifier: MIT */
/*
 * What was seen: interned frames, a tree of stacks, and a timeline that keeps
 * thread, time and weight of every sample, so that any writer can be added
 * without a new field in the collector.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/frame.h"
#include "profile/timeline.h"

/* Root is node 0, without a frame. Children come after their parents. */
struct stack_node {
	uint32_t parent;
	uint32_t frame; /* index into profile.frames */
};

enum profile_unit {
	PROFILE_NS,
	PROFILE_COUNT,
};

/* What was sampled. Each sample names one of them, and weighs in its unit. */
struct profile_event {
	uint32_t name; /* interned: "cpu" */
	enum profile_unit unit;
	uint64_t interval; /* in that unit: of so much one sample, as was asked for; 0 = not known */
};

/* Whom a thread's samples belong to beside its process's name: at that time, since processes move between cgroups. */
struct profile_owner {
	uint64_t start_ticks; /* of the process, USER_HZ since boot: with the pid its identity */
	uint32_t pid;
	uint32_t ns_pid; /* as the process numbers itself */
	uint32_t executable; /* this and all below interned, 0 = not known or none */
	uint32_t executed_as; /* of a JVM, this and the four below: the path given to exec, which may be a link */
	uint32_t runtime; /* "OpenJDK 64-Bit Server VM 17.0.15+6" */
	uint32_t libjvm; /* "buildid:97da31b2…" */
	uint32_t vm_flags; /* "Name=value\n" for each that its options set, by name; "\n" when they set none */
	uint32_t application; /* "java: app.jar" */
	uint32_t cgroup; /* path in the v2 hierarchy */
	uint32_t container; /* what people call it: "namespace/pod/name", a name, a short id; else the cgroup's path */
	uint32_t container_kind; /* "docker", "kubernetes" …; 0 outside of containers */
	uint32_t container_id;
	uint32_t container_name;
	uint32_t pod;
	uint32_t pod_namespace;
	uint32_t pod_uid;
};

/*
 * Virtual threads of one name are one thread here, on whatever carriers they run: programs start them by the million,
 * and mostly without a name. These are one as well, and so are those of names behind the first PROFILE_MAX_VIRTUAL.
 * Names that differ in their numbers only are a builder's: behind the first PROFILE_MAX_NUMBERED of them all others are
 * one, with a '#' for each number.
 */
#define PROFILE_VIRTUAL UINT32_MAX /* as a tid */
#define PROFILE_MAX_NUMBERED 16
#define PROFILE_NO_NAME "[virtual threads]"
#define PROFILE_MAX_VIRTUAL 4096

struct profile_thread {
	uint32_t pid;
	uint32_t tid; /* or PROFILE_VIRTUAL */
	uint32_t name;	  /* interned */
	uint32_t process; /* interned name of the process */
	uint32_t owner; /* index into profile.owners */
};

/* One line of the closing report: how often, and what (from duet_counters.h or the loader's own words). */
struct profile_loss {
	uint64_t count;
	uint32_t text; /* interned */
};

/* How the profile was taken, for headers and footers; one "key: value" a row, in order. */
struct profile_fact {
	uint32_t key;
	uint32_t value;
};

/* The machine and the recording on it, for formats that name them. Texts are interned, 0 = not known. */
struct profile_host {
	uint32_t version; /* duet's */
	uint32_t name;
	uint32_t kernel_release;
	uint32_t kernel_version;
	uint32_t machine; /* "x86_64" */
	uint32_t os_name;
	uint32_t os_release;
	uint32_t os_codename;
	uint32_t cpu_model;
	uint32_t cpu_flags;
	uint32_t cloud; /* "aws", "gcp", "azure" */
	uint32_t cloud_region;
	uint32_t cloud_zone;
	uint32_t cloud_type; /* of the machine, as that cloud calls it */
	uint32_t processors;
	uint32_t loader; /* duet's own process id */
	uint64_t memory_bytes;
	uint64_t spawned_realtime_ns; /* when duet was started … */
	uint64_t spawned_boot_ns; /* … and CLOCK_BOOTTIME then */
	uint64_t window_ns; /* continuous recording: its windows; else 0 */
	double cpu_percent; /* busy part of all CPUs while this was recorded */
	double memory_percent; /* used part of it at the end */
};

struct profile {
	struct intern strings;
	struct vec(struct profile_event) events;
	struct vec(struct frame) frames;
	struct vec(struct stack_node) nodes;
	struct vec(struct profile_owner) owners; /* the first knows nothing */
	struct vec(struct profile_thread) threads;
	struct timeline samples;
	struct timeline later; /* those at until_ns and after it: of the windows that follow */
	uint64_t until_ns; /* 0: this profile is the only window */
	struct vec(struct profile_loss) losses;
	struct vec(struct profile_fact) facts;
	struct map frame_ids;  /* hash of a frame -> index; the same for owners and threads */
	struct map owner_ids;
	struct map node_ids;   /* parent << 32 | frame -> node */
	struct map thread_ids;
	struct map virtual_numbers; /* name with '#' << 32 | pid -> how many of such names there are */
	struct map virtual_ids; /* named virtual thread's index -> Thread.threadId(), 0 = of several */
	uint64_t start_ns;     /* CLOCK_MONOTONIC */
	uint64_t end_ns;
	uint64_t start_realtime_ns;
	size_t max_bytes; /* of profile_bytes_soon(); 0 = no limit */
	struct profile_host host; /* all 0 when nobody told */
};

int profile_init(struct profile *profile); /* 0 or -ENOMEM */
void profile_release(struct profile *profile);

/* What stacks and threads take, strings aside; and what they will, once grown for one more stack and thread. Cheap. */
size_t profile_bytes(const struct profile *profile);
size_t profile_bytes_soon(const struct profile *profile);
/*
 * No room for another stack and thread below max_bytes: then the caller adds neither, but what profile_known_thread(),
 * profile_known_stack() and a stack of one mark give.
 */
bool profile_is_full(const struct profile *profile);
/* Index of an equal frame, added when new; UINT32_MAX when out of memory. */
uint32_t profile_frame(struct profile *profile, const struct frame *frame);
uint32_t profile_known_frame(const struct profile *profile, const struct frame *frame); /* UINT32_MAX: there is none */
/* Index of an equal owner, added when new; 0, who knows nothing, when out of memory. */
uint32_t profile_owner(struct profile *profile, const struct profile_owner *owner);
/*
 * Index of the thread {pid, tid}, UINT32_MAX when out of memory; a changed name or owner
 * makes a new row, samples before it keep the old.
 */
uint32_t profile_thread(struct profile *profile, uint32_t pid, uint32_t tid, const char *name, const char *process,
			uint32_t owner);
/* The same of the virtual thread with this Thread.threadId() and name, which may be "". */
uint32_t profile_virtual_thread(struct profile *profile, uint32_t pid, uint64_t id, const char *name,
				const char *process, uint32_t owner);
/* Of the virtual thread at this index; 0 when there are several, or it is none. */
uint64_t profile_virtual_id(const struct profile *profile, uint32_t thread);
/* As profile_thread() without a new row, unless for the one that stands for all threads that are not known yet. */
uint32_t profile_known_thread(struct profile *profile, uint32_t pid, uint32_t tid, const char *name,
			      const char *process, uint32_t owner);
/*
 * The node of a stack, added when new; `frames` are indices, root first. UINT32_MAX when out of memory, also for an
 * index that was UINT32_MAX.
 */
uint32_t profile_stack(struct profile *profile, const uint32_t *frames, uint32_t depth);
/* The same where nothing is added; UINT32_MAX: there is no such stack. */
uint32_t profile_known_stack(const struct profile *profile, const uint32_t *frames, uint32_t depth);
/* Index of the event, added when there is none of this name; UINT32_MAX when out of memory. */
uint32_t profile_event(struct profile *profile, const char *name, enum profile_unit unit, uint64_t interval);
/*
 * One sample of the event of this index, with its time, thread, node and weight. 0 or -ENOMEM (no sample is added),
 * also for an index that was UINT32_MAX.
 */
int profile_add(struct profile *profile, const struct profile_sample *sample);
void profile_add_loss(struct profile *profile, uint64_t count, const char *text); /* count 0 is not recorded */
__attribute__((format(printf, 3, 4))) void profile_add_fact(struct profile *profile, const char *key,
							    const char *format, ...);

#endif
