/* SPDX-License-Identifier: MIT */
/*
 * The samples of a recording: interned frames, a tree of stacks, and a timeline with the thread, time and weight of
 * every sample. So a new writer needs no new field in the collector.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/thinning.h"
#include "profile/timeline.h"

/* ---- one frame of a stack, with names, and how its text is made: frame.c ---- */

/* X(kind, name in legends). .duet files contain the numbers of these: never change them. */
/* clang-format off */
#define FRAME_KINDS(X) \
	X(FRAME_KERNEL, "kernel") \
	X(FRAME_NATIVE, "native") /* user-space code outside the JVM */ \
	X(FRAME_JVM, "JVM") /* libjvm's own code, stubs and adapters */ \
	X(FRAME_COMPILED, "compiled") /* Java, compiled */ \
	X(FRAME_INLINED, "inlined") /* Java, inlined into the compiled frame above it in root order */ \
	X(FRAME_INTERPRETED, "interpreted") /* Java, interpreter */ \
	X(FRAME_JAVA_NATIVE, "Java native") /* a Java method declared native */ \
	X(FRAME_THREAD, "thread") /* -t */ \
	X(FRAME_PROCESS, "process") \
	X(FRAME_CONTAINER, "container") /* the container, or the cgroup of a process outside of containers */ \
	X(FRAME_MARK, "mark") /* says why frames are missing: [unknown_Java], [not_signalled] */ \
	X(FRAME_CLASS, "class") /* not code: the class of the allocated object, java.lang.String[] */ \
	X(FRAME_STATE, "state") /* not code: what the thread waits for or does, [futex], [runnable] or [exiting] */ \
	X(FRAME_WAKER, "waker") /* separates the stack that waited from who ended the wait, leaf first: [woken by] */ \
	X(FRAME_CPU, "CPU") /* not code: the CPU, or a scheduling policy, as the root: [CPU-1], [SCHED_BATCH] */ \
	X(FRAME_SPAN, "span") /* not code: the tag of a span that the program reported; no name: it has none */
/* clang-format on */

#define FRAME_KIND_ENUM(kind, name) kind,
enum frame_kind { FRAME_KINDS(FRAME_KIND_ENUM) FRAME_KIND_MAX };

#define FRAME_BCI_INTERPRETED 0 /* of a native method: the interpreter has called it, not compiled code */
#define FRAME_BCI_OUTSIDE 0 /* of a class: the object was allocated outside of its thread's buffer */

/* All strings are ids in the profile's intern table; 0 = none. */
struct frame {
	enum frame_kind kind;
	uint32_t name;	     /* native: symbol. Java: method name. Thread, process, mark, class: the text */
	uint32_t class_name; /* Java: with dots, e.g. java.lang.String; else 0 */
	uint32_t signature;  /* Java: JVM method signature, e.g. (I)V; else 0 */
	uint32_t module;     /* native: file name of the library. Java: source file */
	int32_t line;	     /* Java: source line; 0 = unknown */
	int32_t bci;	     /* Java; of native code the offset in its function, in bytes; -1 = unknown */
};

/* How names are written. The options are async-profiler's. */
struct frame_style {
	bool simple;	 /* -s: String.length instead of java.lang.String.length */
	bool signatures; /* -g: java.lang.String.charAt(I)C */
	bool annotate;	 /* -a: suffixes _[j] compiled, _[i] inlined, _[0] interpreted, _[k] kernel */
	bool libraries;	 /* -l: library names before native frames: libc.so.6`read */
	bool lines;	 /* class.method:line */
	bool bci;	 /* class.method@index of the bytecode, for frames without a line */
	bool dotted;	 /* --dot: java.lang.String instead of java/lang/String; text and HTML use dots always */
	bool steady;	 /* without numbers that differ from run to run: Main$$Lambda, [main] instead of [main tid=7] */
};

/*
 * Appends the frame's name, or "[unknown]" when it has none. The text is valid UTF-8 without control characters, and
 * has '|' for ';', so that a frame is one token of one line.
 */
void frame_name(const struct intern *strings, const struct frame *frame, const struct frame_style *style,
		struct buf *out);
/*
 * Returns the suffix for how the code ran: "_[j]", "_[k]" …, or "" if the style has none. Kernel frames always have
 * one. Classes have one unless names are dotted: that of inlined code, as async-profiler writes it.
 */
