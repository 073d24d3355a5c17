/* SPDX-License-Identifier: MIT */
/*
 * The BPF programs of one recording: which of them are loaded, how they are configured, how large their maps are. Used
 * inside collect/ only.
 *
 * They come in families: what one kind of events needs of BPF. To add one, write a file family_<name>.c that ends in a
 * `const struct bpf_family`, and add its name to BPF_FAMILIES. The collector and programs.c know the table only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "duet_config.h"
#include "event/event.h"

#define FAMILY_LINKS 12 /* most programs of one family beside those that sample its events */
#define FAMILY_MAPS 4
#define FAMILY_PROGRAM(name) (1u << DUET_PROGRAM_##name)
#define FAMILY_MAP(name) offsetof(struct duet_bpf, maps.name)

struct bpf_family;
struct bpf_link;
struct bpf_map;
struct bpf_program;
struct collector;
struct collector_options;
struct duet_bpf;
struct programs;

/* A family in a recording. */
struct family {
	const struct bpf_family *row;
	struct programs *programs;
	const struct event_list *events; /* of the recording, as event_list_expand() makes it */
	bool is_used; /* its programs sample one of the events */
	void *state; /* row->state_bytes, zeros at first */
	/* by family_use(): programs that are attached to their tracepoint, or to the hook that their section names */
	struct {
		const struct bpf_program *program;
		const char *tracepoint;
	} used[FAMILY_LINKS];
	/* NULL: not attached. They are destroyed in this order. */
	struct bpf_link *links[FAMILY_LINKS]; /* of used[] */
	struct bpf_link *of_events[DUET_MAX_EVENTS]; /* by index in the list of events */
};

/*
 * The functions may be NULL. Those that return int return 0 or -errno; what they append to `why` is one sentence: the
 * cause and the way out.
 */
struct bpf_family {
	uint32_t programs; /* those that sample events: FAMILY_PROGRAM() */
	size_t state_bytes;
	struct family_map {
		size_t map; /* FAMILY_MAP() */
		uint32_t entries; /* when it is used; 0: prepare() sets them */
		unsigned share; /* it takes at most so many 64ths of the limit of memory; 0: whatever it needs */
	} maps[FAMILY_MAPS];
	/* Refuses what this kernel cannot sample. Nothing is loaded. */
	int (*check)(struct family *family, const struct collector_options *options, struct buf *why);
	/*
	 * Configures the programs and maps, and chooses the programs: family_use() and programs->of[]. It is called for
	 * families that are not used, too, and again for another object.
	 */
	int (*prepare)(struct family *family, const struct collector_options *options);
	/* Opens what needs the loaded programs. Nothing ticks yet. */
	int (*open)(struct family *family, const struct collector_options *options, struct buf *why);
	int (*attach)(struct family *family); /* NULL: family_attach() */
	void (*step)(struct family *family); /* before the ring is read */
	void (*renew_cpu)(struct family *family, int cpu); /* a CPU has come online */
	void (*drop)(struct family *family, pid_t pid); /* the process has ended, or is no longer sampled */
	void (*detach)(struct family *family); /* before the links are destroyed */
	void (*release)(struct family *family); /* in any case */
};

/* The table. All are attached and detached in this order. */
#define BPF_FAMILIES(X) X(ticks) X(sleeps) X(io) X(tlab) X(holders) X(block) X(plain)
#define FAMILY_ENUM(name) FAMILY_##name,
#define FAMILY_EXTERN(name) extern const struct bpf_family family_##name;

enum { BPF_FAMILIES(FAMILY_ENUM) FAMILIES };
BPF_FAMILIES(FAMILY_EXTERN)
extern const struct bpf_family *const bpf_families[FAMILIES];

struct programs {
	struct duet_bpf *bpf; /* NULL before the load */
	struct bpf_program *of[DUET_PROGRAM_MAX]; /* NULL: it is not loaded, though an event has it */
	bool uses_cookie;
	struct family families[FAMILIES]; /* by index in bpf_families */
};

/*
 * Loads the programs, with signal cookies if the kernel has them. The families are open, and have checked the events.
 * Returns 0 or -errno.
 */
int programs_load(struct programs *programs, const struct collector_options *options);
void programs_unload(struct programs *programs);
/* Attaches a program to the tracepoint, or to the hook that its section names, unless it is attached. 0 or -errno. */
int programs_attach(struct bpf_link **ret, const struct bpf_program *program, const char *tracepoint);
/*
 * Chooses where the state of threads lies: in the storage of tasks, or, where the kernel lacks it, in the map by tid
 * with so many entries. 0 entries: in neither. The map by tid keeps one entry when it is not used. 0 or -errno.
 */
int programs_keep_threads(const struct programs *programs, struct bpf_map *storage, struct bpf_map *by_tid,
			  uint32_t entries);

/*
 * Returns the period of the perf event. Clocks and the CPU's counters tick once per interval. Other events tick each
 * time, and BPF samples one per interval.
 */
uint64_t programs_perf_period(const struct event_spec *spec);

/* Initializes the families of a recording. 0 or -ENOMEM; families_close() in any case. */
int families_open(struct family *families, struct programs *programs, const struct event_list *events);
void families_close(struct family *families);
struct family *collector_family(struct collector *collector, size_t id); /* FAMILY_ticks and the others */

/*
 * Loads a program beside those of the events, and attaches it with them. `tracepoint` is NULL if its section names the
 * hook. 0 or -errno.
 */
int family_use(struct family *family, size_t link, struct bpf_program *program, const char *tracepoint);
/* Attaches what is not attached: the programs of the events, then the others, the last link first. 0 or -errno. */
int family_attach(struct family *family);
void family_detach(struct family *family); /* destroys all links */
