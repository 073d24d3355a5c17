/* SPDX-License-Identifier: MIT */
/*
 * Memory that native code takes from the C library, from an allocator that replaces it, or by mmap(). There are three
 * events: all memory that is taken, the part of its samples that is freed again, and the memory that is not freed
 * before the end. In the linkage tables of all libraries, functions of the agent replace those of the allocator. They
 * count the bytes and call the allocator's function. They stay valid after the hooks are removed: a thread may be in
 * one, and a library may have copied its address. Calls within the allocator do not go through a hook: see linkage.h.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "event/byte_clock.h"
#include "hook/linkage.h"
#include "hotspot/clock.h"
#include "jvm/stay.h"
#include "sample/regs.h"
#include "sample/sample.h"
#include "tap.h"
#include "wait/waits.h"

#define HELD_TABLES 4 /* a power of 2 */
#define HELD_MOST_BYTES (256ull << 20) /* a stack of 100 frames takes 1.5 KB */

struct memory_event {
	struct tap_event tap;
	struct byte_clock clock;
};

static struct memory_event taken, freed, leaked;
/*
 * What is known of memory until it is freed, by address: the kept samples of the event `leaked`, and which memory the
 * event `taken` has sampled. `held` counts them by a hash: most calls of free() need not search.
 */
static struct waits held_samples[HELD_TABLES]; /* by a hash: a million places, whose pages cost nothing until used */
static uint8_t held[1 << 16];
static uint64_t held_bytes; /* of the kept samples; atomic */

static bool is_open(const struct memory_event *event)
{
	return __atomic_load_n(&event->tap.is_open, __ATOMIC_RELAXED);
}

struct held_memory {
	uintptr_t address;
	uint64_t weight;
	struct sample_kept *sample; /* of `leaked`, or NULL */
	bool is_taken; /* `taken` has sampled it, and `freed` reports when it is freed */
};

static uint8_t *held_count(const void *memory)
{
	return &held[((uintptr_t)memory * 0x9e3779b97f4a7c15ull) >> 48];
}

static uint64_t bytes_of(const struct held_memory *entry)
{
	const struct sample_kept *sample = entry->sample;

	return sizeof(*entry) + (sample ? sizeof(*sample) + sample->bytes + sample->half : 0);
}

static void drop(struct held_memory *entry)
{
	if (!entry)
		return;
	__atomic_fetch_sub(&held_bytes, bytes_of(entry), __ATOMIC_RELAXED);
	free(entry->sample);
	free(entry);
}

static struct waits *table_of(const void *memory)
{
	return &held_samples[((uintptr_t)memory * 0xd6e8feb86659fd93ull >> 40) % HELD_TABLES];
}

/* Returns false when there is no room; the entry is then dropped. A count stays at its highest value. */
static bool hold(const void *memory, struct held_memory *entry)
{
	uint8_t *count = held_count(memory);

	if (__atomic_load_n(count, __ATOMIC_RELAXED) < UINT8_MAX)
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	if (waits_put(table_of(memory), (uintptr_t)memory, entry))
		return true;
	drop(entry);
	return false;
}

static inline bool may_be_held(const void *memory)
{
	return __atomic_load_n(held_count(memory), __ATOMIC_RELAXED);
}

/* Call before the memory is freed: another thread may get it immediately afterwards. */
static struct held_memory *let_go(const void *memory)
{
	uint8_t *count = held_count(memory);
	struct held_memory *entry;

	if (!memory || !may_be_held(memory))
		return NULL;
	entry = waits_take(table_of(memory), (uintptr_t)memory);
	if (entry && __atomic_load_n(count, __ATOMIC_RELAXED) < UINT8_MAX)
		__atomic_fetch_sub(count, 1, __ATOMIC_RELAXED);
	return entry;
}

/* Takes ownership of the entry, which may be NULL when there was no room for it. */
static void hold_or_count(struct stay *stay, const void *memory, struct held_memory *entry)
{
	if (entry)
		__atomic_fetch_add(&held_bytes, bytes_of(entry), __ATOMIC_RELAXED);
	if (!entry || !hold(memory, entry))
		duet_ring_count(stay->ring.page, DUET_AGENT_NO_SLOT);
}

