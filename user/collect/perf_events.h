/* SPDX-License-Identifier: MIT */
/* The perf events of one event, all running the same BPF program. Used inside collect/ only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bpf/libbpf.h>

#include "base/buf.h"
#include "base/vec.h"
#include "event/event.h"

/*
 * A process that opens probes in files and keeps a copy of each until the loader has closed its own. To set a probe or
 * to remove it, the kernel waits for the lock of the mappings of each process that maps the file, whoever it belongs
 * to, and no signal ends the wait. A process can hold that lock for ever, with a page that never comes. So the
 * loader neither sets a probe nor closes the last descriptor of one.
 */
struct probe_process {
	int socket; /* keeps the process alive; 0 = none */
	pid_t pid;
};

/*
 * Calls open_probe(context, 0), … (context, count - 1) in the new process, each of which returns a descriptor or
 * -errno, and fills ret_fds. The process has only one descriptor of the loader's: `kept`. Returns 0, and the caller
 * calls probe_process_close() after it has closed those in ret_fds. Or -errno, with no descriptor left: -ETIMEDOUT when
 * the kernel has not set a probe for some seconds.
 */
int probe_process_open(struct probe_process *process, int (*open_probe)(const void *context, size_t i),
		       const void *context, size_t count, int kept, int *ret_fds);
/* Ends the process, and collects it if the kernel removes the probes within a fifth of a second. Takes one of zeros. */
void probe_process_close(struct probe_process *process);

/* The event of one CPU, to begin it anew. */
struct perf_of_cpu {
	struct event_perf perf;
	uint64_t period;
	int cpu;
};

struct perf_events {
	struct vec(int) fds;
	struct vec(struct perf_of_cpu) of_cpus; /* of perf_events_open(): of_cpus[i] is the event of fds[i] */
	struct vec(struct bpf_link *) links; /* links[i] runs the program on fds[i], and closes fds[i] when destroyed */
	struct probe_process probe_process; /* of probes in files */
	bool is_hook; /* the program runs as long as its link exists, whether the event is enabled or not */
};

/*
 * Opens an event on every CPU that is online, for all processes. Returns the number of events, or -errno if none could
 * be opened. The event of a CPU ends when the CPU goes offline, see perf_events_renew(). Release `events` also after an
 * error.
 */
int perf_events_open(struct perf_events *events, const struct event_perf *perf, uint64_t period, uint32_t only_cpu);
/* Opens a tracepoint or a probe of the kernel on all CPUs together, for all processes. 0 or -errno. */
int perf_events_open_hook(struct perf_events *events, const struct event_perf *perf);
/*
 * Opens probes in the file of which `file` is a descriptor, each for each of `pids`; pid -1: for all processes. 0 or
 * -errno, see probe_process_open().
 */
int perf_events_open_probes(struct perf_events *events, const struct event_perf *probes, size_t count,
			    const pid_t *pids, size_t pid_count, int file);
/*
 * In the program, bpf_get_attach_cookie() returns one of the `count` cookies, which the events have in turn. They must
 * be 0 before Linux 5.15. 0 or -errno.
 */
int perf_events_start(struct perf_events *events, const struct bpf_program *program, const uint64_t *cookies,
		      size_t count);
/*
 * Opens and starts again the events of perf_events_open() on a CPU that has come online. A CPU that had none gets one
 * like that of the first CPU. 0 or -errno.
 */
int perf_events_renew(struct perf_events *events, int cpu, const struct bpf_program *program, uint64_t cookie);
void perf_events_stop(struct perf_events *events); /* no CPU ticks after it returns */
void perf_events_release(struct perf_events *events); /* closes the events; each takes the kernel a while */
/* Appends a sentence: the event, the cause by the -errno of one of the functions above, and the way out. */
void perf_events_explain(const struct event *event, const struct event_perf *perf, int err, struct buf *why);