const char *frame_suffix(const struct frame *frame, const struct frame_style *style);
/* Cuts the id out of the name of a thread or process that begins at `start`: [main tid=7] becomes [main]. */
void frame_cut_id(struct buf *text, size_t start);
const char *frame_kind_name(enum frame_kind kind); /* "kernel", "native", "JVM", … for legends */
bool frame_kind_is_java(enum frame_kind kind);
/*
 * True for the name of the JVM's functions that compile a method. A Java frame above one is that method, which does not
 * run there.
 */
bool frame_name_compiles(const char *name);

/* Root is node 0, without a frame. Children come after their parents. */
struct stack_node {
	uint32_t parent;
	uint32_t frame; /* index into profile.frames */
};

/* .duet files contain these numbers, and those of enum profile_processes: never change them. */
enum profile_unit {
	PROFILE_NS,
	PROFILE_COUNT,
	PROFILE_BYTES,
	PROFILE_UNIT_MAX
};
extern const char *const profile_units[PROFILE_UNIT_MAX]; /* "ns", "count" and "bytes", as files have them */

/* An event that was sampled. Each sample belongs to one, and its weight is in that event's unit. */
struct profile_event {
	uint32_t name; /* interned: "cpu" */
	enum profile_unit unit;
	uint64_t interval; /* in that unit, as the user gave it, for one sample; 0 = not known */
};

/*
 * Bounds, for profiles that others have made: a name is written for each frame that has it, an event is searched for
 * with each sample, and each fact and loss is shown to people.
 */
#define PROFILE_TEXT_MAX 8192 /* bytes of a string; a longer one is cut */
#define PROFILE_NAME_MAX 255 /* the same of the name of an event, thread or process: formats repeat these */
#define PROFILE_COUNT_MAX (1ull << 53) /* of all samples: the flame graph's page counts in doubles */
#define PROFILE_WEIGHT_MAX ((uint64_t)INT64_MAX) /* of all samples: some formats have signed numbers */
#define PROFILE_EVENTS_MAX 1024
#define PROFILE_FACTS_MAX 4096 /* and losses; more are dropped */

/* The owner of a thread's samples at the time of the sample: a process can move to another cgroup. */
struct profile_owner {
	uint64_t start_ticks; /* start of the process in USER_HZ since boot; identifies it, with the pid */
	uint32_t pid;
	uint32_t ns_pid; /* in the process's own pid namespace */
	uint32_t executable; /* this and all below are interned, 0 = not known or none */
	uint32_t executed_as; /* JVMs only, like the next four: the path given to exec, which may be a link */
	uint32_t runtime; /* "OpenJDK 64-Bit Server VM 17.0.15+6" */
	uint32_t libjvm; /* "buildid:97da31b2…" */
	uint32_t vm_flags; /* "Name=value\n" for each flag that options set, sorted; "\n" when none is set */
	uint32_t application; /* "java: app.jar" */
	uint32_t cgroup; /* path in the v2 hierarchy */
	uint32_t container; /* for display: "namespace/pod/name", a name or a short id; else the cgroup's path */
	uint32_t container_kind; /* "docker", "kubernetes" …; 0 outside of containers */
	uint32_t container_id;
	uint32_t container_name;
	uint32_t pod;
	uint32_t pod_namespace;
	uint32_t pod_uid;
	uint32_t service; /* the name that the program publishes of itself: "shop" */
	uint32_t attributes; /* all that it publishes, as attributes.h */
};

/*
 * Virtual threads. Programs start them by the million, mostly without a name, so several share one row here, whatever
 * carriers they run on:
 * - all of the same name;
 * - all without a name, and all whose name is new after PROFILE_MAX_VIRTUAL names;
 * - names that differ only in their numbers, as a thread builder makes them: each of the first PROFILE_MAX_NUMBERED has
 *   its own row, all others share one, with a '#' for each number.
 */
#define PROFILE_VIRTUAL UINT32_MAX /* the tid of each virtual thread */
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

/* One line of the closing report: a count, and its text from duet_counters.h or from the loader. */
struct profile_loss {
	uint64_t count;
	uint32_t text; /* interned */
};

/* How the profile was taken, for headers and footers of files: one "key: value" a row. Both are interned. */
struct profile_fact {
	uint32_t key;
	uint32_t value;
};