static void keep_sample(struct stay *stay, struct held_memory *entry, const struct regs *caller, size_t bytes)
{
	struct tap_sample from = {
		.event = leaked.tap.index,
		.weight = byte_clock_weight(bytes, leaked.clock.interval),
		.caller = caller,
	};

	entry->weight = from.weight;
	entry->sample = sample_keep(stay, &from, malloc);
}

/* Another thread may get the memory as soon as it is freed, so `time_ns` is from before that. */
static void record_freed(uintptr_t address, uint64_t time_ns)
{
	int saved_errno = errno;
	STAY(stay);
	struct address_attribute attribute;
	struct tap_sample from = {
		.event = freed.tap.index,
		.weight = 1,
		.attributes = &attribute,
		.attribute_bytes = address_attribute_set(&attribute, address),
		.waits = taken.clock.interval == 1,
	};

	if (stay && is_open(&freed))
		sample_without_stack(stay, &from, time_ns);
	errno = saved_errno;
}

/* Call with what let_go() returned: the memory is freed, or is about to be. */
static void end_entry(struct held_memory *entry, uint64_t time_ns)
{
	if (entry && entry->is_taken)
		record_freed(entry->address, time_ns);
	drop(entry);
}

enum { TAKEN = 1, LEAKED = 2 }; /* events for which a piece of memory is sampled */

static inline bool passes(struct memory_event *event, size_t bytes)
{
	return !is_open(event) || byte_clock_passes(&event->clock, bytes);
}

/* The events for which these bytes are not counted yet. Those of a failed call may count: the mean stays the same. */
static inline unsigned int not_passed(size_t bytes)
{
	return (passes(&taken, bytes) ? 0 : TAKEN) | (passes(&leaked, bytes) ? 0 : LEAKED);
}

static bool is_due(struct memory_event *event, size_t bytes)
{
	return is_open(event) && byte_clock_is_due(&event->clock, bytes);
}

/* A call of `function`, which has returned `memory`. */
struct memory_call {
	uintptr_t function;
	const void *memory;
	size_t bytes;
};

static void sample_taken(struct stay *stay, const struct regs *caller, const struct memory_call *call)
{
	bool is_as_called = taken.tap.flags & DUET_AGENT_AS_CALLED;
	struct address_attribute address;
	struct tap_sample from = {
		.event = taken.tap.index,
		.weight = is_as_called ? call->bytes : byte_clock_weight(call->bytes, taken.clock.interval),
		.attributes = &address,
		.attribute_bytes = address_attribute_set(&address, (uintptr_t)call->memory),
		.caller = caller,
		.callee = is_as_called ? call->function : 0,
		.waits = taken.clock.interval == 1,
	};

	sample_here(stay, &from);
}

static void hold_sampled(struct stay *stay, const struct regs *caller, const struct memory_call *call,
			 unsigned int events)
{
	bool has_room = __atomic_load_n(&held_bytes, __ATOMIC_RELAXED) < HELD_MOST_BYTES;
	struct held_memory *entry = has_room ? calloc(1, sizeof(*entry)) : NULL;

	if (entry && events & LEAKED)
		keep_sample(stay, entry, caller, call->bytes);
	if (entry) {
		entry->address = (uintptr_t)call->memory;
		entry->is_taken = events & TAKEN;
	}
	if (entry && !entry->sample && !entry->is_taken)
		free(entry);
	else
		hold_or_count(stay, call->memory, entry);
}

static void sample(unsigned int events, const struct regs *caller, const struct memory_call *call)
{
	int saved_errno = errno;
	STAY(stay);

	if (events & TAKEN && !is_open(&taken))
		events &= ~(unsigned int)TAKEN;
	if (events & LEAKED && !is_open(&leaked))
		events &= ~(unsigned int)LEAKED;
	if (stay && events & TAKEN)
		sample_taken(stay, caller, call);
	if (!is_open(&freed))
		events &= ~(unsigned int)TAKEN;
	if (stay && events)
		hold_sampled(stay, caller, call, events);
	errno = saved_errno;
}

