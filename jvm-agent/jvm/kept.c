/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "hotspot/clock.h"
#include "jvm/code.h"
#include "locked.h"

#define MAX_KEPT 512
#define MAX_BYTES (4u << 20) /* bytes of all records together */
#define KEPT_NS 5000000000ull

static struct {
	pthread_mutex_t lock;
	struct nmethod_record all[MAX_KEPT]; /* a ring, from `first`, oldest first */
	unsigned int first, count;
	size_t bytes;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t record_bytes(const struct nmethod_record *record)
{
	return record->load.pc_count * sizeof(*record->pcs) + record->load.frame_count * sizeof(*record->frames);
}

/* Shrinks the arrays to what the record uses: record_bytes() does not count the spare room. */
static void fit(struct nmethod_record *record)
{
	struct duet_code_pc *pcs = realloc(record->pcs, (record->load.pc_count + 1) * sizeof(*pcs));
	struct duet_java_frame *frames = realloc(record->frames, (record->load.frame_count + 1) * sizeof(*frames));

	record->pcs = pcs ? pcs : record->pcs;
	record->frames = frames ? frames : record->frames;
}

static void drop_oldest(void)
{
	struct nmethod_record *oldest = &kept.all[kept.first];

	kept.bytes -= record_bytes(oldest);
	nmethods_release(oldest);
	kept.first = (kept.first + 1) % MAX_KEPT;
	kept.count--;
}

void kept_add(struct nmethod_record *record)
{
	LOCKED(&kept.lock);

	fit(record);
	while (kept.count && (kept.count == MAX_KEPT || kept.bytes + record_bytes(record) > MAX_BYTES))
		drop_oldest();
	kept.bytes += record_bytes(record);
	kept.all[(kept.first + kept.count++) % MAX_KEPT] = *record;
}

static bool copy_record(const struct nmethod_record *record, struct nmethod_record *ret)
{
	size_t pc_bytes = record->load.pc_count * sizeof(*record->pcs);
	size_t frame_bytes = record->load.frame_count * sizeof(*record->frames);
	struct nmethod_record copy = {
		record->load, malloc(pc_bytes + 1), malloc(frame_bytes + 1), record->check};

	if (!copy.pcs || !copy.frames) {
		nmethods_release(&copy);
		return false;
	}
	memcpy(copy.pcs, record->pcs, pc_bytes);
	memcpy(copy.frames, record->frames, frame_bytes);
	*ret = copy;
	return true;
}

bool kept_copy(uint32_t id, struct nmethod_record *ret)
{
	LOCKED(&kept.lock);

	for (unsigned int i = 0; i < kept.count; i++)
		if (kept.all[(kept.first + i) % MAX_KEPT].load.id == id)
			return copy_record(&kept.all[(kept.first + i) % MAX_KEPT], ret);
	return false;
}

void kept_forget_old(void)
{
	uint64_t now_ns = clock_ns();
	LOCKED(&kept.lock);

	while (kept.count && now_ns - kept.all[kept.first].load.time_ns > KEPT_NS)
		drop_oldest();
}

void kept_forget(void)
{
	LOCKED(&kept.lock);

	while (kept.count)
		drop_oldest();
}