/*
 * What is known of JVMs and the machine beside samples. Texts are interned. .duet files contain these numbers: never
 * change them.
 */
enum profile_note_kind {
	PROFILE_NOTE_PROPERTY, /* a system property of the JVM; texts: key, value */
	PROFILE_NOTE_COMMAND, /* how the JVM was started; texts: options, program and its arguments */
	PROFILE_NOTE_LIBRARY, /* code that it maps; texts: path; numbers: first address, address after the last */
	/* since the last; numbers: CPU time of JVMs in user mode and in the kernel, of all processes, of all CPUs */
	PROFILE_NOTE_LOAD,
	/* Java's heap after a collection; numbers: collections so far, bytes used, committed and reserved */
	PROFILE_NOTE_HEAP,
	/* Java threads; numbers: those alive, daemons among them, started so far, most at a time */
	PROFILE_NOTE_THREADS,
	PROFILE_NOTE_KINDS
};

#define PROFILE_NOTES_MAX (1u << 18) /* three days of one JVM; more are dropped */

struct profile_note {
	uint64_t time_ns; /* of the clock of profile.start_ns; no earlier than that */
	uint64_t numbers[4]; /* times in ns */
	uint32_t kind; /* enum profile_note_kind */
	uint32_t pid; /* of the JVM; 0 = of the machine */
	uint32_t texts[2];
};

/*
 * What a process had used when it was looked at. Counts are since its start. Rows of a process are in order of time;
 * texts are interned.
 */
struct profile_usage {
	uint64_t time_ns; /* of the clock of profile.start_ns; no earlier than that */
	uint64_t started_ms; /* since 1970 */
	uint64_t user_ns, system_ns; /* CPU time */
	uint64_t load_ppm; /* of one CPU, in millionths, since it was looked at before */
	uint64_t size_bytes, resident_bytes; /* of its memory */
	uint64_t anonymous_bytes, file_bytes, shared_bytes; /* shares of resident_bytes */
	uint64_t minor_faults, major_faults;
	uint64_t read_bytes, written_bytes; /* of devices; 0 if it was not allowed to read them */
	uint32_t pid, parent, uid, threads;
	uint32_t state; /* letter of /proc/PID/stat: 'R', 'S', … */
	uint32_t name, command; /* command: its arguments with spaces between them; 0 = not known */
};

#define PROFILE_USAGES_MAX (1u << 18) /* more are dropped */

/* The machine and the recording, for formats that describe them. The uint32_t texts are interned, 0 = not known. */
struct profile_host {
	uint32_t version; /* duet's version */
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
	uint32_t cloud_type; /* the cloud's name of the machine type */
	uint32_t processors;
	uint32_t loader; /* duet's own process id */
	uint64_t memory_bytes;
	uint64_t spawned_realtime_ns; /* when duet was started */
	uint64_t spawned_boot_ns; /* CLOCK_BOOTTIME at that time */
	uint64_t window_ns; /* length of a continuous recording's windows; else 0 */
	double cpu_percent; /* busy part of all CPUs during the recording */
	double memory_percent; /* used part of the memory at the end */
	uint64_t usages_ns; /* how often processes are looked at for profile.usages; 0 = never */
};

/* Whether stacks have a leading frame for their process. */
enum profile_processes {
	PROFILE_IF_SEVERAL, /* only if there are samples of several processes */
	PROFILE_ALWAYS,
	PROFILE_NEVER,
};

#define PROFILE_LATER 16 /* each may have TIMELINE_RECENT samples in memory, and a file */

