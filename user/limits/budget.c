/* SPDX-License-Identifier: MIT */
#include "limits/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/memory.h"
#include "collect/engines.h"
#include "collect/records/agent_ring.h"
#include "collect/tables/unwind_tables.h"
#include "collect/tables/unwinding.h"
#include "join/pending.h"
#include "jvms/jvms.h"
#include "proc/cgroup.h"
#include "proc/room.h"
#include "profile/profile.h"
#include "sym/symbols.h"

#define DROP_AGAIN_NS (10 * NS_PER_SEC) /* filling caches again costs time; doubled if dropping them did not help */
#define DROP_AGAIN_MAX_NS (160 * NS_PER_SEC)
#define GROWTH 2
#define NEEDED_STEP (16u << 20) /* the estimate is rounded up to this */
#define LANES 128 /* lanes of this size must fit: a host has many JVMs */

size_t pool_sum(const struct pool_shares *parts)
{
	return parts->maps + parts->rings + parts->files + parts->heap;
}

void pool_look(struct pool *pool, const struct pool_shares *parts)
{
	size_t sum = pool_sum(parts), taken = sum - parts->heap;

	pool->shares = *parts;
	if (sum > pool->peak_bytes)
		pool->peak_bytes = sum;
	pool->heap_max = pool->max_bytes > taken ? pool->max_bytes - taken : 0;
}

/* An eighth is kept free for short-lived memory between two looks: a file being read, a table being copied to grow. */
static size_t usable(const struct pool *pool)
{
	return pool->heap_max - pool->heap_max / 8;
}

static size_t others_of(const struct pool_demand *demand)
{
	return demand->heap - demand->stacks + demand->writing;
}

static size_t stacks_max(const struct pool_demand *demand, size_t room)
{
	size_t others = others_of(demand);

	return room > others ? (room - others) / (1 + POOL_WRITER) : 0;
}

/* Returns true a little before stacks are refused, so that everything else is tried first. */
static bool is_tight(const struct pool *pool, const struct pool_demand *demand)
{
	return demand->stacks_soon > stacks_max(demand, usable(pool) - pool->heap_max / 16);
}

static void drop(struct pool *pool, const struct pool_user *user, uint64_t now_ns)
{
	user->drop_caches(user->context);
	pool->drops++;
	pool->dropped_ns = now_ns;
	pool->drop_again_ns = pool->drop_again_ns ? 2 * pool->drop_again_ns : DROP_AGAIN_NS;
	if (pool->drop_again_ns > DROP_AGAIN_MAX_NS)
		pool->drop_again_ns = DROP_AGAIN_MAX_NS;
}

void pool_step(struct pool *pool, const struct pool_user *user, uint64_t now_ns)
{
	struct pool_demand demand;

	user->measure(user->context, &demand);
	if (is_tight(pool, &demand) && now_ns - pool->dropped_ns >= pool->drop_again_ns) {
		drop(pool, user, now_ns);
		user->measure(user->context, &demand);
		if (!is_tight(pool, &demand))
			pool->drop_again_ns = DROP_AGAIN_NS;
	}
	pool->names_full = is_tight(pool, &demand);
	if (pool->names_full && others_of(&demand) > pool->others_peak)
		pool->others_peak = others_of(&demand);
	pool->stacks_max = stacks_max(&demand, usable(pool));
}

size_t pool_lane_bytes(const struct pool *pool, size_t share, size_t asked, size_t least)
{
	size_t untouched = pool->promised_bytes > pool->shares.rings ? pool->promised_bytes - pool->shares.rings : 0;
	size_t taken = pool->shares.heap + untouched;
	size_t room = usable(pool) > taken ? usable(pool) - taken : 0;

	room = share < room ? share : room;
	if (room / 4 < least)
		return 0;
	while (asked > least && asked > room / LANES)
		asked /= 2;
	return asked;
}

/* The size of BPF's maps is proportional to the limit. */
size_t pool_limit_for(const struct pool *pool, size_t heap)
{
	size_t most = pool->max_bytes, needed = heap + pool->shares.rings + pool->shares.files;

	if (pool->shares.maps < most)
		needed = (size_t)((double)needed * (double)most / (double)(most - pool->shares.maps));
	return ((needed > most ? needed : most) / NEEDED_STEP + 1) * NEEDED_STEP;
}

