/* SPDX-License-Identifier: MIT */
#include "join/decided.h"

#include <errno.h>

#include "base/counters.h"
#include "base/text.h"
#include "runtime/jvm.h"
#include "subject/owners.h"

void decided_init(struct decided *decided, struct profile *profile, struct symbols *symbols, struct owners *owners,
		  const uint64_t *windows)
{
	*decided = (struct decided){.profile = profile, .owners = owners, .windows = windows};
	resolver_init(&decided->resolver, profile, symbols);
}

static uint32_t known_thread(struct decided *decided, struct process *process, uint32_t tid, const char *name,
			     const char *comm)
{
	uint32_t owner = subject_of(process)->owner;
	uint32_t thread = profile_known_thread(decided->profile, (uint32_t)process->pid, tid, name, comm, owner);

	if (thread != UINT32_MAX && decided->profile->threads.items[thread].pid != (uint32_t)process->pid)
		loader_counters[DUET_LOADER_THREADS_FULL]++;
	return thread;
}

/* An agent's sample has no cgroup. */
static uint32_t owner_row(struct decided *decided, struct process *process, const struct duet_sample *sample)
{
	bool is_bpfs = decided->has_bpf && !(sample->flags & DUET_SAMPLE_CALLED);

	return owners_row(decided->owners, process, is_bpfs ? sample : NULL);
}

/*
 * The row of the virtual thread that was mounted. The carrier's own name is used only for work that the carrier does
 * itself.
 */
static uint32_t virtual_thread(struct decided *decided, struct process *process, const struct duet_sample *sample)
{
	const struct duet_virtual_thread *thread = &sample->virtual_thread;
	char name[2 * DUET_MAX_VIRTUAL_NAME + 1];

	text_from_java(name, thread->name, thread->name_bytes, thread->is_utf16);
	if (profile_is_full(decided->profile))
		return known_thread(decided, process, PROFILE_VIRTUAL, *name ? name : PROFILE_NO_NAME,
				    sample->process_comm);
	return profile_virtual_thread(decided->profile, (uint32_t)process->pid, thread->id, name, sample->process_comm,
				      owner_row(decided, process, sample));
}

static uint32_t sample_thread(struct decided *decided, struct process *process, const struct jvm *jvm,
			      const struct duet_sample *sample)
{
	uint32_t tid = sample->head.tid;
	uint32_t name = jvm ? jvm_thread_name(jvm, sample->ns_tid) : 0;
	const char *text = name ? intern_text(&decided->profile->strings, name) : sample->comm;
	const char *comm;
	char short_name[32];

	if (sample->virtual_thread.id)
		return virtual_thread(decided, process, sample);
	if (!text[0]) { /* a thread of the JVM itself, sampled by a timer engine */
		process_read_thread_comm(process->pid, (pid_t)tid, short_name, sizeof(short_name));
		text = short_name;
	}
	/* Use the process's name at the time of the sample: by now the process may run another program. */
	comm = sample->process_comm;
	if (profile_is_full(decided->profile))
		return known_thread(decided, process, tid, text, comm);
	return profile_thread(decided->profile, (uint32_t)process->pid, tid, text, comm,
			      owner_row(decided, process, sample));
}

bool decided_add(struct decided *decided, struct process *process, const struct jvm *jvm,
		 const struct duet_sample *sample, const struct duet_java_sample *java, enum join_outcome outcome,
		 bool last_chance)
{
	int64_t node = resolve_sample(&decided->resolver, process, jvm, sample, java, outcome, last_chance);
	uint64_t time_ns = sample->head.time_ns;
	int err = node < 0 ? (int)node : 0;

	if (err == -EAGAIN)
		return false;
	if (!err)
		err = profile_add(decided->profile, &(struct profile_sample){
							    .time_ns = time_ns,
							    .weight = sample->weight,
							    .thread = sample_thread(decided, process, jvm, sample),
							    .node = (uint32_t)node,
							    .count = 1,
							    .event = sample->event,
						    });
	loader_counters[DUET_LOADER_OUT_OF_MEMORY] += err < 0;
	loader_counters[DUET_LOADER_WINDOW_LATE] += *decided->windows && time_ns < decided->profile->start_ns;
	outcomes_add(&decided->outcomes, sample, java, outcome, jvm ? &decided->resolver.splice : NULL);
	return true;
}
