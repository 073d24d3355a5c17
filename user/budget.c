/* SPDX-License-Identifier: MIT */
#include "budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/memory.h"
#include "proc/cgroup.h"
#include "session_internal.h"

#define DEFAULT_SHARE 8 /* the default limit is 1/8 of the memory */
#define DEFAULT_MIN_BYTES (256ul << 20)
#define DEFAULT_MAX_BYTES (4ul << 30)
#define NAMES_SHARE 2 /* 1/2 of the heap is for names from JVMs */
#define NAMES_UNLIMITED_BYTES (1ul << 30)
#define BPF_SHARE 4 /* at most 1/4 of the limit is for BPF's maps */
#define JOIN_SHARE 8 /* 1/8 of the heap is for the join, more than it needs */
#define LANE_MIN (256u << 10) /* several times the largest record */
#define TABLES_MIN (4u << 20) /* unwind tables: enough for libjvm.so and the libraries of most programs */
#define LIMIT_DIGITS 32 /* bytes of memory.max that are read */
#define LOOK_NS NS_PER_SEC
#define STEP_NS (10 * NS_PER_MS) /* mallinfo2() walks the free lists, which takes a while */
#define SWEEP_MIN 4096 /* processes */
#define RELEASE_AGAIN_NS (10 * NS_PER_SEC)
#define MANY_RINGS 8 /* rings of more than 1/8 of the limit: free those of ended JVMs */
#define MANY_RINGS_BYTES (64u << 20) /* the same without a limit */

/*
 * Returns the smallest memory limit of the cgroup and its ancestors; SIZE_MAX: no limit could be read. Shortens `path`.
 */
static size_t cgroup_limit(const struct cgroup_tree *tree, struct buf *path)
{
	size_t least = SIZE_MAX;
	struct buf text, file;
	char *slash;

	buf_init(&text);
	buf_init(&file);
	while ((slash = strrchr(path->data, '/'))) {
		buf_clear(&text);
		buf_clear(&file);
		buf_printf(&file, ".%s/memory.max", path->data);
		if (!io_read_file(tree->fd, file.data, LIMIT_DIGITS, &text) && text.data[0] != 'm') {
			size_t bytes = strtoull(text.data, NULL, 10);

			least = bytes < least ? bytes : least;
		}
		*slash = '\0';
	}
	buf_release(&text);
	buf_release(&file);
	return least;
}

static size_t own_cgroup_limit(void)
{
	size_t bytes = SIZE_MAX;
	struct cgroup_tree tree;
	struct buf path;

	buf_init(&path);
	if (!cgroup_tree_open(&tree) && !cgroup_of_process(getpid(), false, &path) && !path.failed)
		bytes = cgroup_limit(&tree, &path);
	cgroup_tree_release(&tree);
	buf_release(&path);
	return bytes;
}

size_t budget_default_bytes(void)
{
	size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE), limit = own_cgroup_limit();

	bytes = (limit < bytes ? limit : bytes) / DEFAULT_SHARE;
	if (bytes < DEFAULT_MIN_BYTES)
		return DEFAULT_MIN_BYTES;
	return bytes < DEFAULT_MAX_BYTES ? bytes : DEFAULT_MAX_BYTES;
}

void budget_open(struct session *session)
{
	size_t asked = session->options->max_memory;

	session->budget = (struct budget){
		.pool.max_bytes = asked ? asked : budget_default_bytes(),
		.names.max_bytes = NAMES_UNLIMITED_BYTES,
		.sweep_at = SWEEP_MIN,
	};
	session->budget.limit_before = memory_limit_now();
	memory_prepare();
}

void budget_close(struct session *session)
{
	if (session->budget.pool.max_bytes)
		(void)memory_limit(session->budget.limit_before);
}

size_t budget_bpf_bytes(const struct session *session)
{
	return session->budget.pool.max_bytes / BPF_SHARE;
}

/* ---- measuring ---- */

static void look(struct session *session)
{
	struct budget *budget = &session->budget;
	struct pool_parts parts = {.maps = budget->maps_bytes};
	struct memory_resident resident;

	memory_resident(&resident);
	parts.heap = resident.own;
	parts.files = resident.files > budget->mapped_bytes ? resident.files - budget->mapped_bytes : 0;
	for (size_t i = 0; i < session->agents.len; i++)
		parts.rings += agent_shared_bytes(session->agents.items[i]);
	pool_look(&budget->pool, &parts);
	if (!budget->pool.max_bytes)
		return;
	(void)memory_limit(budget->pool.heap_max); /* cannot fail: the limit is lower than that of the start */
	join_set_max_bytes(session->join, budget->pool.heap_max / JOIN_SHARE);
	budget->names.max_bytes = budget->pool.heap_max / NAMES_SHARE;
}

int budget_start(struct session *session)
{
	struct budget *budget = &session->budget;
	struct pool *pool = &budget->pool;

	if (session->collector) {
		budget->maps_bytes = collector_bytes(session->collector);
		budget->mapped_bytes = collector_mapped_bytes(session->collector);
	}
	if (!session->options->max_memory && memory_data() >= pool->max_bytes / 2) {
		log_debug("no limit of memory: address space is taken already, as sanitizers do");
		pool->max_bytes = 0;
	}
	if (pool->max_bytes)
		memory_trim();
	look(session);
	if (!pool->max_bytes || memory_data() < pool->heap_max / 2)
		return 0;
	log_error("--max-memory %zu MB is too little: duet needs %zu MB before the recording begins",
		  pool->max_bytes >> 20, (pool->max_bytes - pool->heap_max + memory_data()) >> 20);
	return -ENOMEM;
}

