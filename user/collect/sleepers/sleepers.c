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
#include "base/clock.h"
#include "base/counters.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/programs.h"
#include "collect/records/validate.h"
#include "collect/sleepers/sleeper_walk.h"
#include "duet_config.h"
#include "proc/room.h"
#include "proc/process.h"

#include "duet.skel.h"

#define READ_BYTES (128u << 10) /* records that are read at once */
#define BYTES_MAX (64u << 20) /* of all walked samples together, and of all records of threads to walk */
#define USER_TIMES 3 /* a user may have so many times what is free of them */
#define TURN 64 /* threads of a user that are walked before some of the next user's */
#define SLICE_NS (20 * NS_PER_MS)

/* Takes one record from the bytes. Returns its size, 0 if there are too few bytes, or -errno. */
typedef ssize_t (*taker)(struct sleepers *sleepers, const char *bytes, size_t count);

/* A program that runs for all threads of the host, and whose records are read in slices. */
struct run {
	int fd; /* -1: none runs */
	taker take;
	struct buf text; /* read and not taken yet */
	bool is_all; /* `text` has the last of it */
};

/* A thread to walk. */
struct shown {
	uint64_t turn; /* users take turns */
	pid_t pid;
	size_t at; /* of its record in `records` */
};

struct sleepers {
	struct duet_bpf *bpf; /* not owned */
	struct process_table *processes; /* not owned */
	uint32_t user_depth;
	struct bpf_link *look;
	struct bpf_link *report;
	struct run run;
	struct map by_tid; /* duet_sleeper.tid -> struct sleeper_walked, owned */
	struct buf records; /* of the threads in `shown` */
	struct map shown_of; /* payer's key -> how many there are in `shown` */
	struct vec(struct shown) shown;
	size_t next; /* the first of them that was not walked */
	bool is_listed; /* all that sleep are in `shown` */
	bool is_incomplete; /* BPF has shown threads that were not walked: it shows all again */
	struct sleeper_walker *walker; /* during a slice of the walk */
	size_t passed; /* cursor in by_tid of sleepers_pass(); 0: it has not begun */

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
	sleepers->run.fd = -1;
	buf_init(&sleepers->run.text);
	buf_init(&sleepers->records);
	sleepers->user_depth = user_depth;
	room_set_size(ROOM_SLEEPERS, BYTES_MAX);
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
	room_give(ROOM_SLEEPERS, &walked->payer, walked->sample.head.size);
	free(walked);
}

static void end_run(struct sleepers *sleepers)
{
	io_close(&sleepers->run.fd);
	buf_release(&sleepers->run.text);
	sleepers->run = (struct run){.fd = -1};
	buf_init(&sleepers->run.text);
}

static void end_walk(struct sleepers *sleepers)
{
	sleepers->is_listed = false;
	vec_release(&sleepers->shown);
	map_release(&sleepers->shown_of);
	buf_release(&sleepers->records);
	buf_init(&sleepers->records);
	sleepers->next = 0;
}

void sleepers_close(struct sleepers *sleepers)
{
	if (!sleepers)
		return;
	bpf_link__destroy(sleepers->look);
	bpf_link__destroy(sleepers->report);
	end_run(sleepers);
	end_walk(sleepers);
	map_release_owned(&sleepers->by_tid);
	free(sleepers);
}

/* Takes whole records out of the text until the slice ends. Returns 1 if there are more, 0, or -errno. */
static int take_records(struct sleepers *sleepers, uint64_t end_ns)
{
	struct buf *text = &sleepers->run.text;
	bool is_late = false;
	size_t done = 0;
	ssize_t size = 0;

	while (!is_late && (size = sleepers->run.take(sleepers, text->data + done, text->len - done)) > 0) {
		done += (size_t)size;
		is_late = clock_monotonic_ns() >= end_ns;
	}
	memmove(text->data, text->data + done, text->len - done);
	text->len -= done;
	return size < 0 ? (int)size : is_late;
}

/* Reads until the text is full or there is no more. Returns 0 or -errno. */
static int fill(struct run *run)
{
	struct buf *text = &run->text;
	ssize_t got;

	while (!run->is_all && text->len < READ_BYTES) {
		got = read(run->fd, text->data + text->len, READ_BYTES - text->len);
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		run->is_all = !got;
		text->len += got > 0 ? (size_t)got : 0;
	}
	return 0;
}

static int begin_run(struct sleepers *sleepers, const struct bpf_link *link, taker take)
{
	struct run *run = &sleepers->run;

	end_run(sleepers);
	run->take = take;
	run->fd = bpf_iter_create(bpf_link__fd(link));
	if (run->fd < 0)
		return -errno;
	return buf_reserve(&run->text, READ_BYTES) ? 0 : -ENOMEM;
}