/*
 * A growing table doubles, and exists twice while it is copied: GROWTH times its contents is always enough. The rest of
 * the heap may have shrunk since stacks were refused.
 */
void pool_note_refused(struct pool *pool, const struct pool_demand *demand, uint64_t kept, uint64_t refused)
{
	size_t each = kept ? demand->stacks / kept + 1 : 0, others = others_of(demand), heap, needed;

	if (!refused || pool->shares.maps >= pool->max_bytes)
		return;
	if (others < pool->others_peak)
		others = pool->others_peak;
	heap = others + (demand->stacks + refused * each) * GROWTH * (1 + POOL_WRITER);
	needed = pool_limit_for(pool, heap / 7 * 8);
	if (needed > pool->needed_bytes)
		pool->needed_bytes = needed;
}

#define DEFAULT_SHARE 8 /* the default limit is 1/8 of the memory */
#define DEFAULT_MIN_BYTES (256ul << 20)
#define DEFAULT_MAX_BYTES (4ul << 30)
#define NAMES_SHARE 2 /* 1/2 of the heap is for names from JVMs */
#define MAPS_SHARE 4 /* 1/4 of the heap is for the mappings of processes, … */
#define MAPPING_BYTES 256 /* … with paths of usual length */
#define SYMBOLS_SHARE 2 /* 1/2 of the heap is for symbols */
#define BPF_SHARE 4 /* at most 1/4 of the limit is for BPF's maps */
#define JOIN_SHARE 8 /* 1/8 of the heap is for the join, more than it needs */
#define LANE_MIN (256u << 10) /* several times the largest record */
#define TABLES_MIN (4u << 20) /* unwind tables: enough for libjvm.so and the libraries of most programs */
#define LIMIT_DIGITS 32 /* bytes of memory.max that are read */
#define LOOK_NS NS_PER_SEC
#define STEP_NS (10 * NS_PER_MS) /* mallinfo2() walks the free lists, which takes some time */
#define SWEEP_MIN 4096 /* number of processes at which ended ones are searched first */
#define RELEASE_AGAIN_NS (10 * NS_PER_SEC)
#define MANY_RINGS 8 /* above 1/8 of the limit in rings, the rings of ended JVMs are freed */

/* Returns the smallest limit of the cgroup and its ancestors; SIZE_MAX: none was read. Shortens `path`. */
static size_t cgroup_limit(const struct cgroup_tree *tree, struct buf *path)
{
	size_t least = SIZE_MAX;
	BUF(text);
	BUF(file);
	char *slash;

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
	return least;
}

static size_t own_cgroup_limit(void)
{
	size_t bytes = SIZE_MAX;
	struct cgroup_tree tree;
	BUF(path);

	if (!cgroup_tree_open(&tree) && !cgroup_of_process(getpid(), false, &path) && !path.failed)
		bytes = cgroup_limit(&tree, &path);
	cgroup_tree_release(&tree);
	return bytes;
}

static size_t default_bytes(void)
{
	size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE), limit = own_cgroup_limit();

	bytes = (limit < bytes ? limit : bytes) / DEFAULT_SHARE;
	if (bytes < DEFAULT_MIN_BYTES)
		return DEFAULT_MIN_BYTES;
	return bytes < DEFAULT_MAX_BYTES ? bytes : DEFAULT_MAX_BYTES;
}

void budget_open(struct budget *budget, size_t asked)
{
	*budget = (struct budget){
		.is_asked = asked != 0,
		.pool.max_bytes = asked ? asked : default_bytes(),
		.sweep_at = SWEEP_MIN,
	};
	budget->limit_before = memory_limit_now();
	memory_prepare();
}

void budget_close(struct budget *budget)
{
	(void)memory_limit(budget->limit_before);
}

size_t budget_bpf_bytes(const struct budget *budget)
{
	return budget->pool.max_bytes / BPF_SHARE;
}

