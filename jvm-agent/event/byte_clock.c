/* SPDX-License-Identifier: MIT */
#include "event/byte_clock.h"

#include <string.h>

#include "sigsafe.h"

#define HALVINGS 6
#define LN_2 0.69314718055994530942

/* Returns exp(-x) for 0 <= x < 40: the series for x / 64, squared six times. */
static double exp_minus(double x)
{
	double y = -x / (1 << HALVINGS), term = 1, sum = 1;

	for (int i = 1; i < 12; i++) {
		term *= y / i;
		sum += term;
	}
	for (int i = 0; i < HALVINGS; i++)
		sum *= sum;
	return sum;
}

/* Where the difference would lose digits, the series of the inverse is used. */
uint64_t byte_clock_weight(uint64_t size, uint64_t interval)
{
	double x = (double)size / (double)interval;

	if (interval == 1 || x >= 40)
		return size;
	if (x < 0.01)
		return (uint64_t)((double)interval * (1 + x / 2 + x * x / 12));
	return (uint64_t)((double)size / (1 - exp_minus(x)));
}

/* Returns -ln(x) for 0 < x <= 1. The logarithm of the mantissa is the series of the inverse hyperbolic tangent. */
static double minus_ln(double x)
{
	double term, sum = 0, ratio;
	uint64_t bits;
	int exponent;

	memcpy(&bits, &x, sizeof(bits));
	exponent = (int)(bits >> 52) - 1023;
	bits = (bits & 0xfffffffffffffull) | 1023ull << 52;
	memcpy(&x, &bits, sizeof(x));
	ratio = (x - 1) / (x + 1);
	term = 2 * ratio;
	for (int i = 1; i < 24; i += 2) {
		sum += term / i;
		term *= ratio * ratio;
	}
	return -(exponent * LN_2 + sum);
}

/* xorshift. Two threads may get the same number, which does not matter. */
static uint64_t next_random(struct byte_countdown *countdown)
{
	uint64_t x = __atomic_load_n(&countdown->random, __ATOMIC_RELAXED);

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	__atomic_store_n(&countdown->random, x, __ATOMIC_RELAXED);
	return x * 0x2545f4914f6cdd1dull;
}

/* The next sample is that of the last of these bytes. */
static int64_t next_gap(const struct byte_clock *clock, struct byte_countdown *countdown)
{
	double x = (double)((next_random(countdown) >> 12) + 1) / (double)(1ull << 52);

	return (int64_t)((double)clock->interval * minus_ln(x)) + 1;
}

static void begin(const struct byte_clock *clock, struct byte_countdown *countdown, uint64_t seed)
{
	seed = (clock->seed + seed) * 0x9e3779b97f4a7c15ull;
	__atomic_store_n(&countdown->random, (seed ^ seed >> 31) * 0xbf58476d1ce4e5b9ull | 1, __ATOMIC_RELAXED);
	(void)next_random(countdown);
	__atomic_store_n(&countdown->left, next_gap(clock, countdown), __ATOMIC_RELAXED);
}

void byte_clock_start(struct byte_clock *clock, uint64_t interval, uint64_t seed)
{
	clock->interval = interval;
	clock->seed = seed;
	for (unsigned int i = 0; i < BYTE_CLOCK_THREADS; i++)
		__atomic_store_n(&clock->own[i].owner, 0, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < BYTE_CLOCK_SHARED; i++)
		begin(clock, &clock->shared[i], i);
}

/* Returns false if another thread owns the place. */
static bool owns(const struct byte_clock *clock, struct byte_countdown *own, uintptr_t thread)
{
	uintptr_t owner = 0;

	if (__atomic_load_n(&own->owner, __ATOMIC_RELAXED) == thread)
		return true;
	if (!__atomic_compare_exchange_n(&own->owner, &owner, thread, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	begin(clock, own, thread);
	return true;
}

static bool count_own(const struct byte_clock *clock, struct byte_countdown *own, int64_t bytes)
{
	int64_t left = __atomic_load_n(&own->left, __ATOMIC_RELAXED) - bytes;
	bool is_due = left <= 0;

	__atomic_store_n(&own->left, is_due ? next_gap(clock, own) : left, __ATOMIC_RELAXED);
	return is_due;
}

/* Only the thread that ends a countdown begins the next one, to which bytes counted meanwhile belong. */
static bool count_shared(const struct byte_clock *clock, struct byte_countdown *shared, int64_t bytes)
{
	int64_t left = __atomic_sub_fetch(&shared->left, bytes, __ATOMIC_RELAXED);

	if (left > 0 || left + bytes <= 0)
		return false;
	while (left <= 0)
		left = __atomic_add_fetch(&shared->left, next_gap(clock, shared) - left, __ATOMIC_RELAXED);
	return true;
}

bool byte_clock_is_due(struct byte_clock *clock, uint64_t size)
{
	int64_t bytes = size < INT64_MAX / 4 ? (int64_t)size : INT64_MAX / 4;
	uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
	struct byte_countdown *own = byte_clock_own(clock, thread);

	if (clock->interval == 1)
		return true;
	if (owns(clock, own, thread))
		return count_own(clock, own, bytes);
	return count_shared(clock, &clock->shared[(thread * 0x9e3779b97f4a7c15ull >> 41) % BYTE_CLOCK_SHARED], bytes);
}
