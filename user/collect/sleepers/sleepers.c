/* SPDX-License-Identifier: MIT */
#include "collect/sleepers/sleepers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/buf.h"
#include "base/counters.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/programs.h"
#include "collect/records/validate.h"
#include "collect/sleepers/sleeper_walk.h"
#include "duet_config.h"
#include "proc/process.h"

#include "duet.skel.h"

#define READ_BYTES (128u << 10) /* the records of as many threads as one message of the helper answers */
#define BYTES_MAX (64u << 20) /* of all walked samples together */

struct sleepers {
	struct duet_bpf *bpf; /* not owned */
	uint32_t user_depth;
	struct bpf_link *look;
	struct bpf_link *report;
	struct map by_tid; /* duet_sleeper.tid -> struct sleeper_walked, owned */
	size_t bytes; /* bytes of these samples */
	struct vec(const struct duet_sleeper *) shown; /* threads to walk; they are in the bytes that were read last */
	struct process_table *processes; /* not owned; valid while sleepers_walk() runs */
	struct sleeper_walker *walker; /* not NULL while sleepers_walk() runs, once a thread was shown */

	uint64_t edge_ns; /* the edge of the last sleepers_ask() */
	sleepers_handler handler; /* handler of sleepers_preview(), while that runs */
	void *context;
};

int sleepers_open(struct sleepers **ret, struct duet_bpf *bpf, uint32_t user_depth)
{
	struct sleepers *sleepers = calloc(1, sizeof(*sleepers));
	int err;

	if (!sleepers)
		return -ENOMEM;
	sleepers->bpf = bpf;
	sleepers->user_depth = user_depth;
	err = programs_attach(&sleepers->look, bpf->progs.offcpu_look, NULL);
	if (!err)
		err = programs_attach(&sleepers->report, bpf->progs.offcpu_report_edge, NULL);
	if (err)
		sleepers_close(sleepers);
	else
		*ret = sleepers;
	return err;
}

static void forget_walked(struct sleepers *sleepers, uint64_t tid)
{
	struct sleeper_walked *walked = map_get_ptr(&sleepers->by_tid, tid);

	if (!walked)
		return;
	map_remove(&sleepers->by_tid, tid);
	sleepers->bytes -= walked->sample.head.size;
	free(walked);
}

void sleepers_close(struct sleepers *sleepers)
{
	if (!sleepers)
		return;
	bpf_link__destroy(sleepers->look);
	bpf_link__destroy(sleepers->report);
	vec_release(&sleepers->shown);
	map_release_owned(&sleepers->by_tid);
	free(sleepers);
}

/* Takes one record from the bytes. Returns its size, 0 if there are too few bytes, or -errno. */
typedef ssize_t (*taker)(struct sleepers *sleepers, const char *bytes, size_t count);
/* Called before the bytes of the records that were taken go. May be NULL. */
typedef void (*finisher)(struct sleepers *sleepers);

/* Passes all whole records in `text` to `take`, and leaves the rest in `text`. */
static int take_records(struct sleepers *sleepers, struct buf *text, taker take, finisher finish)
{
	size_t done = 0;
	ssize_t size;

	while ((size = take(sleepers, text->data + done, text->len - done)) > 0)
		done += (size_t)size;
	if (finish)
		finish(sleepers);
	memmove(text->data, text->data + done, text->len - done);
	text->len -= done;
	return size < 0 ? (int)size : 0;
}

/* Reads until `text` is full or there is no more. Returns 1 if there may be more, 0 at the end, or -errno. */
static int fill(int fd, struct buf *text)
{
	ssize_t got;

	while (text->len < READ_BYTES) {
		got = read(fd, text->data + text->len, READ_BYTES - text->len);
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (!got)
			return 0;
		if (got > 0)
			text->len += (size_t)got;
	}
	return 1;
}

/* Runs a program for all threads of the host. */
static int run(struct sleepers *sleepers, const struct bpf_link *link, taker take, finisher finish)
{
	IO_FD(fd) = bpf_iter_create(bpf_link__fd(link));
	int more = fd < 0 ? -errno : 1, err = 0;
	BUF(text);

	if (!buf_reserve(&text, READ_BYTES))
		err = -ENOMEM;
	while (!err && more > 0) {
		more = fill(fd, &text);
		err = take_records(sleepers, &text, take, finish);
	}
	return more < 0 ? more : err;
}

static ssize_t sleeper_size(const char *bytes, size_t count)
{
	const struct duet_sleeper *sleeper = (const void *)bytes;
	size_t size;

	if (count < sizeof(*sleeper))
		return 0;
	size = sizeof(*sleeper) - sizeof(sleeper->sample) + sleeper->sample.head.size;
	if (sleeper->sample.head.size < sizeof(sleeper->sample) || size > READ_BYTES)
		return -EPROTO;
	if (count < size)
		return 0;
	return record_check(&sleeper->sample, sleeper->sample.head.size) ? (ssize_t)size : -EPROTO;
}

static ssize_t take_preview(struct sleepers *sleepers, const char *bytes, size_t count)
{
	ssize_t size = sleeper_size(bytes, count);

	if (size > 0)
		sleepers->handler(sleepers->context, &((const struct duet_sleeper *)bytes)->sample);
	return size;
}

