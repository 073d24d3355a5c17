/* SPDX-License-Identifier: MIT */
#include "profile/sample_pack.h"

#include "base/varint.h"

/* Bits of the first byte: the fields that differ. */
enum differing {
	D_WEIGHT = 1 << 0,
	D_THREAD = 1 << 1,
	D_NODE = 1 << 2,
	D_COUNT = 1 << 3,
	D_EVENT = 1 << 4,
	D_ADDRESS = 1 << 5,
	D_TRACE = 1 << 6,
	D_SPAN = 1 << 7,
};

static unsigned int differing(const struct profile_sample *a, const struct profile_sample *b)
{
	bool is_other_trace = a->trace_high != b->trace_high || a->trace_low != b->trace_low;

	return (a->weight != b->weight ? D_WEIGHT : 0) | (a->thread != b->thread ? D_THREAD : 0) |
	       (a->node != b->node ? D_NODE : 0) | (a->count != b->count ? D_COUNT : 0) |
	       (a->event != b->event ? D_EVENT : 0) | (a->address != b->address ? D_ADDRESS : 0) |
	       (is_other_trace ? D_TRACE : 0) | (a->span != b->span ? D_SPAN : 0);
}

/* Small numbers for small differences of both signs: 0, -1, 1, -2, ... */
static uint64_t fold(uint64_t difference)
{
	return difference << 1 ^ -(difference >> 63);
}

static uint64_t unfold(uint64_t folded)
{
	return folded >> 1 ^ -(folded & 1);
}

size_t sample_pack(unsigned char *to, const struct profile_sample *before, const struct profile_sample *sample)
{
	unsigned int bits = differing(before, sample);
	unsigned char *at = to;

	*at++ = (unsigned char)bits;
	at += varint_put(at, fold(sample->time_ns - before->time_ns));
	if (bits & D_WEIGHT)
		at += varint_put(at, sample->weight);
	if (bits & D_THREAD)
		at += varint_put(at, sample->thread);
	if (bits & D_NODE)
		at += varint_put(at, sample->node);
	if (bits & D_COUNT)
		at += varint_put(at, sample->count);
	if (bits & D_EVENT)
		at += varint_put(at, sample->event);
	if (bits & D_ADDRESS)
		at += varint_put(at, sample->address);
	if (bits & D_TRACE) {
		at += varint_put(at, sample->trace_high);
		at += varint_put(at, sample->trace_low);
	}
	if (bits & D_SPAN)
		at += varint_put(at, sample->span);
	return (size_t)(at - to);
}

static uint64_t number(const unsigned char **at)
{
	uint64_t value;

	*at += varint_get(*at, VARINT_BYTES, &value);
	return value;
}

size_t sample_unpack(const unsigned char *from, struct profile_sample *sample)
{
	const unsigned char *at = from;
	unsigned int bits = *at++;

	sample->time_ns += unfold(number(&at));
	if (bits & D_WEIGHT)
		sample->weight = number(&at);
	if (bits & D_THREAD)
		sample->thread = (uint32_t)number(&at);
	if (bits & D_NODE)
		sample->node = (uint32_t)number(&at);
	if (bits & D_COUNT)
		sample->count = (uint32_t)number(&at);
	if (bits & D_EVENT)
		sample->event = (uint32_t)number(&at);
	if (bits & D_ADDRESS)
		sample->address = number(&at);
	if (bits & D_TRACE) {
		sample->trace_high = number(&at);
		sample->trace_low = number(&at);
	}
	if (bits & D_SPAN)
		sample->span = number(&at);
	return (size_t)(at - from);
}