static void set_rooms(const struct pool *pool)
{
	size_t heap = usable(pool);

	room_set_size(ROOM_NAMES, pool->heap_max / NAMES_SHARE);
	room_set_size(ROOM_MAPS, pool->heap_max / MAPS_SHARE / MAPPING_BYTES);
	room_set_size(ROOM_JVMS, DUET_MAX_JVMS);
	room_set_size(ROOM_SYMBOLS, pool->heap_max / SYMBOLS_SHARE);
	room_set_size(ROOM_WAITING, JOIN_MAX_HELD);
	room_set_size(ROOM_WAITING_BYTES, pool->heap_max / JOIN_SHARE);
	room_set_size(ROOM_RINGS, (heap > pool->shares.heap ? heap - pool->shares.heap : 0) + pool->shares.rings);
}

static void look(struct budget *budget)
{
	const struct engine_in_use *engine = budget->jvms->of.engine;
	struct pool_shares parts = {.maps = engine->facts.maps_bytes};
	struct memory_resident resident;

	memory_resident(&resident);
	parts.heap = resident.own;
	parts.files = resident.files > engine->facts.mapped_bytes ? resident.files - engine->facts.mapped_bytes : 0;
	for (size_t i = 0; i < budget->jvms->agents.len; i++)
		parts.rings += agent_shared_bytes(budget->jvms->agents.items[i]);
	pool_look(&budget->pool, &parts);
	(void)memory_limit(budget->pool.heap_max); /* cannot fail: the limit is lower than that of the start */
	pending_set_max_bytes(budget->jvms->of.pending, budget->pool.heap_max / JOIN_SHARE);
	set_rooms(&budget->pool);
}

int budget_start(struct budget *budget, struct jvms *jvms, const size_t *writer_bytes)
{
	struct pool *pool = &budget->pool;

	budget->jvms = jvms;
	budget->writer_bytes = writer_bytes;
	memory_trim();
	look(budget);
	if (memory_data() < pool->heap_max / 2)
		return 0;
	return log_fail(-ENOMEM, "--max-memory %zu MB is too little: duet needs about %zu MB here",
			pool->max_bytes >> 20, pool_limit_for(pool, 2 * memory_data()) >> 20);
}

/* Measures the heap exactly, which is slower, only when it is large enough to matter. */
static void measure(void *context, struct pool_demand *ret)
{
	const struct budget *budget = context;
	const struct profile *profile = budget->jvms->of.profile;

	*ret = (struct pool_demand){
		.heap = memory_data(),
		.stacks = profile_bytes(profile),
		.stacks_soon = profile_bytes_soon(profile, &(struct profile_rows){0}),
		.writing = *budget->writer_bytes * (1 + POOL_WRITER),
	};
	if (ret->heap > budget->pool.heap_max / 4)
		ret->heap = memory_used();
	if (ret->heap < ret->stacks)
		ret->heap = ret->stacks;
}

static size_t shared_bytes(const struct agent_start *start)
{
	size_t lanes = start->sample_lane_bytes + start->metadata_lane_bytes;

	return (size_t)sysconf(_SC_PAGESIZE) + lanes +
	       (start->tables_bytes ? unwind_tables_file_bytes(start->tables_bytes) : 0);
}

static size_t share_left(const struct payer *payer)
{
	size_t limit = room_limit(ROOM_RINGS, payer), held = room_held(ROOM_RINGS, payer);

	return limit > held ? limit - held : 0;
}

/* Rounds both sizes as the ring does: their halves are valid lane sizes, too. */
static size_t lane_bytes(const struct pool *pool, const struct payer *payer, size_t asked, size_t least)
{
	return pool_lane_bytes(pool, share_left(payer), agent_ring_lane_bytes(asked), agent_ring_lane_bytes(least));
}