struct profile {
	struct intern strings;
	struct vec(struct profile_event) events;
	struct vec(struct frame) frames;
	struct vec(struct stack_node) nodes;
	struct vec(struct profile_owner) owners; /* [0] is the unknown owner, all 0 */
	struct vec(struct profile_thread) threads;
	struct timeline samples;
	struct timeline later[PROFILE_LATER]; /* of the next windows, one each; of all from far_ns on in the last */
	uint64_t far_ns, window_ns; /* window_ns: length of the next windows; 0: all these samples are in the last */
	uint64_t count, weight; /* of all samples, later ones too */
	/*
	 * How many frames the stacks of a writer may have in all, for a profile that was read from a file. Stacks after
	 * that are cut. 0: no limit
	 */
	uint64_t most_frames;
	uint64_t most_text; /* the same for the bytes of stacks in a format of text */
	uint64_t most_nodes; /* while it is read: there are no more. 0: no limit */
	uint64_t until_ns; /* end of this window; 0: this profile is the only one */
	struct vec(struct profile_loss) losses;
	struct vec(struct profile_fact) facts;
	struct vec(struct profile_note) notes; /* in the order of adding */
	struct vec(struct profile_usage) usages; /* of processes of the whole machine, in the order of adding */
	struct map frame_ids;  /* hash of a frame -> index; the same for owners and threads */
	struct map owner_ids;
	struct map node_ids;   /* parent << 32 | frame -> node */
	struct map thread_ids;
	struct map event_ids; /* name -> index */
	struct map virtual_numbers; /* name with '#' << 32 | pid -> number of such names */
	struct map java_ids; /* index of a platform thread -> Thread.threadId() */
	struct map virtual_ids; /* index of a named virtual thread -> Thread.threadId(), 0 = several threads */
	uint64_t start_ns; /* CLOCK_MONOTONIC, like the times of samples; both CLOCK_REALTIME if read from a file */
	uint64_t end_ns;
	uint64_t start_realtime_ns;
	size_t max_bytes; /* limit of profile_bytes_soon(); SIZE_MAX = no limit */
	struct thinning thinning; /* which samples are still added; opened and stepped by the caller, else no limit */
	struct profile_host host; /* all 0 unless the caller fills it */
	enum profile_processes processes;
	bool has_attributes; /* samples have some */
	bool is_private; /* it describes processes of other users: only the owner may read files made from it */
};

int profile_init(struct profile *profile); /* 0 or -ENOMEM */
void profile_release(struct profile *profile);

/* What stacks and threads add to the tables. */
struct profile_rows {
	size_t nodes, frames, threads, text_bytes;
};

struct profile_rows profile_rows(const struct profile *profile); /* all that it has */
/*
 * Returns the bytes of all tables except strings and samples; and what these will be once the tables have grown for one
 * more stack and thread, and for `more`. Both are cheap.
 */
size_t profile_bytes(const struct profile *profile);
size_t profile_bytes_soon(const struct profile *profile, const struct profile_rows *more);
/*
 * True if another stack and thread, and `reserve` after these, may exceed max_bytes. The caller then uses
 * profile_known_thread() and profile_known_stack(), and adds no new stack except one of a single mark.
 */
bool profile_is_full(const struct profile *profile, const struct profile_rows *reserve);
/* Index of an equal frame, added when new; UINT32_MAX when out of memory. */
uint32_t profile_frame(struct profile *profile, const struct frame *frame);
uint32_t profile_known_frame(const struct profile *profile, const struct frame *frame); /* UINT32_MAX: there is none */
/* Index of an equal owner, added when new; 0, the unknown owner, when out of memory. */
uint32_t profile_owner(struct profile *profile, const struct profile_owner *owner);
/*
 * If both are of one program, an owner that was added before the program was known gets what `later` knows of it. If
 * both have the same application, the facts of `later` replace the owner's.
 */
void profile_complete_owner(struct profile_owner *owner, const struct profile_owner *later);
/*
 * Index of the thread {pid, tid}, added when new; UINT32_MAX when out of memory. A changed name or owner makes a new
 * row; earlier samples keep the old one.
 */
uint32_t profile_thread(struct profile *profile, uint32_t pid, uint32_t tid, const char *name, const char *process,
			uint32_t owner);
/* The same for the virtual thread with this Thread.threadId() and name, which may be "". */
uint32_t profile_virtual_thread(struct profile *profile, uint32_t pid, uint64_t id, const char *name,
				const char *process, uint32_t owner);
/*
 * The same for a row whose names are strings of the profile: many rows may have one long name. `java_id`, which may be
 * NULL, is that of a virtual thread if the row's tid is PROFILE_VIRTUAL.
 */