/* Call with what not_passed() returned. Not part of a hook, which saves fewer registers then. */
__attribute__((noinline)) static void sample_if_due(unsigned int events, struct regs caller, struct memory_call call)
{
	if (events & TAKEN && !is_due(&taken, call.bytes))
		events &= ~(unsigned int)TAKEN;
	if (events & LEAKED && !is_due(&leaked, call.bytes))
		events &= ~(unsigned int)LEAKED;
	if (events && call.memory && call.bytes)
		sample(events, &caller, &call);
}

/* A macro, because REGS_OF_CALLER() is about the function that contains it. `size` is named twice. */
#define COUNT(called, result, size) \
	do { \
		unsigned int events = not_passed(size); \
\
		if (__builtin_expect(events, 0)) \
			sample_if_due(events, REGS_OF_CALLER(), \
				      (struct memory_call){(uintptr_t)(called), result, size}); \
	} while (0)

/* A function that returns memory. */
#define HOOK_OF(function, size, parameters, ...) \
	static void *hook_##function parameters \
	{ \
		void *memory = function(__VA_ARGS__); \
\
		COUNT(function, memory, size); \
		return memory; \
	}

HOOK_OF(malloc, bytes, (size_t bytes), bytes)
HOOK_OF(calloc, count *bytes, (size_t count, size_t bytes), count, bytes)
HOOK_OF(aligned_alloc, bytes, (size_t alignment, size_t bytes), alignment, bytes)
HOOK_OF(memalign, bytes, (size_t alignment, size_t bytes), alignment, bytes)
HOOK_OF(valloc, bytes, (size_t bytes), bytes)

/* Not part of the hook, which saves no registers then. */
__attribute__((noinline)) static void end_held(const void *memory)
{
	struct held_memory *entry = let_go(memory);

	if (entry)
		end_entry(entry, clock_ns());
}

static void hook_free(void *memory)
{
	if (__builtin_expect(may_be_held(memory), 0))
		end_held(memory);
	free(memory);
}

/* A piece of memory whose size changes counts as freed and taken again. If the change fails, nothing has changed. */
static void *hook_realloc(void *old, size_t bytes)
{
	struct held_memory *entry = let_go(old);
	uint64_t freed_ns = entry ? clock_ns() : 0;
	void *memory = realloc(old, bytes);

	if (!memory && bytes && entry)
		(void)hold(old, entry);
	else
		end_entry(entry, freed_ns);
	COUNT(realloc, memory, bytes);
	return memory;
}

static int hook_posix_memalign(void **ret, size_t alignment, size_t bytes)
{
	int error = posix_memalign(ret, alignment, bytes);

	COUNT(posix_memalign, error ? NULL : *ret, bytes);
	return error;
}

/*
 * Anonymous memory that may be used counts. What is only reserved does not, and neither do files. Memory at an address
 * that is mapped already replaces what was there. Async-profiler does not count it.
 */
static void *hook_mmap(void *address, size_t bytes, int rights, int flags, int file, off_t offset)
{
	void *memory = mmap(address, bytes, rights, flags, file, offset);
	bool counts = memory != MAP_FAILED && flags & MAP_ANONYMOUS && rights != PROT_NONE &&
		      !(taken.tap.flags & DUET_AGENT_AS_CALLED);
	struct held_memory *replaced = memory != MAP_FAILED ? let_go(memory) : NULL;

	if (replaced)
		end_entry(replaced, clock_ns());
	COUNT(mmap, counts ? memory : NULL, bytes);
	return memory;
}

/* What is moved stays what was mapped before. A mapping of no bytes, which is shared, is mapped once more. */
static void *hook_mremap(void *old, size_t old_bytes, size_t bytes, int flags, void *address)
{
	struct held_memory *entry = old_bytes ? let_go(old) : NULL;
	void *memory = mremap(old, old_bytes, bytes, flags, address);
	struct held_memory *replaced = memory != MAP_FAILED ? let_go(memory) : NULL;

	if (replaced)
		end_entry(replaced, clock_ns());
	if (entry)
		(void)hold(memory != MAP_FAILED ? memory : old, entry);
	return memory;
}

static int hook_munmap(void *memory, size_t bytes)
{
	struct held_memory *entry = let_go(memory);
	uint64_t freed_ns = entry ? clock_ns() : 0;
	int error = munmap(memory, bytes);

	if (error && entry)
		(void)hold(memory, entry);
	else
		end_entry(entry, freed_ns);
	return error;
}