/* Measures the heap exactly, which is slower, only when it is large enough to matter. */
static void measure(void *context, struct pool_demand *ret)
{
	const struct session *session = context;
	const struct profile *profile = &session->profile;

	*ret = (struct pool_demand){
		.heap = memory_data(),
		.stacks = profile_bytes(profile),
		.stacks_soon = profile_bytes_soon(profile),
		.writing = session->windows.writer ? session->budget.writer_bytes * (1 + POOL_WRITER) : 0,
	};
	if (ret->heap > session->budget.pool.heap_max / 4)
		ret->heap = memory_used();
	if (ret->heap < ret->stacks)
		ret->heap = ret->stacks;
}

/* ---- rings ---- */

static size_t shared_bytes(const struct agent_start *start)
{
	size_t lanes = start->sample_lane_bytes + start->metadata_lane_bytes;

	return (size_t)sysconf(_SC_PAGESIZE) + lanes +
	       (start->tables_bytes ? unwind_tables_file_bytes(start->tables_bytes) : 0);
}

/* Rounds both sizes as the ring does: their halves are valid lane sizes, too. */
static size_t lane_bytes(const struct pool *pool, size_t asked, size_t least)
{
	return pool_lane_bytes(pool, agent_ring_lane_bytes(asked), agent_ring_lane_bytes(least));
}

bool budget_take_ring(struct session *session, struct agent_start *start)
{
	struct pool *pool = &session->budget.pool;

	start->sample_lane_bytes =
		lane_bytes(pool, start->sample_lane_bytes, LANE_MIN * (start->java_depth / DUET_JAVA_DEPTH));
	start->metadata_lane_bytes = lane_bytes(pool, start->metadata_lane_bytes, LANE_MIN);
	if (start->tables_bytes)
		start->tables_bytes = pool_lane_bytes(pool, start->tables_bytes, TABLES_MIN);
	if (!start->sample_lane_bytes || !start->metadata_lane_bytes)
		return false;
	pool->promised_bytes += shared_bytes(start);
	return true;
}

void budget_give_ring(struct session *session, const struct agent *agent)
{
	session->budget.pool.promised_bytes -= shared_bytes(&agent->start);
}

/* ---- as memory fills ---- */

/*
 * Frees agents and processes that have ended. The resolver remembers processes by address, so it must forget them too.
 */
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
	size_t max_bytes = budget->pool.max_bytes, many = max_bytes ? max_bytes / MANY_RINGS : MANY_RINGS_BYTES;

	return session->processes.all.len >= budget->sweep_at ||
	       (budget->pool.promised_bytes > many && now_ns - budget->released_ns > RELEASE_AGAIN_NS);
}

static void drop_caches(void *context)
{
	struct session *session = context;

	if (!session->budget.pool.drops)
		log_info("memory: of %zu MB, %zu MB are left for the loader, and they are full: caches are dropped",
			 session->budget.pool.max_bytes >> 20, session->budget.pool.heap_max >> 20);
	release_dead(session, clock_monotonic_ns());
	symbols_forget(session->symbols);
	unwinding_forget_files(&session->unwinding);
	for (size_t i = 0; i < session->agents.len; i++)
		unwinding_forget_files(&session->agents.items[i]->unwinding);
	join_forget_spare(session->join);
	memory_trim();
}

static void apply(struct session *session)
{
	const struct pool *pool = &session->budget.pool;

	session->profile.samples.may_merge = session->options->max_memory || pool->names_full;
	session->profile.max_bytes = pool->stacks_max ? pool->stacks_max : 1; /* 0: no limit */
	for (size_t i = 0; i < session->agents.len; i++)
		jvm_set_full(session->agents.items[i]->jvm, pool->names_full);
}

void budget_step(struct session *session, uint64_t now_ns)
{
	const struct pool_user user = {.context = session, .measure = measure, .drop_caches = drop_caches};
	struct budget *budget = &session->budget;

	if (wants_release(session, now_ns))
		release_dead(session, now_ns);
	if (now_ns - budget->looked_ns >= LOOK_NS) {
		look(session);
		budget->looked_ns = now_ns;
	}
	if (!budget->pool.max_bytes || now_ns - budget->stepped_ns < STEP_NS)
		return;
	budget->stepped_ns = now_ns;
	pool_step(&budget->pool, &user, now_ns);
	apply(session);
}

/* ---- writing ---- */

void budget_writer_started(struct session *session)
{
	session->budget.writer_bytes = profile_bytes(&session->profile);
}

void budget_before_write(struct session *session)
{
	if (!session->budget.pool.max_bytes)
		return;
	resolver_forget(&session->resolver);
	symbols_forget(session->symbols);
	join_forget_spare(session->join);
	memory_trim();
}

void budget_tell_need(struct session *session)
{
	const struct resolver *resolver = &session->resolver;
	struct budget *budget = &session->budget;
	struct pool_demand demand;

	measure(session, &demand);
	pool_note_refused(&budget->pool, &demand, resolver->kept, distinct_count(&resolver->refused));
	if (!budget->pool.needed_bytes || budget->is_told)
		return;
	budget->is_told = true;
	log_warn("--max-memory %zu MB is too little: new stacks are under [too_many_stacks], about %zu MB are enough",
		 budget->pool.max_bytes >> 20, budget->pool.needed_bytes >> 20);
}
