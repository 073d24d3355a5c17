/* SPDX-License-Identifier: MIT */
/* The functions of asprof.h, and what LD_PRELOAD with ASPROF_COMMAND does. The process need not be a JVM. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "api/profiler.h"
#include "duet_jvm.h"
#include "duet_record.h"
#include "event/shared.h"
#include "jvm/jvm.h"
#include "libc_versions.h"
#include "sample/newest.h"

#define COMMAND_VARIABLE "ASPROF_COMMAND"
#define ERROR_BYTES 512
#define CREATED_FUNCTION "JNI_GetCreatedJavaVMs"

typedef void (*writer_function)(const char *bytes, size_t count);
typedef jint (*created_function)(JavaVM **vms, jsize room, jsize *ret_count);

JNIEXPORT void asprof_init(void);
JNIEXPORT const char *asprof_error_str(const char *error);
JNIEXPORT const char *asprof_execute(const char *command, writer_function writer);
JNIEXPORT void *asprof_get_thread_local_data(void);
JNIEXPORT int asprof_register_jfr_event(const char *name);
JNIEXPORT const char *asprof_emit_jfr_event(int type, const uint8_t *data, size_t count);

static int find_libjvm(struct dl_phdr_info *info, size_t size, void *path)
{
	if (!info->dlpi_name || !duet_is_libjvm(info->dlpi_name))
		return 0;
	snprintf(path, PATH_MAX, "%s", info->dlpi_name);
	return 1;
}

/* A program that loads libjvm itself may keep its functions from other libraries. The handle is never closed. */
static created_function find_created(void)
{
	void *function = dlsym(RTLD_DEFAULT, CREATED_FUNCTION), *libjvm = NULL;
	char path[PATH_MAX];

	if (!function && dl_iterate_phdr(find_libjvm, path))
		libjvm = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (libjvm)
		function = dlsym(libjvm, CREATED_FUNCTION);
	return (created_function)(uintptr_t)function;
}

static JavaVM *find_jvm(void)
{
	created_function created = find_created();
	JavaVM *vm = NULL;
	jsize count = 0;

	return created && !created(&vm, 1, &count) && count == 1 ? vm : NULL;
}

/* HotSpot gives a JVMTI environment to attached threads only: another thread crashes it. */
static void open_jvm(void)
{
	JavaVM *vm = jvm.jvmti ? NULL : find_jvm();
	JNIEnv *env;
	bool was_attached;

	if (!vm)
		return;
	was_attached = !(*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_6);
	if (!was_attached && (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&env, NULL))
		return;
	(void)callbacks_open(vm, false);
	if (!was_attached)
		(*vm)->DetachCurrentThread(vm);
}

JNIEXPORT void asprof_init(void)
{
	open_jvm();
}

JNIEXPORT const char *asprof_error_str(const char *error)
{
	return error;
}

/* Thread-local variables of the linker's would need room that libraries which are loaded late cannot have. */
static pthread_key_t error_key;
static bool has_error_key;

static void make_error_key(void)
{
	has_error_key = !pthread_key_create(&error_key, free);
}

/* Returns this thread's room for a text, or NULL. */
static char *error_room(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char *room;

	pthread_once(&once, make_error_key);
	room = has_error_key ? pthread_getspecific(error_key) : NULL;
	if (room || !has_error_key)
		return room;
	room = malloc(ERROR_BYTES);
	if (room && pthread_setspecific(error_key, room)) {
		free(room);
		room = NULL;
	}
	return room;
}

/* An error is its text. It stays valid until the same thread's next call. */
static const char *keep_error(const char *text)
{
	char *kept = error_room();

	if (!kept)
		return "There is no memory for the error's text";
	snprintf(kept, ERROR_BYTES, "%s", text);
	return kept;
}

JNIEXPORT const char *asprof_execute(const char *command, writer_function writer)
{
	const char *error = NULL, *reply;
	struct link_answer answer;

	if (!command)
		return "No command";
	open_jvm();
	profiler_execute(DUET_QUESTION_API, command, &answer);
	profiler_print_log(&answer);
	reply = link_reply(&answer);
	if (answer.head.code)
		error = keep_error(answer.head.code == DUET_ANSWER_NO_FILE ? "Could not open output file" : reply);
	else if (writer && answer.report >= 0)
		link_pass_report(&answer, writer);
	else if (writer && *reply)
		writer(reply, strlen(reply));
	link_answer_release(&answer);
	return error;
}

/* The thread's data is one number. */
JNIEXPORT void *asprof_get_thread_local_data(void)
{
	return newest_here();
}

JNIEXPORT int asprof_register_jfr_event(const char *name)
{
	return name ? user_events_type(name) : -1;
}

JNIEXPORT const char *asprof_emit_jfr_event(int type, const uint8_t *data, size_t count)
{
	if (count > DUET_MAX_USER_DATA)
		return "The event has more than 2048 bytes";
	return user_events_add(type, data, count) ? NULL : "There is no such type of events: register it first";
}

/* A library that is loaded in another way ignores the variable: it may be meant for a program that is started. */
static bool is_preloaded(void)
{
	const char *list = getenv("LD_PRELOAD");
	const char *name;
	Dl_info info;

	if (!list || !dladdr((const void *)(uintptr_t)asprof_execute, &info) || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	return strstr(list, name ? name + 1 : info.dli_fname);
}

__attribute__((constructor)) static void begin_preloaded(void)
{
	const char *command = getenv(COMMAND_VARIABLE);

	if (command && *command && is_preloaded())
		(void)profiler_execute_agent(command);
}

/* A JVM has asked for its file when it went down, and nothing is left to do. */
__attribute__((destructor)) static void end_with_process(void)
{
	profiler_end();
}