#define HOOK(function) {#function, (uintptr_t)hook_##function, true, 0, NULL}

static struct linkage_hook hooks[] = {
	HOOK(malloc),
	HOOK(calloc),
	HOOK(realloc),
	HOOK(free),
	HOOK(posix_memalign),
	HOOK(aligned_alloc),
	HOOK(memalign),
	HOOK(valloc),
	{"mmap", (uintptr_t)hook_mmap, false, 0, "mmap64"},
	{"mremap", (uintptr_t)hook_mremap, false, 0, NULL},
	{"munmap", (uintptr_t)hook_munmap, false, 0, NULL},
};

static struct linkage_set set = {.hooks = hooks, .count = sizeof(hooks) / sizeof(hooks[0])};

static int start(const struct agent_tap *tap, const struct duet_agent_event *asked, const char **ret_why)
{
	struct memory_event *event = tap->own;
	bool are_installed = is_open(&taken) || is_open(&freed) || is_open(&leaked);

	*ret_why = "the functions that take memory are not found in the agent's linkage table";
	if (!are_installed && !linkage_open(&set))
		return -ENOENT;
	byte_clock_start(&event->clock, asked->interval, clock_ns());
	tap_event_open(&event->tap, asked);
	if (!are_installed)
		linkage_install();
	return 0;
}

static void stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	struct memory_event *event = tap->own;

	tap_event_close(&event->tap);
	if (is_open(&taken) || is_open(&freed) || is_open(&leaked))
		return;
	linkage_close(&set);
}

static void drop_value(void *context, void *value)
{
	drop(value);
}

static void end_all(void (*take)(void *context, void *value), void *context)
{
	for (int i = 0; i < HELD_TABLES; i++)
		waits_end(&held_samples[i], take, context);
}

/* Drops memory that a thread held after the end of the last recording. */
static void begin_held(void)
{
	if (is_open(&freed) || is_open(&leaked))
		return;
	end_all(drop_value, NULL);
	memset(held, 0, sizeof(held));
}

static int held_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	begin_held();
	return start(tap, event, ret_why);
}

static void freed_stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	stop(tap, ended_ns);
	if (!is_open(&leaked))
		end_all(drop_value, NULL);
}

struct leaks {
	struct stay *stay;
	uint64_t ended_ns;
};

static void write_leak(void *context, void *value)
{
	const struct leaks *leaks = context;
	struct held_memory *entry = value;

	if (leaks->stay && entry->sample)
		sample_write_kept(leaks->stay, entry->sample, leaks->ended_ns, entry->weight,
				  SAMPLE_OWN_ROOM_MS);
}

static void write_and_drop(void *context, void *value)
{
	write_leak(context, value);
	drop(value);
}

/* For memory that was freed while it was written. */
static void end_written(void *context, void *value)
{
	end_entry(value, clock_ns());
}

/* What is freed meanwhile may be reported or not. */
static void leaked_flush(uint64_t ended_ns)
{
	STAY(stay);
	struct leaks leaks = {.stay = stay, .ended_ns = ended_ns};

	for (int i = 0; i < HELD_TABLES; i++)
		waits_visit(&held_samples[i], write_leak, end_written, &leaks);
}

static void leaked_stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	STAY(stay);
	struct leaks leaks = {.stay = stay, .ended_ns = ended_ns};

	stop(tap, ended_ns);
	end_all(write_and_drop, &leaks);
}

const struct agent_tap tap_nativemem = {
	.kind = DUET_AGENT_EVENT_NATIVEMEM,
	.needs_no_jvm = true,
	.start = start,
	.stop = stop,
	.own = &taken,
	.rescan = linkage_install,
};

const struct agent_tap tap_free = {
	.kind = DUET_AGENT_EVENT_FREE,
	.needs_no_jvm = true,
	.start = held_start,
	.stop = freed_stop,
	.own = &freed,
	.rescan = linkage_install,
};

const struct agent_tap tap_leak = {
	.kind = DUET_AGENT_EVENT_LEAK,
	.needs_no_jvm = true,
	.start = held_start,
	.stop = leaked_stop,
	.own = &leaked,
	.flush = leaked_flush,
	.rescan = linkage_install,
};
