/* SPDX-License-Identifier: MIT */
#include "byte_clock.h"

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

static int64_t next_gap(const struct byte_clock *clock, struct byte_countdown *countdown)
{
	double x = (double)((next_random(countdown) >> 12) + 1) / (double)(1ull << 52);

	return (int64_t)((double)clock->interval * minus_ln(x));
}

void byte_clock_start(struct byte_clock *clock, uint64_t interval, uint64_t seed)
{
	clock->interval = interval;
	for (int i = 0; i < BYTE_CLOCK_COUNTDOWNS; i++) {
		struct byte_countdown *countdown = &clock->countdowns[i];

		seed += 0x9e3779b97f4a7c15ull;
		__atomic_store_n(&countdown->random, (seed ^ seed >> 31) * 0xbf58476d1ce4e5b9ull | 1, __ATOMIC_RELAXED);
		(void)next_random(countdown);
		__atomic_store_n(&countdown->left, next_gap(clock, countdown), __ATOMIC_RELAXED);
	}
}

static struct byte_countdown *own_countdown(struct byte_clock *clock)
{
	uint64_t thread = (uintptr_t)__builtin_thread_pointer();

	return &clock->countdowns[(thread * 0x9e3779b97f4a7c15ull >> 32) % BYTE_CLOCK_COUNTDOWNS];
}

/*
 * Only the thread that ends a countdown begins the next one. Bytes that other threads count meanwhile belong to the
 * next one.
 */
bool byte_clock_is_due(struct byte_clock *clock, uint64_t size)
{
	struct byte_countdown *countdown;
	int64_t bytes = size < INT64_MAX / 4 ? (int64_t)size : INT64_MAX / 4, left;

	if (clock->interval == 1)
		return true;
	countdown = own_countdown(clock);
	left = __atomic_sub_fetch(&countdown->left, bytes, __ATOMIC_RELAXED);
	if (left >= 0 || left + bytes < 0)
		return false;
	left = -left;
	do {
		left = __atomic_add_fetch(&countdown->left, left + next_gap(clock, countdown), __ATOMIC_RELAXED);
		left = left < 0 ? -left : 0;
	} while (left);
	return true;
}
