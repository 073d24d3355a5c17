/* SPDX-License-Identifier: MIT */
#include "duet_jvm.h"
#include "event/byte_clock.h"
#include "event/shared.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"

#define FIRST_VERSION 12 /* JDK 11 loses samples, too: sampling closely makes it worse */
#define LAST_VERSION 24
#define FEWEST_SAMPLES 100
#define MOST_ERROR 50 /* the interval is shortened when one in so many samples may be too many, */
#define WANTED_ERROR 100 /* until it is one in so many; */
#define MOST_BYTES 200 /* or if one in so many bytes is outside, */
#define PARTS 4 /* until an object outside is so many intervals long */
#define LEAST_INTERVAL (16 << 10) /* a call takes the JVM half a microsecond */
#define SMALL_SHARE 64 /* HotSpot never wastes more of a buffer for a new one, at first */
#define UNIT 1024

/* Atomic. `outside` and `outside_bytes` are estimates of all objects outside, sampled or not; one counts as UNIT. */
static uint64_t samples, outside, outside_bytes;

static uintptr_t field(uintptr_t thread, uint16_t offset)
{
	return *(const uintptr_t *)(thread + offset);
}

/*
 * Returns how many objects outside of buffers a sampled object stands for, times UNIT. It stands for weight / size
 * objects of its size. If it is outside, all of them are. If it is in the buffer, those are outside that met a buffer
 * with less room than they need. The caller is a callback of the JVM, in the thread that allocates.
 */
static uint64_t share_outside(const struct duet_jvm_allocation *fields, jobject object, uint64_t size, uint64_t weight)
{
	uintptr_t thread = jvm_current_thread(), at = *(const uintptr_t *)object, start, end;

	if (!thread || fields->buffer_start == DUET_JVM_NO_FIELD || fields->buffer_end == DUET_JVM_NO_FIELD)
		return 0;
	start = field(thread, fields->buffer_start);
	end = field(thread, fields->buffer_end);
	if (!start || end <= start)
		return 0;
	if (at < start || at >= end)
		return weight * UNIT / size;
	return size > (end - start) / SMALL_SHARE ? weight * UNIT / (end - start) : 0;
}

void outside_objects_begin(void)
{
	__atomic_store_n(&samples, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&outside, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&outside_bytes, 0, __ATOMIC_RELAXED);
}

void outside_objects_count(struct stay *stay, jobject object, uint64_t size, uint64_t interval)
{
	const struct duet_jvm_layout *layout = __atomic_load_n(&stay->layout, __ATOMIC_ACQUIRE);
	uint64_t share;

	if (jvm.version < FIRST_VERSION || jvm.version > LAST_VERSION || !layout)
		return;
	share = share_outside(&layout->allocation, object, size, byte_clock_weight(size, interval));
	__atomic_fetch_add(&samples, 1, __ATOMIC_RELAXED);
	if (!share)
		return;
	__atomic_fetch_add(&outside, share, __ATOMIC_RELAXED);
	__atomic_fetch_add(&outside_bytes, share * size / UNIT, __ATOMIC_RELAXED);
}

uint64_t outside_objects_interval(uint64_t interval)
{
	double of = (double)__atomic_load_n(&samples, __ATOMIC_RELAXED), closer = (double)interval;
	double many = (double)__atomic_load_n(&outside, __ATOMIC_RELAXED) / UNIT;
	double bytes = (double)__atomic_load_n(&outside_bytes, __ATOMIC_RELAXED);

	if (of < FEWEST_SAMPLES || interval <= LEAST_INTERVAL)
		return interval;
	if (many * MOST_ERROR > of)
		closer = (double)interval * of / (many * WANTED_ERROR);
	if (bytes * MOST_BYTES > of * (double)interval && bytes / many / PARTS < closer)
		closer = bytes / many / PARTS;
	return closer < LEAST_INTERVAL ? LEAST_INTERVAL : (uint64_t)closer;
}
