/* SPDX-License-Identifier: MIT */
/*
 * A program that profiles itself with the functions of asprof.h: asprof_functions LIBRARY FILE. Says what is wrong and
 * returns 1 if they do not do what they should. With the third word `memory`, it takes memory and frees one of two
 * pieces instead, and FILE is a JFR file; with `events`, it reports events of its own there. With `late LATE`, it
 * loads the library LATE, whose function takes memory in its first call. With a number, it records so many times, and
 * prints the descriptors and threads that it has after the first time and after the last.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPEND_NS 1000000000
#define FREED_BYTES 1234567
#define KEPT_BYTES 2345678
#define EVENTS 1000

typedef const char *(*execute_function)(const char *command, void (*writer)(const char *bytes, size_t count));
typedef const char *(*error_function)(const char *error);
typedef void (*init_function)(void);
typedef int (*register_function)(const char *name);
typedef const char *(*emit_function)(int type, const uint8_t *data, size_t count);

static volatile uint64_t turns;
static char written[4096];
static size_t written_bytes;

__attribute__((noinline)) static void spend(void)
{
	struct timespec now;

	do {
		for (int i = 0; i < 100000; i++)
			turns++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000000000ll + now.tv_nsec < SPEND_NS);
}

static void keep(const char *bytes, size_t count)
{
	if (count < sizeof(written) - written_bytes) {
		memcpy(written + written_bytes, bytes, count);
		written_bytes += count;
		written[written_bytes] = '\0';
	}
}

static int fail(const char *what, const char *got)
{
	fprintf(stderr, "%s: %s\n", what, got ? got : "nothing");
	return 1;
}

static int record_memory(execute_function execute, error_function text, const char *file)
{
	char start[4096];
	const char *error;
	void *volatile freed, *volatile kept;

	snprintf(start, sizeof(start), "start,nativemem,file=%s", file);
	error = execute(start, keep);
	if (error)
		return fail("start", text(error));
	freed = malloc(FREED_BYTES);
	kept = calloc(1, KEPT_BYTES);
	free(freed);
	error = execute("stop", keep);
	free(kept);
	return error ? fail("stop", text(error)) : 0;
}

/* The library is libmemory_late.so of the workloads, which knows no JVM. */
static int record_late(execute_function execute, error_function text, const char *file, const char *late)
{
	long (*take)(void *env, void *class, int way, int count, int bytes);
	char start[4096];
	const char *error;
	void *library;

	snprintf(start, sizeof(start), "start,nativemem,total,collapsed,file=%s", file);
	error = execute(start, keep);
	if (error)
		return fail("start", text(error));
	library = dlopen(late, RTLD_NOW);
	*(void **)&take = library ? dlsym(library, "Java_workload_NativeMemory_00024Late_take") : NULL;
	if (!take)
		return fail(late, dlerror());
	take(NULL, NULL, 0, 1, FREED_BYTES);
	error = execute("stop", keep);
	return error ? fail("stop", text(error)) : 0;
}

static int emit_all(register_function add_type, emit_function emit)
{
	static const uint8_t odd[] = {'a', 0xe4, 0, 'z'};
	static uint8_t longest[2049];
	int order = add_type("order"), odds = add_type("odd \xc3\xa4");
	char text[32];

	if (order < 0 || odds < 0 || order == odds || add_type("order") != order)
		return fail("types", NULL);
	if (add_type("") >= 0 || !emit(-1, odd, 1) || !emit(odds + 1, odd, 1) || !emit(order, longest, sizeof(longest)))
		return fail("wrong arguments were taken", NULL);
	for (int i = 0; i < EVENTS; i++) {
		snprintf(text, sizeof(text), "number %d", i);
		if (emit(order, (const uint8_t *)text, strlen(text)))
			return fail("an event", text);
	}
	memset(longest, 'x', sizeof(longest));
	return emit(odds, odd, sizeof(odd)) || emit(odds, longest, sizeof(longest) - 1) || emit(odds, NULL, 0)
		       ? fail("odd events", NULL)
		       : 0;
}