bool budget_take_ring(struct budget *budget, struct agent_start *start)
{
	const struct payer *payer = &start->payer;
	struct pool *pool = &budget->pool;

	start->sample_lane_bytes =
		lane_bytes(pool, payer, start->sample_lane_bytes, LANE_MIN * (start->java_depth / DUET_JAVA_DEPTH));
	start->metadata_lane_bytes = lane_bytes(pool, payer, start->metadata_lane_bytes, LANE_MIN);
	if (start->tables_bytes)
		start->tables_bytes = pool_lane_bytes(pool, share_left(payer), start->tables_bytes, TABLES_MIN);
	if (!start->sample_lane_bytes || !start->metadata_lane_bytes || !room_has(ROOM_JVMS, payer, 1)) {
		room_refuse(ROOM_RINGS, payer);
		return false;
	}
	pool->promised_bytes += shared_bytes(start);
	room_add(ROOM_RINGS, payer, shared_bytes(start));
	return true;
}

void budget_give_ring(struct budget *budget, const struct agent *agent)
{
	budget->pool.promised_bytes -= shared_bytes(&agent->start);
	room_give(ROOM_RINGS, &agent->start.payer, shared_bytes(&agent->start));
}

static void release_dead(struct budget *budget, uint64_t now_ns)
{
	size_t left;

	jvms_release_dead(budget->jvms);
	left = budget->jvms->of.processes->all.len;
	budget->sweep_at = 2 * left > SWEEP_MIN ? 2 * left : SWEEP_MIN;
	budget->released_ns = now_ns;
}

static void drop_caches(void *context)
{
	struct budget *budget = context;
	const struct jvms_deps *of = &budget->jvms->of;
	const struct agents *agents = &budget->jvms->agents;

	if (!budget->pool.drops)
		log_info("memory: of %zu MB, %zu MB are left for the loader, and they are full: caches are dropped",
			 budget->pool.max_bytes >> 20, budget->pool.heap_max >> 20);
	release_dead(budget, clock_monotonic_ns());
	symbols_forget(of->symbols);
	unwinding_forget_files(of->unwinding);
	for (size_t i = 0; i < agents->len; i++)
		unwinding_forget_files(&agents->items[i]->unwinding);
	join_forget_spare(of->pending->join);
	memory_trim();
}

static void apply(const struct budget *budget)
{
	const struct pool *pool = &budget->pool;
	const struct agents *agents = &budget->jvms->agents;
	struct profile *profile = budget->jvms->of.profile;

	profile->samples.may_merge = budget->is_asked || pool->names_full;
	profile->max_bytes = pool->stacks_max;
	for (size_t i = 0; i < agents->len; i++)
		jvm_set_full(agents->items[i]->jvm, pool->names_full);
}

void budget_step(struct budget *budget, uint64_t now_ns)
{
	const struct pool_user user = {.context = budget, .measure = measure, .drop_caches = drop_caches};
	bool has_many_rings = budget->pool.promised_bytes > budget->pool.max_bytes / MANY_RINGS;

	if (budget->jvms->of.processes->all.len >= budget->sweep_at ||
	    (has_many_rings && now_ns - budget->released_ns > RELEASE_AGAIN_NS))
		release_dead(budget, now_ns);
	if (now_ns - budget->looked_ns >= LOOK_NS) {
		look(budget);
		budget->looked_ns = now_ns;
	}
	if (now_ns - budget->stepped_ns < STEP_NS)
		return;
	budget->stepped_ns = now_ns;
	pool_step(&budget->pool, &user, now_ns);
	apply(budget);
}

void budget_before_write(struct budget *budget)
{
	resolver_forget(&budget->jvms->of.pending->sink.resolver);
	symbols_forget(budget->jvms->of.symbols);
	join_forget_spare(budget->jvms->of.pending->join);
	memory_trim();
}

void budget_report_need(struct budget *budget)
{
	const struct resolver *resolver = &budget->jvms->of.pending->sink.resolver;
	struct pool_demand demand;

	measure(budget, &demand);
	pool_note_refused(&budget->pool, &demand, resolver->kept, distinct_count(&resolver->refused));
	if (!budget->pool.needed_bytes || budget->is_reported)
		return;
	budget->is_reported = true;
	log_warn("--max-memory %zu MB is too little: new stacks are under [too_many_stacks], about %zu MB are enough",
		 budget->pool.max_bytes >> 20, budget->pool.needed_bytes >> 20);
}
