/* SPDX-License-Identifier: MIT */
/*
 * Safepoints: the time until all Java threads have stopped, and the time in which they stand still. JVMTI does not
 * report them, but HotSpot counts them (runtimeService.cpp, counters sun.rt.*). The agent's thread reads these counters
 * every 100 ms. Safepoints between two reads share their times in equal parts, so that numbers and sums are exact.
 */
#include <errno.h>
#include <string.h>

#include "hotspot/clock.h"
#include "hotspot/jvmstructs.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "memory.h"
#include "sample/sample.h"
#include "tap.h"
#include "wait/waiting.h"

#define READS 8
#define NS_PER_SEC 1000000000ull

/* Values of HotSpot's counters. Times are in ticks. */
struct counted {
	uint64_t safepoints;
	uint64_t stopping; /* until all threads have stopped */
	uint64_t total; /* the same, and what follows */
};

static struct {
	struct tap_event event;
	uintptr_t safepoints, stopping, total; /* addresses of the counters */
	uint64_t ticks_per_second; /* 0: not known yet */
	struct counted reported; /* what samples have been written for */
} safepoints;

/* Returns 0 for a counter that cannot be read: the JVM may free them when it ends. */
static uint64_t read_counter(uintptr_t address)
{
	uint64_t value;

	return memory_copy(&value, address, sizeof(value)) == sizeof(value) ? value : 0;
}

static struct counted read_once(void)
{
	return (struct counted){read_counter(safepoints.safepoints), read_counter(safepoints.stopping),
				read_counter(safepoints.total)};
}

/*
 * Reads the counters at a moment without a safepoint: its number is counted when it begins, its time when it ends. The
 * call of the JVM waits for the end of one that has begun. Returns false if there is always another one.
 */
static bool read_counters(struct counted *ret)
{
	struct counted before, after = read_once();
	JNIEnv *env = jvm_own_env();

	for (int i = 0; env && i < READS; i++) {
		before = after;
		(void)(*env)->ExceptionCheck(env);
		after = read_once();
		if (!memcmp(&before, &after, sizeof(before))) {
			*ret = after;
			return true;
		}
	}
	return false;
}

/* A JVM that starts makes this counter after those of safepoints, and after an agent can come. */
static bool knows_ticks(void)
{
	uintptr_t frequency = safepoints.ticks_per_second ? 0 : jvmstructs_counter("sun.os.hrt.frequency");

	if (frequency)
		safepoints.ticks_per_second = read_counter(frequency);
	return safepoints.ticks_per_second;
}

static uint64_t ns_of(uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * NS_PER_SEC / safepoints.ticks_per_second);
}

/* Writes the sample of the i-th of `count` safepoints that took `ns`; 1 ns at least, so that each has its samples. */
static void take(struct stay *stay, const char *state, uint64_t ns, uint64_t i, uint64_t count)
{
	uint64_t part = ns * (i + 1) / count - ns * i / count;
	struct state_attribute attribute;
	struct tap_sample from = {
		.event = safepoints.event.index,
		.weight = wait_weight(part ? part : 1, safepoints.event.every.interval, clock_ns()),
		.attributes = &attribute,
		.attribute_bytes = state_attribute_set(&attribute, state),
		.waits = true,
	};

	if (from.weight)
		sample_without_stack(stay, &from, clock_ns());
}

static void report(struct stay *stay)
{
	struct counted now;
	uint64_t count, stopping, total;

	if (read_counter(safepoints.safepoints) == safepoints.reported.safepoints || !knows_ticks() ||
	    !read_counters(&now) || now.safepoints < safepoints.reported.safepoints ||
	    now.total < safepoints.reported.total)
		return;
	count = now.safepoints - safepoints.reported.safepoints;
	stopping = ns_of(now.stopping - safepoints.reported.stopping);
	total = ns_of(now.total - safepoints.reported.total);
	safepoints.reported = now;
	for (uint64_t i = 0; i < count; i++) {
		take(stay, "time_to_safepoint", stopping, i, count);
		take(stay, "at_safepoint", total > stopping ? total - stopping : 0, i, count);
	}
}

static void safepoint_rescan(void)
{
	STAY(stay);

	if (stay)
		report(stay);
}

static void safepoint_stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	safepoint_rescan();
}

static int safepoint_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	safepoints.safepoints = jvmstructs_counter("sun.rt.safepoints");
	safepoints.stopping = jvmstructs_counter("sun.rt.safepointSyncTime");
	safepoints.total = jvmstructs_counter("sun.rt.safepointTime");
	safepoints.ticks_per_second = 0;
	*ret_why = "the JVM does not count safepoints (-XX:-UsePerfData)";
	if (!safepoints.safepoints || !safepoints.stopping || !safepoints.total)
		return -ENOTSUP;
	*ret_why = "the JVM is in safepoints all the time";
	return read_counters(&safepoints.reported) ? 0 : -EBUSY;
}

const struct agent_tap tap_safepoint = {
	.kind = DUET_AGENT_EVENT_SAFEPOINT,
	.event = &safepoints.event,
	.start = safepoint_start,
	.stop = safepoint_stop,
	.rescan = safepoint_rescan,
};