/* Begins a program, or goes on with it for a slice. Returns 1 if there are more records, 0 at the end, or -errno. */
static int run(struct sleepers *sleepers, const struct bpf_link *link, taker take, uint64_t end_ns)
{
	int more = sleepers->run.fd >= 0 && sleepers->run.take == take ? 1 : begin_run(sleepers, link, take);

	while (more >= 0 && sleepers->run.fd >= 0) {
		bool is_last;

		more = fill(&sleepers->run);
		is_last = sleepers->run.is_all;
		if (!more)
			more = take_records(sleepers, end_ns);
		if (more > 0)
			return 1;
		if (is_last)
			break;
		if (!more && clock_monotonic_ns() >= end_ns)
			return 1;
	}
	end_run(sleepers);
	return more;
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

/* `all` users have at most BYTES_MAX. */
static bool has_room(size_t all, size_t of_user, size_t more)
{
	return all + more <= BYTES_MAX && of_user + more <= USER_TIMES * (BYTES_MAX - all);
}

/* Threads without room are counted when BPF reports their sleep. */
static void add_shown(struct sleepers *sleepers, const struct duet_sleeper *sleeper, size_t size)
{
	struct shown shown = {.pid = (pid_t)sleeper->sample.head.tgid, .at = sleepers->records.len};
	const struct process *process =
		process_get(sleepers->processes, shown.pid, sleeper->sample.start_ns / NS_PER_TICK);
	uint64_t of_user = 0;

	if (process)
		(void)map_get(&sleepers->shown_of, process->payer.key, &of_user);
	shown.turn = of_user / TURN;
	if (!process || !has_room(sleepers->records.len, of_user * size, size)) {
		sleepers->is_incomplete = true;
		return;
	}
	buf_add(&sleepers->records, (const char *)sleeper, size);
	if (sleepers->records.failed || map_put(&sleepers->shown_of, process->payer.key, of_user + 1) < 0 ||
	    vec_push(&sleepers->shown, shown) < 0)
		loader_counters[DUET_LOADER_OUT_OF_MEMORY]++;
}

static ssize_t take_shown(struct sleepers *sleepers, const char *bytes, size_t count)
{
	const struct duet_sleeper *sleeper = (const void *)bytes;
	ssize_t size = sleeper_size(bytes, count);
	const struct sleeper_walked *walked = size > 0 ? map_get_ptr(&sleepers->by_tid, sleeper->tid) : NULL;

	if (size > 0 && (!walked || walked->switches != sleeper->switches))
		add_shown(sleepers, sleeper, (size_t)size);
	return size;
}

int sleepers_preview(struct sleepers *sleepers, sleepers_handler handler, void *context)
{
	sleepers->bpf->bss->duet_look_leaders = true;
	sleepers->handler = handler;
	sleepers->context = context;
	return run(sleepers, sleepers->look, take_preview, clock_monotonic_ns() + SLICE_NS);
}

static int by_turn(const void *a, const void *b)
{
	const struct shown *one = a, *other = b;

	if (one->turn != other->turn)
		return one->turn < other->turn ? -1 : 1;
	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	return one->at < other->at ? -1 : one->at > other->at;
}

static void keep(void *context, const struct duet_sleeper *sleeper, struct sleeper_walked *walked)
{
	struct sleepers *sleepers = context;

	if (!walked)
		return;
	forget_walked(sleepers, sleeper->tid);
	if (!room_has(ROOM_SLEEPERS, &walked->payer, walked->sample.head.size) ||
	    map_put_ptr(&sleepers->by_tid, sleeper->tid, walked) < 0) {
		sleepers->is_incomplete = true;
		room_refuse(ROOM_SLEEPERS, &walked->payer);
		free(walked);
		return; /* the thread is counted when BPF reports its sleep */
	}
	room_add(ROOM_SLEEPERS, &walked->payer, walked->sample.head.size);
}

/*
 * Walks threads of one process. Returns how many were; all if their user has no time left: these are counted when BPF
 * reports their sleep. If the first thread has ended, it has no memory any more; it is listed first, if it sleeps.
 */
static size_t walk_process(struct sleepers *sleepers, const struct duet_sleeper *const *threads, size_t count)
{
	const struct duet_record *head = &threads[0]->sample.head;
	const struct process *process = process_get(sleepers->processes, (pid_t)head->tgid,
						    threads[0]->sample.start_ns / NS_PER_TICK);
	struct charge charge;

	if (!process || !charge_begin(&charge, process)) {
		sleepers->is_incomplete = true;
		return count;
	}
	if (head->tid != head->tgid)
		charge.living = process_living_thread(process->pid);
	count = sleeper_walk(sleepers->walker, &charge, threads, count, keep, sleepers);
	(void)charge_end(&charge);
	return count;
}

/* Returns the threads of one process that come next in one turn, at most TURN. */
static size_t next_threads(const struct sleepers *sleepers, const struct duet_sleeper *threads[TURN])
{
	const struct shown *shown = sleepers->shown.items + sleepers->next;
	size_t left = sleepers->shown.len - sleepers->next, count = 0;

	while (count < left && count < TURN && shown[count].pid == shown->pid && shown[count].turn == shown->turn) {
		threads[count] = (const void *)(sleepers->records.data + shown[count].at);
		count++;
	}
	return count;
}

/* Lists the threads to walk. Returns 1 if there are more, 0, or -errno. */
static int list(struct sleepers *sleepers, uint64_t end_ns)
{
	int more;

	if (sleepers->run.fd < 0 || sleepers->run.take != take_shown) {
		sleepers->bpf->bss->duet_look_leaders = false;
		sleepers->bpf->bss->duet_look_again = sleepers->is_incomplete;
		sleepers->is_incomplete = false;
	}
	more = run(sleepers, sleepers->look, take_shown, end_ns);
	sleepers->is_listed = more <= 0;
	if (sleepers->is_listed && sleepers->shown.len)
		qsort(sleepers->shown.items, sleepers->shown.len, sizeof(*sleepers->shown.items), by_turn);
	return more;
}

static void walk_listed(struct sleepers *sleepers, uint64_t end_ns)
{
	const struct duet_sleeper *threads[TURN];

	sleepers->walker = sleeper_walker_open(sleepers->bpf, sleepers->user_depth);
	while (sleepers->walker && sleepers->next < sleepers->shown.len && clock_monotonic_ns() < end_ns)
		sleepers->next += walk_process(sleepers, threads, next_threads(sleepers, threads));
	if (!sleepers->walker)
		sleepers->next = sleepers->shown.len;
	sleeper_walker_close(sleepers->walker);
	sleepers->walker = NULL;
}

int sleepers_walk(struct sleepers *sleepers, struct process_table *processes)
{
	uint64_t end_ns = clock_monotonic_ns() + SLICE_NS;
	int more = 0;

	sleepers->processes = processes;
	if (!sleepers->is_listed)
		more = list(sleepers, end_ns);
	if (more <= 0 && sleepers->shown.len)
		walk_listed(sleepers, end_ns);
	if (more > 0 || sleepers->next < sleepers->shown.len)
		return 1;
	end_walk(sleepers);
	return more;
}

void sleepers_stop_walk(struct sleepers *sleepers)
{
	sleepers->is_incomplete = true;
	end_run(sleepers);
	end_walk(sleepers);
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
	return run(sleepers, sleepers->report, take_slept, UINT64_MAX);
}

/* Drops the threads that no longer sleep; the others are dropped after the next edge. */
static void end_pass(struct sleepers *sleepers)
{
	struct vec(uint64_t) unreported = {0};
	uint64_t tid, value;

	for (size_t cursor = 0; map_next(&sleepers->by_tid, &cursor, &tid, &value);) {
		struct sleeper_walked *walked = (void *)(uintptr_t)value;

		if (!walked->is_reported)
			(void)vec_push(&unreported, tid);
		walked->is_reported = false;
	}
	for (size_t i = 0; i < unreported.len; i++)
		forget_walked(sleepers, unreported.items[i]);
	vec_release(&unreported);
	sleepers->passed = 0;
}

bool sleepers_pass(struct sleepers *sleepers, sleepers_handler handler, void *context)
{
	uint64_t end_ns = clock_monotonic_ns() + SLICE_NS, tid, value;

	while (map_next(&sleepers->by_tid, &sleepers->passed, &tid, &value)) {
		struct sleeper_walked *walked = (void *)(uintptr_t)value;

		if (!walked->is_reported || !walked->sample.weight)
			continue;
		handler(context, &walked->sample);
		walked->sample.weight = 0;
		if (clock_monotonic_ns() >= end_ns)
			return true;
	}
	end_pass(sleepers);
	return false;
}

size_t sleepers_stop_pass(struct sleepers *sleepers)
{
	size_t left = 0;
	uint64_t tid, value;

	while (map_next(&sleepers->by_tid, &sleepers->passed, &tid, &value)) {
		const struct sleeper_walked *walked = (void *)(uintptr_t)value;

		left += walked->is_reported && walked->sample.weight;
	}
	end_pass(sleepers);
	return left;
}
