/* SPDX-License-Identifier: MIT */
#include "profile/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/varint.h"

/* ---- samples in few bytes, each as what differs from the one before: most share event, weight and thread ---- */

#define SAMPLE_PACK_BYTES 128 /* no sample takes more */

/* The fields that may differ, each with its bit of the first byte. The two of a trace have one, so have the last. */
#define PACKED_FIELDS(X) \
	X(0, weight) X(1, thread) X(2, node) X(3, count) X(4, event) X(5, address) X(6, trace_high) X(6, trace_low) \
	X(7, span) X(7, attributes)

static unsigned int differing(const struct profile_sample *a, const struct profile_sample *b)
{
#define DIFFERS(bit, field) bits |= (unsigned int)(a->field != b->field) << (bit);
	unsigned int bits = 0;

	PACKED_FIELDS(DIFFERS)
	return bits;
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

/* The first sample comes after one of zeros. Returns how many bytes of `to`, which has SAMPLE_PACK_BYTES, are used. */
static size_t sample_pack(unsigned char *to, const struct profile_sample *before, const struct profile_sample *sample)
{
#define PUT(bit, field) \
	if (bits & 1u << (bit)) \
		at += varint_put(at, sample->field);
	unsigned int bits = differing(before, sample);
	unsigned char *at = to;

	*at++ = (unsigned char)bits;
	at += varint_put(at, fold(sample->time_ns - before->time_ns));
	PACKED_FIELDS(PUT)
	return (size_t)(at - to);
}

static uint64_t number(const unsigned char **at)
{
	uint64_t value;

	*at += varint_get(*at, VARINT_BYTES, &value);
	return value;
}

/*
 * Makes the sample of the one before, in place. Returns how many bytes it took, which may be of no sample if they were
 * not packed. SAMPLE_PACK_BYTES of `from` are readable.
 */
static size_t sample_unpack(const unsigned char *from, struct profile_sample *sample)
{
#define GET(bit, field) \
	if (bits & 1u << (bit)) \
		sample->field = (__typeof__(sample->field))number(&at);
	const unsigned char *at = from;
	unsigned int bits = *at++;

	sample->time_ns += unfold(number(&at));
	PACKED_FIELDS(GET)
	return (size_t)(at - from);
}

#define PACKED_BYTES 16384 /* written at once */

void timeline_init(struct timeline *timeline)
{
	*timeline = (struct timeline){.fd = -1};
}

void timeline_release(struct timeline *timeline)
{
	if (!timeline)
		return;
	if (timeline->fd >= 0)
		close(timeline->fd);
	vec_release(&timeline->recent);
	vec_release(&timeline->ends);
	timeline_init(timeline);
}

static uint64_t in_file(const struct timeline *timeline)
{
	return timeline->len - timeline->recent.len;
}

/* Writes the recent samples at the descriptor's offset. Adds the number of bytes to *end. Returns 0 or -errno. */
static int write_packed(struct timeline *timeline, uint64_t *end)
{
	unsigned char packed[PACKED_BYTES];
	struct profile_sample before = {0};
	size_t len = 0;
	int err = 0;

	for (size_t i = 0; !err && i < timeline->recent.len; i++) {
		len += sample_pack(packed + len, &before, &timeline->recent.items[i]);
		before = timeline->recent.items[i];
		if (len <= sizeof(packed) - SAMPLE_PACK_BYTES && i + 1 < timeline->recent.len)
			continue;
		err = io_write_all(timeline->fd, packed, len);
		*end += len;
		len = 0;
	}
	return err;
}

static uint64_t block_start(const struct timeline *timeline, size_t block)
{
	return block ? timeline->ends.items[block - 1] : 0;
}

/* Makes a block of the file of the recent samples, of which there are TIMELINE_RECENT. */
static int spill(struct timeline *timeline)
{
	uint64_t end = block_start(timeline, timeline->ends.len);
	int err;

	if (timeline->fd < 0)
		timeline->fd = io_open_unlinked();
	if (timeline->fd < 0)
		return timeline->fd;
	if (lseek(timeline->fd, (off_t)end, SEEK_SET) < 0)
		return -errno;
	err = write_packed(timeline, &end);
	if (!err)
		err = vec_push(&timeline->ends, end);
	if (!err)
		vec_clear(&timeline->recent);
	return err;
}

static int compare_times(const void *a, const void *b)
{
	const struct profile_sample *x = a, *y = b;

	return vec_order(x->time_ns, y->time_ns);
}

static int compare_stacks(const void *a, const void *b)
{
	const struct profile_sample *x = a, *y = b;

	return vec_order(x->event, y->event) ?: vec_order(x->thread, y->thread) ?:
	       vec_order(x->node, y->node) ?: vec_order(x->time_ns, y->time_ns);
}

/* Merges samples of equal event, thread and stack. Returns how many are left. */
static size_t merge_samples(struct profile_sample *samples, size_t count)
{
	size_t kept = 0;

	if (!count)
		return 0;
	qsort(samples, count, sizeof(*samples), compare_stacks);
	for (size_t i = 1; i < count; i++) {
		const struct profile_sample *one = &samples[i], *last = &samples[kept];

		if (one->event == last->event && one->thread == last->thread && one->node == last->node) {
			samples[kept].weight += samples[i].weight;
			samples[kept].count += samples[i].count;
			samples[kept].address = 0;
			trace_keep_common(&samples[kept], &samples[i]);
		} else {
			samples[++kept] = samples[i];
		}
	}
	qsort(samples, kept + 1, sizeof(*samples), compare_times);
	return kept + 1;
}

/* Merges those in memory. It is called again when the number that is left has doubled. */
static void merge(struct timeline *timeline)
{
	struct profile_sample *samples = timeline->recent.items;
	size_t before = timeline->recent.len;
	size_t written = timeline->written > in_file(timeline) ? timeline->written - in_file(timeline) : 0;
	size_t kept = merge_samples(samples, written);
	size_t rest = merge_samples(samples + written, before - written);

	memmove(samples + kept, samples + written, rest * sizeof(*samples));
	timeline->written -= written - kept;
	timeline->recent.len = kept + rest;
	timeline->len -= before - timeline->recent.len;
	timeline->merge_at = 2 * timeline->recent.len > TIMELINE_RECENT ? 2 * timeline->recent.len : TIMELINE_RECENT;
}

int timeline_add(struct timeline *timeline, const struct profile_sample *sample)
{
	if (timeline->recent.len >= TIMELINE_RECENT && !timeline->stuck)
		timeline->stuck = spill(timeline) < 0;
	if (timeline->stuck && timeline->may_merge && timeline->recent.len >= timeline->merge_at &&
	    timeline->recent.len >= TIMELINE_RECENT)
		merge(timeline);
	if (vec_push(&timeline->recent, *sample) < 0)
		return -ENOMEM;
	timeline->len++;
	timeline->count += sample->count;
	return 0;
}

/* Visits the samples of the block without the first `skip`. */
static int visit_packed(const unsigned char *at, const unsigned char *end, size_t skip, timeline_visitor visit,
			void *context)
{
	struct profile_sample sample = {0};
	int err = 0;

	for (size_t i = 0; !err && i < TIMELINE_RECENT; i++) {
		if (at >= end)
			return -EIO;
		at += sample_unpack(at, &sample);
		if (i >= skip)
			err = visit(context, &sample);
	}
	return err;
}

static int visit_block(const struct timeline *timeline, size_t block, size_t skip, timeline_visitor visit,
		       void *context)
{
	uint64_t start = block_start(timeline, block);
	size_t bytes = timeline->ends.items[block] - start;
	unsigned char *packed = calloc(1, bytes + SAMPLE_PACK_BYTES);
	ssize_t got = packed ? pread(timeline->fd, packed, bytes, (off_t)start) : -1;
	int err;

	if (got != (ssize_t)bytes)
		err = !packed ? -ENOMEM : got < 0 ? -errno : -EIO;
	else
		err = visit_packed(packed, packed + bytes, skip, visit, context);
	free(packed);
	return err;
}

int timeline_rest(const struct timeline *timeline, uint64_t skip, timeline_visitor visit, void *context)
{
	uint64_t stored = in_file(timeline);
	size_t skipped = (size_t)(skip < stored ? 0 : skip - stored);
	int err = 0;

	for (uint64_t at = skip; !err && at < stored; at += TIMELINE_RECENT - at % TIMELINE_RECENT)
		err = visit_block(timeline, at / TIMELINE_RECENT, at % TIMELINE_RECENT, visit, context);
	for (size_t i = skipped; !err && i < timeline->recent.len; i++)
		err = visit(context, &timeline->recent.items[i]);
	return err;
}

int timeline_each(const struct timeline *timeline, timeline_visitor visit, void *context)
{
	return timeline_rest(timeline, 0, visit, context);
}

int timeline_remake(struct timeline *timeline, struct timeline *kept, timeline_visitor visit, void *context)
{
	int err;

	timeline_init(kept);
	err = timeline_each(timeline, visit, context);
	timeline_release(err ? kept : timeline);
	if (!err)
		*timeline = *kept;
	return err;
}

void trace_id_text(const struct profile_sample *sample, char ret[TRACE_ID_DIGITS + 1])
{
	snprintf(ret, TRACE_ID_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, sample->trace_high, sample->trace_low);
}

void span_id_text(const struct profile_sample *sample, char ret[SPAN_ID_DIGITS + 1])
{
	snprintf(ret, SPAN_ID_DIGITS + 1, "%016" PRIx64, sample->span);
}

static int digit_of(char letter)
{
	if (letter >= '0' && letter <= '9')
		return letter - '0';
	if (letter >= 'a' && letter <= 'f')
		return letter - 'a' + 10;
	return letter >= 'A' && letter <= 'F' ? letter - 'A' + 10 : -1;
}

/* 16 digits. */
static bool parse_number(const char *text, uint64_t *ret)
{
	uint64_t number = 0;

	for (size_t i = 0; i < SPAN_ID_DIGITS; i++) {
		int digit = digit_of(text[i]);

		if (digit < 0)
			return false;
		number = number << 4 | (unsigned int)digit;
	}
	*ret = number;
	return true;
}

bool trace_id_parse(struct profile_sample *sample, const char *text, size_t bytes)
{
	uint64_t high, low;

	if (bytes != TRACE_ID_DIGITS || !parse_number(text, &high) || !parse_number(text + SPAN_ID_DIGITS, &low))
		return false;
	sample->trace_high = high;
	sample->trace_low = low;
	return true;
}

bool span_id_parse(struct profile_sample *sample, const char *text, size_t bytes)
{
	return bytes == SPAN_ID_DIGITS && parse_number(text, &sample->span);
}