typedef volatile uint64_t *(*newest_function)(void);

/* Call while CPU time is recorded. */
static int see_samples(newest_function newest, volatile uint64_t *number)
{
	struct timespec now;

	if (newest() != number)
		return fail("the thread's number", "it is elsewhere");
	spend();
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!*number || *number > (uint64_t)(now.tv_sec * 1000000000ll + now.tv_nsec))
		return fail("the thread's number", "it was sampled");
	return 0;
}

static int record_events(void *library, execute_function execute, error_function text, const char *file)
{
	register_function add_type = (register_function)(uintptr_t)dlsym(library, "asprof_register_jfr_event");
	emit_function emit = (emit_function)(uintptr_t)dlsym(library, "asprof_emit_jfr_event");
	newest_function newest = (newest_function)(uintptr_t)dlsym(library, "asprof_get_thread_local_data");
	volatile uint64_t *number = newest ? newest() : NULL;
	char start[4096];
	const char *error;

	if (!add_type || !emit || !number || emit(add_type("before"), NULL, 0)) /* nothing is recorded yet */
		return fail("the functions", dlerror());
	if (*number)
		return fail("the thread's number", "nothing was recorded yet");
	snprintf(start, sizeof(start), "start,event=cpu,jfr,file=%s", file);
	error = execute(start, keep);
	if (error)
		return fail("start", text(error));
	if (emit_all(add_type, emit) || see_samples(newest, number))
		return 1;
	error = execute("stop", keep);
	if (!error && *number) /* it can be read for ever */
		return fail("the thread's number", "nothing is recorded");
	return error ? fail("stop", text(error)) : 0;
}

static int count_entries(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

static void print_held(void)
{
	printf("HELD %d %d\n", count_entries("/proc/self/fd"), count_entries("/proc/self/task"));
}

static int record_often(execute_function execute, error_function text, const char *file, int times)
{
	char stop[4096];
	const char *error;

	snprintf(stop, sizeof(stop), "stop,collapsed,file=%s", file);
	for (int i = 0; i < times; i++) {
		error = execute("start,event=cpu,interval=1ms", NULL);
		if (error)
			return fail("start", text(error));
		error = execute(stop, NULL);
		if (error)
			return fail("stop", text(error));
		if (!i)
			print_held();
	}
	print_held();
	return 0;
}

int main(int argc, char **argv)
{
	void *library = argc >= 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	init_function init = library ? (init_function)(uintptr_t)dlsym(library, "asprof_init") : NULL;
	execute_function execute = library ? (execute_function)(uintptr_t)dlsym(library, "asprof_execute") : NULL;
	error_function text = library ? (error_function)(uintptr_t)dlsym(library, "asprof_error_str") : NULL;
	const char *error;
	char stop[4096];

	if (!init || !execute || !text)
		return fail("the library or a function is missing", dlerror());
	init();
	if (argc > 3 && atoi(argv[3]) > 0)
		return record_often(execute, text, argv[2], atoi(argv[3]));
	if (argc > 3 && !strcmp(argv[3], "events"))
		return record_events(library, execute, text, argv[2]);
	if (argc > 4 && !strcmp(argv[3], "late"))
		return record_late(execute, text, argv[2], argv[4]);
	if (argc > 3)
		return record_memory(execute, text, argv[2]);
	error = execute("stop", keep);
	if (!error || strcmp(text(error), "Profiler is not active"))
		return fail("stop of nothing", error);
	error = execute("start,event=cpu,interval=1ms", keep);
	if (error || strcmp(written, "Profiling started\n"))
		return fail("start", error ? text(error) : written);
	spend();
	error = execute("stop,collapsed,file=/no/such/folder/x", keep);
	if (!error || strcmp(text(error), "Could not open output file"))
		return fail("stop with a wrong file", error);
	snprintf(stop, sizeof(stop), "stop,collapsed,file=%s", argv[2]);
	error = execute(stop, keep);
	return error ? fail("stop", text(error)) : 0;
}
