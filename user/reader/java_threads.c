/* SPDX-License-Identifier: MIT */
#include "reader/java_threads.h"

#include <string.h>

#include "base/clock.h"
#include "hotspot/jvmstructs.h"
#include "hotspot/vmstructs.h"
#include "reader/memory.h"

#define AT_ONCE 128 /* threads that one step reads, in about a millisecond */
#define MOST_THREADS 65536
#define RENAMED_NS NS_PER_SEC
#define HANDLES_SINCE 16 /* since this JDK JavaThread::_threadObj is not the reference, but its address */
/* each JVM has this thread, and HotSpot starts it as a thread that Java code starts */
#define PLAIN "Reference Handler"

static struct {
	uintptr_t list_address;
	struct offset length, threads, object;
	int version;
} layout;

static const struct vmstructs_row rows[] = {
	{"ThreadsSMRSupport", "_java_thread_list", NULL, &layout.list_address}, /* JDK 10+ */
	{"ThreadsList", "_length", &layout.length, NULL},
	{"ThreadsList", "_threads", &layout.threads, NULL},
	{"JavaThread", "_threadObj", &layout.object, NULL},
};

bool java_threads_open(int version)
{
	memset(&layout, 0, sizeof(layout));
	layout.version = version;
	return !vmstructs_read(rows, sizeof(rows) / sizeof(rows[0])) && layout.list_address && layout.length.known &&
	       layout.threads.known && layout.object.known && objects_open(version);
}

struct found {
	uint32_t tid;
	bool doubt; /* another String may be in the name's place */
	char name[OBJECTS_TEXT_BYTES];
};

/*
 * Returns the thread's java.lang.Thread, or 0. The object holds the address of its JavaThread, which proves it: the JVM
 * clears that address before it frees the JavaThread.
 */
static uintptr_t object_of(uintptr_t java_thread)
{
	uintptr_t at = java_thread + layout.object.value, object;
	bool doubt = false; /* not used: the check of the JavaThread's address decides */

	if (layout.version >= HANDLES_SINCE)
		at = memory_word(at);
	object = at ? objects_follow_root(at, &doubt) : 0;
	return object && memory_word(object + objects_thread_fields()->eetop) == java_thread ? object : 0;
}

static bool read_once(uintptr_t java_thread, struct found *ret)
{
	uintptr_t object, name;
	int tid = jvmstructs_thread_id(java_thread);

	ret->doubt = false;
	ret->tid = tid > 0 ? (uint32_t)tid : 0;
	object = tid > 0 ? object_of(java_thread) : 0;
	name = object ? objects_follow(object + objects_thread_fields()->name, &ret->doubt) : 0;
	return name && objects_text(name, ret->name, &ret->doubt);
}

/* Reads a second time, from the JVM's memory at that moment: the collector may have moved objects in between. */
static bool read_twice(uintptr_t java_thread, struct found *ret)
{
	struct found again;

	if (!read_once(java_thread, ret))
		return false;
	memory_renew();
	if (!read_once(java_thread, &again) || again.tid != ret->tid || strcmp(again.name, ret->name))
		return false;
	ret->doubt |= again.doubt;
	return true;
}

/* Keeps a known thread whose name cannot be read now: the collector moves it, or it is about to end. */
static void keep(struct java_threads *threads, uintptr_t java_thread)
{
	int tid = jvmstructs_thread_id(java_thread);
	uint64_t reported;

	if (tid > 0 && map_get(&threads->reported, (uint32_t)tid, &reported))
		(void)map_put(&threads->seen, (uint32_t)tid, reported);
}

/* The upper half is a hash of the thread. The lowest bit is set when the name is in doubt. */
static uint64_t hash_of(uintptr_t java_thread, const struct found *found)
{
	uint64_t thread = hash_bytes(&java_thread, sizeof(java_thread), 0);
	uint64_t name = hash_bytes(found->name, strlen(found->name), 0);

	return thread << 32 | (name & 0xfffffffe) | found->doubt;
}

/* True if it need not be reported. A name in doubt may be an old one, and replaces no certain one. */
static bool is_reported(const struct found *found, uintptr_t java_thread, uint64_t reported)
{
	uint64_t hash = hash_of(java_thread, found);

	return reported == hash || (found->doubt && !(reported & 1) && reported >> 32 == hash >> 32);
}

static void look_at(struct java_threads *threads, uintptr_t java_thread, java_threads_report report, void *context)
{
	struct found found;
	uint64_t reported;

	if (!java_thread)
		return;
	if (!read_once(java_thread, &found))
		return keep(threads, java_thread);
	if (!map_get(&threads->reported, found.tid, &reported) || !is_reported(&found, java_thread, reported)) {
		if (!read_twice(java_thread, &found) || !report(context, found.tid, found.name, found.doubt))
			return keep(threads, java_thread);
		reported = hash_of(java_thread, &found);
		if (!strcmp(found.name, PLAIN))
			threads->vtable = memory_word(java_thread);
	}
	(void)map_put(&threads->seen, found.tid, reported);
}

/* Threads that were not seen in this sweep have ended. Other threads may get their tids soon. */
static void report_ended(struct java_threads *threads, java_threads_report report, void *context)
{
	uint64_t tid, hash;

	for (size_t cursor = 0; map_next(&threads->reported, &cursor, &tid, &hash);)
		if (!map_get(&threads->seen, tid, &hash) && !report(context, (uint32_t)tid, NULL, false))
			(void)map_put(&threads->seen, tid, 0); /* reported again in the next sweep */
}

static void end_sweep(struct java_threads *threads, uint64_t now_ns)
{
	map_release(&threads->reported);
	threads->reported = threads->seen;
	threads->seen = (struct map){0};
	threads->next = 0;
	threads->sweep_ns = now_ns + RENAMED_NS;
}

/* Reads up to AT_ONCE threads of the list, and ends the sweep after the last one. */
static void sweep(struct java_threads *threads, uintptr_t list, uint64_t now_ns, java_threads_report report,
		  void *context)
{
	uintptr_t array;
	uint32_t length, end;

	if (!threads->next)
		threads->list = list;
	length = memory_int(list + layout.length.value);
	length = length < MOST_THREADS ? length : MOST_THREADS;
	array = memory_word(list + layout.threads.value);
	end = length - threads->next < AT_ONCE || threads->next > length ? length : threads->next + AT_ONCE;
	for (; threads->next < end; threads->next++)
		look_at(threads, memory_word(array + threads->next * sizeof(uintptr_t)), report, context);
	if (threads->next < length)
		return;
	memory_renew();
	/* otherwise the list was perhaps freed while it was read */
	if (memory_word(layout.list_address) == threads->list)
		report_ended(threads, report, context);
	end_sweep(threads, now_ns);
}

int java_threads_step(struct java_threads *threads, uint64_t now_ns, java_threads_report report, void *context)
{
	uintptr_t list = memory_word(layout.list_address);
	int err;

	if (!list || (!threads->next && list == threads->list && now_ns < threads->sweep_ns))
		return 0;
	err = objects_learn();
	if (!err)
		sweep(threads, list, now_ns, report, context);
	return err;
}

void java_threads_release(struct java_threads *threads)
{
	map_release(&threads->reported);
	map_release(&threads->seen);
}