uint32_t profile_thread_row(struct profile *profile, struct profile_thread row, const uint64_t *java_id);
void profile_set_java_id(struct profile *profile, uint32_t thread, uint64_t id); /* of a platform thread; 0: nothing */
/* Thread.threadId() of either kind of thread. Returns false if it is not known; *ret is 0 then. */
bool profile_java_id(const struct profile *profile, uint32_t thread, uint64_t *ret);
/* Thread.threadId() of the virtual thread at this index; 0 if several share the row, or it is not a virtual thread. */
uint64_t profile_virtual_id(const struct profile *profile, uint32_t thread);
/* As profile_thread(), but all threads that have no row yet share one, "[others]". */
uint32_t profile_known_thread(struct profile *profile, uint32_t pid, uint32_t tid, const char *name,
			      const char *process, uint32_t owner);
/* The child of a node for a frame, added when new; both are indices. UINT32_MAX when out of memory. */
uint32_t profile_child(struct profile *profile, uint32_t parent, uint32_t frame);
/*
 * The node of a stack, added when new; `frames` are indices, root first. UINT32_MAX when out of memory, also for an
 * index that was UINT32_MAX.
 */
uint32_t profile_stack(struct profile *profile, const uint32_t *frames, uint32_t depth);
/* The same, but adds nothing; UINT32_MAX when there is no such stack. */
uint32_t profile_known_stack(const struct profile *profile, const uint32_t *frames, uint32_t depth);
/*
 * Returns the index of the event, which is added if there is none of this name; UINT32_MAX for one too many,
 * or when out of memory. The name is kept as text for people (base/text.h), because all formats show it.
 */
uint32_t profile_event(struct profile *profile, const char *name, enum profile_unit unit, uint64_t interval);
/*
 * Adds a sample, to `later` if its time is not before until_ns. 0, -EOVERFLOW for sums that become too large, or
 * -ENOMEM: then it was not added, which is also the case if one of its indices is UINT32_MAX.
 */
int profile_add(struct profile *profile, const struct profile_sample *sample);
void profile_set_end(struct profile *profile, uint64_t until_ns); /* of the window; there are no samples yet */
uint64_t profile_later(const struct profile *profile); /* how many rows `later` has */
/* Adds a note with these texts, which may be NULL. Does nothing when there are too many, or when out of memory. */
void profile_add_note(struct profile *profile, const struct profile_note *note, const char *first,
		      const char *second);
/* Adds the row. Returns 0, -EFBIG when there are too many, or -ENOMEM. */
int profile_add_usage(struct profile *profile, const struct profile_usage *usage);
void profile_add_loss(struct profile *profile, uint64_t count, const char *text); /* count 0 is not recorded */
__attribute__((format(printf, 3, 4))) void profile_add_fact(struct profile *profile, const char *key,
							    const char *format, ...);

static inline const char *profile_text(const struct profile *profile, uint32_t id)
{
	return intern_text(&profile->strings, id);
}

/* The same for all rows of a thread: it has several if it was renamed or moved. A virtual thread is its row. */
static inline uint64_t profile_thread_key(const struct profile *profile, uint32_t index)
{
	const struct profile_thread *thread = &profile->threads.items[index];

	return thread->tid == PROFILE_VIRTUAL ? (uint64_t)UINT32_MAX << 32 | index
					      : (uint64_t)thread->pid << 32 | thread->tid;
}

/* The frame of a node; NULL for the root. */
static inline const struct frame *profile_leaf(const struct profile *profile, uint32_t node)
{
	return node ? &profile->frames.items[profile->nodes.items[node].frame] : NULL;
}

static inline const char *profile_event_name(const struct profile *profile, size_t event)
{
	return intern_text(&profile->strings, profile->events.items[event].name);
}

/* ---- what a thread did at a sample of its time, as JFR has it ---- */

/* Numbers of profile_sample.address, for events of time. .duet files contain them: never change them. */
enum thread_state {
	THREAD_STATE_UNKNOWN,
	THREAD_DEFAULT, /* it had a CPU: a sample of CPU time */
	THREAD_RUNNABLE,
	THREAD_SLEEPING,
	THREAD_STATES
};

/*
 * Returns the state that the sample has, or else the one that its stack shows: a frame for what the thread waits for.
 * Samples of other events than CPU time, wall clock and sleeps have none.
 */
enum thread_state thread_state_of(const struct profile *profile, const struct profile_sample *sample);

/* Of a stack that goes on with that of another thread (FRAME_WAKER): the leaf of the one that waited; else `leaf`. */
uint32_t profile_waiter(const struct profile *profile, uint32_t leaf);
