/* SPDX-License-Identifier: MIT */
#include "asprof/applications.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/helper.h"
#include "proc/process.h"
#include "runtime/application.h"
#include "subject/program.h"

static bool is_java(const char *pid)
{
	char link[sizeof("/proc//exe") + NAME_MAX], path[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%s/exe", pid);
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return false;
	path[len] = '\0';
	return strrchr(path, '/') && !strcmp(strrchr(path, '/') + 1, "java");
}

/* Returns a class without its package, or the file name of a jar. */
static const char *short_name(const char *program)
{
	size_t length = strlen(program);
	bool is_jar = length > 4 && !strcmp(program + length - 4, ".jar");
	const char *last = strrchr(program, is_jar ? '/' : '.');

	return last ? last + 1 : program;
}

static bool runs(const char *pid, const char *name)
{
	const char *program;
	struct buf arguments;
	bool result;

	buf_init(&arguments);
	(void)program_arguments(atoi(pid), &arguments);
	program = application_find(arguments.data, arguments.len);
	result = program && (!strcmp(program, name) || !strcmp(short_name(program), name));
	buf_release(&arguments);
	return result;
}

/* A process that has ended is older than any other. */
static uint64_t start_of(const char *pid)
{
	uint64_t ticks = 0;

	(void)process_read_start_ticks(atoi(pid), &ticks);
	return ticks;
}

/* `name`: NULL for the JVM that was started last, as async-profiler's command line takes it. */
static pid_t find_one(const char *name, struct buf *why)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	uint64_t newest = 0;
	pid_t found = 0;
	size_t count = 0;

	helper_start();
	while (proc && (entry = readdir(proc)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !is_java(entry->d_name))
			continue;
		if (name && !runs(entry->d_name, name))
			continue;
		count++;
		if (count > 1 && start_of(entry->d_name) < newest)
			continue;
		found = atoi(entry->d_name);
		newest = start_of(entry->d_name);
	}
	if (proc)
		closedir(proc);
	helper_end();
	if (count == 1 || (count && !name))
		return found;
	if (count)
		buf_add_str(why, "Multiple Java processes found");
	else
		buf_add_str(why, "No Java process");
	return -ESRCH;
}

pid_t applications_find(const char *target, struct buf *why)
{
	char *end;
	long pid;

	if (!isdigit((unsigned char)*target))
		return find_one(strcmp(target, "jps") ? target : NULL, why);
	pid = strtol(target, &end, 10);
	if (!*end && pid > 0 && pid <= INT_MAX)
		return (pid_t)pid;
	buf_printf(why, "%s is not a process id", target);
	return -EINVAL;
}
