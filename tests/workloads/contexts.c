/* SPDX-License-Identifier: MIT */
/*
 * Threads that work for traces and spans, and publish them in OpenTelemetry's layout (headers/duet_context.h):
 *
 *   contexts GATE SECONDS [LIBRARY]
 *
 * The variable is the executable's, or that of LIBRARY, which is the same source built as a library and is loaded only
 * now. Says READY, and begins when the file GATE exists. Each thread uses SECONDS of CPU: a part of it for each of two
 * spans, the rest for none. "CONTEXT TRACE SPAN ns" says how long, by the thread's own clock. Then DONE, and waits to
 * be killed.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "duet_context.h"

__attribute__((visibility("default"))) __thread struct duet_context_record *otel_thread_ctx_v1;

__attribute__((visibility("default"))) void publish(struct duet_context_record *record);
__attribute__((visibility("default"))) void publish(struct duet_context_record *record)
{
	otel_thread_ctx_v1 = record;
}

#ifndef AS_LIBRARY

#define THREADS 3
#define SPANS 2
#define LIMIT_S 60

static uint64_t slice_ns;
static volatile uint64_t sink;
static void (*set)(struct duet_context_record *record) = publish;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static __attribute__((noipa)) uint64_t work(uint64_t ns)
{
	uint64_t from_ns = cpu_ns(), used_ns;

	while ((used_ns = cpu_ns() - from_ns) < ns)
		for (int i = 0; i < 2000; i++)
			sink++;
	return used_ns;
}

static void say(const struct duet_context *context, uint64_t ns)
{
	char line[128];
	int len = snprintf(line, sizeof(line), "CONTEXT ");

	for (size_t i = 0; i < sizeof(context->trace_id); i++)
		len += snprintf(line + len, sizeof(line) - (size_t)len, "%02x", context->trace_id[i]);
	line[len++] = ' ';
	for (size_t i = 0; i < sizeof(context->span_id); i++)
		len += snprintf(line + len, sizeof(line) - (size_t)len, "%02x", context->span_id[i]);
	printf("%.*s %llu\n", len, line, (unsigned long long)ns);
}

/* In turns of 2 ms: one for the first span, two for the second, one for none. */
static void *serve(void *number)
{
	struct duet_context_record records[SPANS] = {{.valid = DUET_CONTEXT_VALID}, {.valid = DUET_CONTEXT_VALID}};
	uint64_t used_ns[SPANS + 1] = {0};

	for (int i = 0; i < SPANS; i++) {
		memset(records[i].context.trace_id, 0xa0 + (int)(intptr_t)number, sizeof(records[i].context.trace_id));
		memset(records[i].context.span_id, 0x10 * (i + 1), sizeof(records[i].context.span_id));
		records[i].context.trace_id[15] = 7;
	}
	while (cpu_ns() < 500 * slice_ns) {
		for (int i = 0; i < SPANS; i++) {
			set(&records[i]);
			used_ns[i] += work((uint64_t)(i + 1) * slice_ns);
		}
		set(NULL);
		used_ns[SPANS] += work(slice_ns);
	}
	for (int i = 0; i < SPANS; i++)
		say(&records[i].context, used_ns[i]);
	say(&(struct duet_context){0}, used_ns[SPANS]);
	return NULL;
}

int main(int argc, char **argv)
{
	void *library = argc > 3 ? dlopen(argv[3], RTLD_NOW) : NULL;
	pthread_t threads[THREADS];

	if (argc < 3)
		return 2;
	if (library)
		set = (void (*)(struct duet_context_record *))(uintptr_t)dlsym(library, "publish");
	if ((argc > 3 && !library) || !set)
		return 1;
	slice_ns = (uint64_t)(atof(argv[2]) * 1e9) / 500;
	alarm(LIMIT_S);
	puts("READY");
	fflush(stdout);
	while (access(argv[1], F_OK))
		usleep(20000);
	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, serve, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	puts("DONE");
	fflush(stdout);
	pause();
	return 0;
}

#endif
