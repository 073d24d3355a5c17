/* SPDX-License-Identifier: MIT */
#include "methods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jvm.h"
#include "pages.h"
#include "session.h"

#define TABLE_SLOTS 65536u
#define TABLE_BYTES (2 * TABLE_SLOTS * sizeof(uint64_t)) /* seen and queue */
#define PROBES 64u
#define LOCAL_REFS 8

int methods_init(struct methods *methods)
{
	void *memory = pages_new(TABLE_BYTES);

	if (!memory)
		return -errno;
	memset(methods, 0, sizeof(*methods));
	methods->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (methods->wake_fd < 0) {
		int error = -errno;

		pages_free(memory, TABLE_BYTES);
		return error;
	}
	methods->seen = memory;
	methods->queue = methods->seen + TABLE_SLOTS;
	return 0;
}

void methods_release(struct methods *methods)
{
	if (!methods->seen)
		return;
	close(methods->wake_fd);
	pages_free(methods->seen, TABLE_BYTES);
	methods->seen = NULL;
}

static uint32_t first_slot(uint64_t method)
{
	return (uint32_t)((method * 0x9e3779b97f4a7c15ull) >> 48) % TABLE_SLOTS;
}

/* 1: inserted now; 0: was there; -ENOSPC: neither, its neighbourhood is full. */
static int insert(struct methods *methods, uint64_t method)
{
	uint32_t slot = first_slot(method);

	for (uint32_t i = 0; i < PROBES; i++) {
		uint64_t *place = &methods->seen[(slot + i) % TABLE_SLOTS];
		uint64_t old = __atomic_load_n(place, __ATOMIC_RELAXED);

		if (!old && __atomic_compare_exchange_n(place, &old, method, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return 1;
		if (old == method)
			return 0;
	}
	return -ENOSPC;
}

static void enqueue(struct methods *methods, uint64_t method)
{
	uint32_t place = __atomic_fetch_add(&methods->queued, 1, __ATOMIC_RELAXED);
	uint64_t one = 1;

	/* Sequentially consistent: with methods_may_sleep() either it sees the id, or this sees it asleep. */
	__atomic_store_n(&methods->queue[place], method, __ATOMIC_SEQ_CST);
	/*
	 * Not write(): that is a point where a cancelled thread ends, and this runs in signal handlers. It cannot fail,
	 * the counter of an eventfd holds 2^64 - 2; the poll has a timeout anyway.
	 */
	if (__atomic_exchange_n(&methods->asleep, 0, __ATOMIC_SEQ_CST))
		syscall(SYS_write, methods->wake_fd, &one, sizeof(one));
}

void methods_see(struct session *session, uint64_t method)
{
	int inserted = method ? insert(&session->methods, method) : 0;

	if (inserted > 0)
		enqueue(&session->methods, method);
	else if (inserted < 0)
		duet_ring_count(session->ring.page, DUET_AGENT_METHOD_TABLE);
}

static uint64_t next_queued(struct methods *methods)
{
	if (methods->published == TABLE_SLOTS)
		return 0;
	return __atomic_load_n(&methods->queue[methods->published], __ATOMIC_SEQ_CST);
}

int methods_may_sleep(struct methods *methods)
{
	uint64_t count;

	if (read(methods->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return 0;
	__atomic_store_n(&methods->asleep, 1, __ATOMIC_SEQ_CST);
	return !next_queued(methods);
}

/* ---- what JVMTI knows about one method ---- */

struct names {
	char *class_signature;
	char *name;
	char *signature;
	char *source;
	jvmtiLineNumberEntry *lines;
	jint line_count;
	jint modifiers;
};

static void names_release(struct names *names)
{
	jvm_deallocate(names->class_signature);
	jvm_deallocate(names->name);
	jvm_deallocate(names->signature);
	jvm_deallocate(names->source);
	jvm_deallocate(names->lines);
}

/* The source file and the lines may be absent; the rest may not. */
static jvmtiError names_read(struct names *names, jmethodID method)
{
	jvmtiEnv *jvmti = jvm.jvmti;
	jclass class;
	jvmtiError error;

	error = (*jvmti)->GetMethodDeclaringClass(jvmti, method, &class);
	if (!error)
		error = (*jvmti)->GetClassSignature(jvmti, class, &names->class_signature, NULL);
	if (!error)
		error = (*jvmti)->GetMethodName(jvmti, method, &names->name, &names->signature, NULL);
	if (!error)
		error = (*jvmti)->GetMethodModifiers(jvmti, method, &names->modifiers);
	if (error)
		return error;
	if ((*jvmti)->GetSourceFileName(jvmti, class, &names->source))
		names->source = NULL;
	if ((*jvmti)->GetLineNumberTable(jvmti, method, &names->line_count, &names->lines))
		names->line_count = 0;
	return JVMTI_ERROR_NONE;
}

static int compare_lines(const void *left, const void *right)
{
	const struct duet_line *a = left, *b = right;

	return (a->bci > b->bci) - (a->bci < b->bci);
}

/* javac may write a LineNumberTable in any order; the record promises ascending bci. Caller frees. */
static struct duet_line *sorted_lines(const struct names *names)
{
	struct duet_line *lines = calloc((size_t)names->line_count + 1, sizeof(*lines));

	if (!lines)
		return NULL;
	for (jint i = 0; i < names->line_count; i++) {
		lines[i].bci = (uint32_t)names->lines[i].start_location;
		lines[i].line = (uint32_t)names->lines[i].line_number;
	}
	qsort(lines, (size_t)names->line_count, sizeof(*lines), compare_lines);
	return lines;
}

static struct ring_part string_part(const char *text, uint16_t *ret_length)
{
	size_t length = text ? strlen(text) : 0;

	*ret_length = (uint16_t)(length < UINT16_MAX ? length : UINT16_MAX);
	return (struct ring_part){text ? text : "", *ret_length};
}

static void write_method(struct session *session, uint64_t method, const struct names *names)
{
	struct duet_method record = {.method = method, .modifiers = (uint32_t)names->modifiers};
	struct duet_line *lines = sorted_lines(names);
	struct ring_part parts[6];

	record.line_count = lines ? (uint32_t)names->line_count : 0;
	parts[1] = string_part(names->class_signature, &record.class_len);
	parts[2] = string_part(names->name, &record.name_len);
	parts[3] = string_part(names->signature, &record.signature_len);
	parts[4] = string_part(names->source, &record.source_len);
	parts[5] = (struct ring_part){lines, record.line_count * sizeof(*lines)};
	parts[0] = (struct ring_part){&record, sizeof(record)};
	ring_write(&session->ring, DUET_AGENT_METHOD, parts, lines ? 6 : 5, RING_WAIT);
	free(lines);
}

static void publish_one(struct session *session, JNIEnv *env, uint64_t method)
{
	struct names names = {0};

	if ((*env)->PushLocalFrame(env, LOCAL_REFS))
		return;
	if (names_read(&names, (jmethodID)(uintptr_t)method))
		duet_ring_count(session->ring.page, DUET_AGENT_METHOD_GONE);
	else
		write_method(session, method, &names);
	names_release(&names);
	(*env)->PopLocalFrame(env, NULL);
}

void methods_publish(struct session *session, JNIEnv *env)
{
	struct methods *methods = &session->methods;
	uint64_t method;

	while ((method = next_queued(methods)) != 0) {
		methods->published++;
		publish_one(session, env, method);
	}
}
