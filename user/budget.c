/* SPDX-License-Identifier: MIT */
#include "budget.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "session_internal.h"

#define BPF_SHARE 4 /* of the limit, as below */
#define RINGS_SHARE 4
#define LANE_SHARE 512
#define TABLES_SHARE 32
#define LANE_MIN (256u << 10) /* several times the largest record */
#define CODE_BYTES (5u << 20) /* pages of the executable and of libc, stack and page tables' share */
#define PROFILE_SHARE 5 /* of the heap, as below */
#define JOIN_SHARE 8
#define DROP_PERCENT 60
#define JVMS_PERCENT 40
#define CLOSE_PERCENT 70
#define DROP_AGAIN_NS (10 * NS_PER_SEC) /* what is dropped in vain costs time to make again */
#define SWEEP_MIN 4096 /* processes */
#define RELEASE_AGAIN_NS (10 * NS_PER_SEC)

void budget_open(struct session *session)
{
	session->budget = (struct budget){.max_bytes = session->options->max_memory, .sweep_at = SWEEP_MIN};
	session->budget.limit_before = memory_limit_now();
	if (session->budget.max_bytes)
		memory_prepare();
}

void budget_close(struct session *session)
{
	if (session->budget.max_bytes)
		(void)memory_limit(session->budget.limit_before);
}

size_t budget_bpf_bytes(const struct session *session)
{
	return session->budget.max_bytes / BPF_SHARE;
}

/* The part of the rings is taken off as agents come. */
static void set_heap(struct session *session)
{
	struct budget *budget = &session->budget;
	size_t taken = budget->rings_bytes + CODE_BYTES;

	if (session->collector)
		taken += collector_bytes(session->collector);
	budget->heap_bytes = budget->max_bytes > taken ? budget->max_bytes - taken : 0;
	(void)memory_limit(budget->heap_bytes); /* a lower limit than that of the start cannot fail */
	join_set_max_bytes(session->join, budget->heap_bytes / JOIN_SHARE);
}

int budget_start(struct session *session)
{
	struct budget *budget = &session->budget;

	if (!budget->max_bytes)
		return 0;
	set_heap(session);
	memory_trim();
	if (memory_data() < budget->heap_bytes / 2)
		return 0;
	log_error("--max-memory %zu MB is too little here: %zu MB of it are taken before the recording begins",
		  budget->max_bytes >> 20, (budget->max_bytes - budget->heap_bytes + memory_data()) >> 20);
	return -ENOMEM;
}

/* ---- rings ---- */

static size_t lane_bytes(size_t asked, size_t most)
{
	while (asked > most && asked > LANE_MIN)
		asked /= 2;
	return asked;
}

static size_t shared_bytes(const struct agent_start *start)
{
	return start->sample_lane_bytes + start->metadata_lane_bytes + start->tables_bytes;
}

bool budget_take_ring(struct session *session, struct agent_start *start)
{
	struct budget *budget = &session->budget;

	if (!budget->max_bytes)
		return true;
	start->sample_lane_bytes = lane_bytes(start->sample_lane_bytes, budget->max_bytes / LANE_SHARE);
	start->metadata_lane_bytes = lane_bytes(start->metadata_lane_bytes, budget->max_bytes / LANE_SHARE);
	start->tables_bytes = lane_bytes(start->tables_bytes, budget->max_bytes / TABLES_SHARE);
	if (budget->rings_bytes + shared_bytes(start) > budget->max_bytes / RINGS_SHARE)
		return false;
	budget->rings_bytes += shared_bytes(start);
	set_heap(session);
	return true;
}

void budget_give_ring(struct session *session, const struct agent *agent)
{
	if (!session->budget.max_bytes)
		return;
	session->budget.rings_bytes -= shared_bytes(&agent->start);
	set_heap(session);
}

/* ---- as it fills ---- */

/* Of agents and processes that have ended. What is remembered by the address of a process is forgotten with it. */
static void release_dead(struct session *session, uint64_t now_ns)
{
	struct budget *budget = &session->budget;
	size_t *processes = &session->processes.all.len;

	session_release_dead(session);
	resolver_forget(&session->resolver);
	budget->sweep_at = 2 * *processes > SWEEP_MIN ? 2 * *processes : SWEEP_MIN;
	budget->released_ns = now_ns;
}

static bool wants_release(const struct session *session, uint64_t now_ns)
{
	const struct budget *budget = &session->budget;
	bool rings_are_many = budget->max_bytes && budget->rings_bytes > budget->max_bytes / RINGS_SHARE / 2;

	return session->processes.all.len >= budget->sweep_at ||
	       (rings_are_many && now_ns - budget->released_ns > RELEASE_AGAIN_NS);
}

static void drop_caches(struct session *session, uint64_t now_ns)
{
	release_dead(session, now_ns);
	symbols_forget(session->symbols);
	unwinding_forget_files(&session->unwinding);
	for (size_t i = 0; i < session->agents.len; i++)
		unwinding_forget_files(&session->agents.items[i]->unwinding);
	join_forget_spare(session->join);
	memory_trim();
}

static void warn_once(struct session *session)
{
	if (session->budget.is_warned)
		return;
	log_info("memory: %zu of %zu MB are left to the loader, what can be made again is dropped",
		 session->budget.heap_bytes >> 20, session->budget.max_bytes >> 20);
	session->budget.is_warned = true;
}

static void set_full(struct session *session, bool is_full)
{
	for (size_t i = 0; i < session->agents.len; i++)
		jvm_set_full(session->agents.items[i]->jvm, is_full);
}

void budget_step(struct session *session, uint64_t now_ns)
{
	struct budget *budget = &session->budget;
	size_t used;

	if (wants_release(session, now_ns))
		release_dead(session, now_ns);
	if (!budget->max_bytes)
		return;
	session->profile.samples.may_merge = true;
	session->profile.max_bytes = budget->heap_bytes / PROFILE_SHARE;
	used = memory_data();
	if (used > budget->heap_bytes / 100 * JVMS_PERCENT) /* the dearer look */
		used = memory_used();
	if (used > budget->heap_bytes / 100 * DROP_PERCENT && now_ns - budget->dropped_ns > DROP_AGAIN_NS) {
		warn_once(session);
		drop_caches(session, now_ns);
		budget->dropped_ns = now_ns;
		budget->drops++;
		used = memory_used();
	}
	set_full(session, used > budget->heap_bytes / 100 * JVMS_PERCENT);
	if (used > budget->heap_bytes / 100 * CLOSE_PERCENT)
		session->profile.max_bytes = 1;
}

void budget_before_write(struct session *session)
{
	if (!session->budget.max_bytes)
		return;
	resolver_forget(&session->resolver);
	symbols_forget(session->symbols);
	join_forget_spare(session->join);
	memory_trim();
}

size_t budget_peak_bytes(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) < 0 ? 0 : (size_t)usage.ru_maxrss << 10;
}
