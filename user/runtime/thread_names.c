/* SPDX-License-Identifier: MIT */
#include "runtime/thread_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "runtime/class_name.h"

#define KEPT 8 /* names of a thread that are kept; the last ones */
/* time between a thread's report that it ends and the moment when it leaves its CPU for good */
#define ENDING_NS (NS_PER_SEC / 10)

struct thread_name {
	uint64_t java_id;
	uint32_t names[KEPT]; /* interned, the newest first; 0: none */
	bool is_doubted; /* the newest one, see struct duet_thread */
	bool has_agreed; /* the kernel's name did with one of these */
	bool follows; /* the kernel's name changes with Java's: it has changed, and has agreed, or Java's has changed */
	char seen[DUET_COMM_LEN]; /* the kernel's name in the first sample, or when it first agreed; "": none yet */
};

void thread_names_release(struct thread_names *names)
{
	uint64_t tid, value;

	for (size_t cursor = 0; map_next(&names->threads, &cursor, &tid, &value);)
		free((struct thread_name *)(uintptr_t)value);
	map_release(&names->threads);
	map_release(&names->ended);
}

static struct thread_name *get(struct thread_names *names, uint32_t tid)
{
	struct thread_name *thread = map_get_ptr(&names->threads, tid);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread || !map_put_ptr(&names->threads, tid, thread))
		return thread;
	free(thread);
	return NULL;
}

/* A name that the thread has had before moves to the front. */
static void put_first(struct thread_name *thread, uint32_t name)
{
	size_t at = 0;

	while (at < KEPT - 1 && thread->names[at] && thread->names[at] != name)
		at++;
	memmove(thread->names + 1, thread->names, at * sizeof(*thread->names));
	thread->names[0] = name;
}

int thread_names_apply(struct thread_names *names, struct intern *strings, const struct duet_thread *record)
{
	struct thread_name *thread;
	uint64_t ended_ns;

	if (record->ended) /* its last samples may still be waiting */
		return map_get_ptr(&names->threads, record->tid) ?
			       map_put(&names->ended, record->tid, record->time_ns + ENDING_NS) :
			       0;
	thread = get(names, record->tid);
	if (!thread)
		return -ENOMEM;
	if (map_get(&names->ended, record->tid, &ended_ns)) { /* another thread has its tid */
		map_remove(&names->ended, record->tid);
		*thread = (struct thread_name){0};
	}
	put_first(thread, java_text_intern(strings, (const char *)(record + 1), record->name_len));
	thread->is_doubted = record->doubted;
	thread->java_id = record->java_id;
	return 0;
}

/* HotSpot gives the kernel 15 bytes of a name, with surrogates. Newer ones: first 7 and last 6 of a long one. */
static bool agrees(const char *name, const char *comm)
{
	char middle[DUET_COMM_LEN];
	BUF(bytes);

	text_add_surrogates(&bytes, name);
	if (bytes.failed || bytes.len < DUET_COMM_LEN)
		return !strcmp(bytes.data, comm);
	snprintf(middle, sizeof(middle), "%.7s..%s", bytes.data, bytes.data + bytes.len - 6);
	return !strncmp(bytes.data, comm, DUET_COMM_LEN - 1) || !strcmp(middle, comm);
}

/* Returns the newest name that agrees with the kernel's, or 0. */
static uint32_t find_agreeing(const struct thread_name *thread, const struct intern *strings, const char *comm)
{
	for (size_t i = 0; i < KEPT && thread->names[i]; i++)
		if (agrees(intern_text(strings, thread->names[i]), comm))
			return thread->names[i];
	return 0;
}

/* Learns from this sample whether the kernel's name changes with Java's. */
static void learn(struct thread_name *thread, const char *comm, bool has_agreed)
{
	if (!thread->seen[0] || (has_agreed && !thread->has_agreed))
		snprintf(thread->seen, sizeof(thread->seen), "%s", comm);
	else if (thread->has_agreed || thread->names[1])
		thread->follows |= strcmp(thread->seen, comm) != 0;
	thread->has_agreed |= has_agreed;
}

/* If the kernel's name does not follow Java's, Java's newest counts: others rename it, or Java did not start it. */
static uint32_t judge(struct thread_name *thread, const struct intern *strings, const char *comm)
{
	uint32_t newest = thread->names[0], agreeing = *comm ? find_agreeing(thread, strings, comm) : 0;

	if (*comm)
		learn(thread, comm, agreeing);
	if (agreeing == newest)
		return newest;
	if (*comm && (thread->follows || thread->is_doubted))
		return agreeing;
	return thread->is_doubted ? 0 : newest;
}

uint32_t thread_names_find(const struct thread_names *names, const struct intern *strings, uint32_t tid,
			   uint64_t time_ns, const char *comm)
{
	struct thread_name *thread = map_get_ptr(&names->threads, tid);
	uint64_t ended_ns = UINT64_MAX;

	map_get(&names->ended, tid, &ended_ns);
	return thread && time_ns <= ended_ns ? judge(thread, strings, comm) : 0;
}

uint64_t thread_names_java_id(const struct thread_names *names, uint32_t tid)
{
	const struct thread_name *thread = map_get_ptr(&names->threads, tid);

	return thread ? thread->java_id : 0;
}

void thread_names_forget(struct thread_names *names, uint64_t time_ns)
{
	uint64_t tid, ended_ns;

	for (size_t cursor = 0; map_next(&names->ended, &cursor, &tid, &ended_ns);) {
		if (ended_ns >= time_ns)
			continue;
		free(map_get_ptr(&names->threads, tid));
		map_remove(&names->threads, tid);
		map_remove(&names->ended, tid);
	}
}

void thread_names_move_strings(struct thread_names *names, struct intern_move *move)
{
	uint64_t tid, value;

	for (size_t cursor = 0; map_next(&names->threads, &cursor, &tid, &value);) {
		struct thread_name *thread = (struct thread_name *)(uintptr_t)value;

		for (size_t i = 0; i < KEPT && thread->names[i]; i++)
			thread->names[i] = intern_moved(move, thread->names[i]);
	}
}

size_t thread_names_bytes(const struct thread_names *names)
{
	return map_bytes(&names->threads) + names->threads.len * sizeof(struct thread_name);
}