static ssize_t take_shown(struct sleepers *sleepers, const char *bytes, size_t count)
{
	ssize_t size = sleeper_size(bytes, count);

	if (size > 0 && vec_push(&sleepers->shown, (const void *)bytes) < 0)
		loader_counters[DUET_LOADER_OUT_OF_MEMORY]++;
	return size;
}

int sleepers_preview(struct sleepers *sleepers, sleepers_handler handler, void *context)
{
	sleepers->bpf->bss->duet_look_leaders = true;
	sleepers->handler = handler;
	sleepers->context = context;
	return run(sleepers, sleepers->look, take_preview, NULL);
}

static int by_process(const void *a, const void *b)
{
	const struct duet_sleeper *const *one = a, *const *other = b;
	uint32_t pid = (*one)->sample.head.tgid, other_pid = (*other)->sample.head.tgid;

	return pid < other_pid ? -1 : pid > other_pid;
}

static void keep(void *context, const struct duet_sleeper *sleeper, struct sleeper_walked *walked)
{
	struct sleepers *sleepers = context;

	if (!walked)
		return;
	forget_walked(sleepers, sleeper->tid);
	if (sleepers->bytes + walked->sample.head.size > BYTES_MAX ||
	    map_put_ptr(&sleepers->by_tid, sleeper->tid, walked) < 0) {
		free(walked);
		return; /* the thread is counted when BPF reports its sleep */
	}
	sleepers->bytes += walked->sample.head.size;
}

/* If the first thread has ended, it has no memory any more; it is listed first, if it sleeps. */
static void walk_process(struct sleepers *sleepers, const struct duet_sleeper *const *shown, size_t count)
{
	const struct duet_record *head = &shown[0]->sample.head;
	const struct process *process = process_get(sleepers->processes, (pid_t)head->tgid,
						    shown[0]->sample.start_ns / NS_PER_TICK);
	struct charge charge;

	if (!process || !charge_begin(&charge, process))
		return;
	if (head->tid != head->tgid)
		charge.living = process_living_thread(process->pid);
	sleeper_walk(sleepers->walker, &charge, shown, count, keep, sleepers);
	(void)charge_end(&charge);
}

/* Walks the threads in `shown`, process by process. */
static void walk_shown(struct sleepers *sleepers)
{
	const struct duet_sleeper **shown = sleepers->shown.items;
	size_t count = sleepers->shown.len, next;

	if (count && !sleepers->walker)
		sleepers->walker = sleeper_walker_open(sleepers->bpf, sleepers->user_depth);
	if (count && sleepers->walker)
		qsort(shown, count, sizeof(*shown), by_process);
	for (size_t first = 0; sleepers->walker && first < count; first = next) {
		for (next = first + 1; next < count && !by_process(&shown[first], &shown[next]);)
			next++;
		walk_process(sleepers, shown + first, next - first);
	}
	vec_clear(&sleepers->shown);
}

int sleepers_walk(struct sleepers *sleepers, struct process_table *processes)
{
	int err;

	sleepers->processes = processes;
	sleepers->bpf->bss->duet_look_leaders = false;
	err = run(sleepers, sleepers->look, take_shown, walk_shown);
	sleeper_walker_close(sleepers->walker);
	sleepers->walker = NULL;
	return err;
}

static ssize_t take_slept(struct sleepers *sleepers, const char *bytes, size_t count)
{
	const struct duet_slept *slept = (const void *)bytes;
	struct sleeper_walked *walked;

	if (count < sizeof(*slept))
		return 0;
	walked = map_get_ptr(&sleepers->by_tid, slept->tid);
	if (!walked || walked->switches != slept->switches) {
		loader_counters[DUET_LOADER_SLEEPERS_FULL] += slept->weight != 0;
		return sizeof(*slept);
	}
	walked->is_reported = true;
	walked->sample.head.time_ns = sleepers->edge_ns - 1;
	walked->sample.weight = slept->weight;
	walked->sample.runnable = slept->runnable < slept->weight ? slept->runnable : slept->weight;
	walked->sample.flags = (uint16_t)((walked->sample.flags & ~DUET_SAMPLE_IDLE) | slept->flags);
	return sizeof(*slept);
}

int sleepers_ask(struct sleepers *sleepers, uint64_t edge_ns)
{
	sleepers->bpf->bss->duet_last_edge_ns = sleepers->edge_ns;
	sleepers->bpf->bss->duet_edge_ns = sleepers->edge_ns = edge_ns;
	return run(sleepers, sleepers->report, take_slept, NULL);
}

/* Also drops the threads that no longer sleep. */
void sleepers_pass(struct sleepers *sleepers, sleepers_handler handler, void *context)
{
	struct vec(uint64_t) unreported = {0};
	uint64_t tid, value;
	size_t cursor = 0;

	while (map_next(&sleepers->by_tid, &cursor, &tid, &value)) {
		struct sleeper_walked *walked = (void *)(uintptr_t)value;

		if (walked->is_reported && walked->sample.weight)
			handler(context, &walked->sample);
		else if (!walked->is_reported)
			(void)vec_push(&unreported, tid); /* otherwise it is dropped after the next edge */
		walked->is_reported = false;
	}
	for (size_t i = 0; i < unreported.len; i++)
		forget_walked(sleepers, unreported.items[i]);
	vec_release(&unreported);
}
