/* SPDX-License-Identifier: MIT */
#include "subject/running.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/helper.h"
#include "runtime/application.h"
#include "subject/program.h"

#define LISTED_MAX 8

const char *running_short_name(const char *program)
{
	size_t len = strlen(program);
	bool is_jar = len > 4 && !strcmp(program + len - 4, ".jar");
	const char *last = is_jar ? NULL : strrchr(program, '.');

	if (!last && !is_jar)
		last = strchr(program, '/');
	return last ? last + 1 : program;
}

bool running_is_called(const char *program, const char *name)
{
	const char *class = strchr(program, '/') ? strchr(program, '/') + 1 : program;

	return !strcmp(program, name) || !strcmp(class, name) || !strcmp(running_short_name(program), name);
}

static char *program_of(const struct process *process)
{
	BUF(name);

	return strdup(program_name(process, &name) ? process->comm : name.data + strlen(APPLICATION_PREFIX));
}

static int add_if_called(struct running *running, const struct process *process, const char *name)
{
	char *program;

	if (process->exited || !maps_libjvm(&process->maps))
		return 0;
	program = program_of(process);
	if (program && name && !running_is_called(program, name)) {
		free(program);
		return 0;
	}
	if (program && !vec_push(&running->jvms, (struct running_jvm){process, program}))
		return 0;
	free(program);
	return -ENOMEM;
}

static int by_pid(const void *a, const void *b)
{
	pid_t first = ((const struct running_jvm *)a)->process->pid;
	pid_t second = ((const struct running_jvm *)b)->process->pid;

	return (first > second) - (first < second);
}

int running_find(struct running *ret, const char *name)
{
	DIR *folder = opendir("/proc");
	int err = folder ? 0 : -errno;
	pid_t pid;

	*ret = (struct running){0};
	helper_start();
	while (!err && (pid = process_next(folder))) {
		const struct process *process = process_get(&ret->processes, pid, 0);

		err = process ? add_if_called(ret, process, name) : 0;
	}
	if (folder)
		closedir(folder);
	if (ret->jvms.len)
		qsort(ret->jvms.items, ret->jvms.len, sizeof(*ret->jvms.items), by_pid);
	return err;
}

void running_release(struct running *running)
{
	for (size_t i = 0; i < running->jvms.len; i++)
		free(running->jvms.items[i].program);
	vec_release(&running->jvms);
	process_table_release(&running->processes);
	helper_end();
}

void running_list(const struct running *running, struct buf *out)
{
	for (size_t i = 0; i < running->jvms.len && i < LISTED_MAX; i++) {
		const struct running_jvm *jvm = &running->jvms.items[i];

		buf_printf(out, "%s%d (%s)", i ? ", " : "", jvm->process->pid, jvm->program);
	}
	if (running->jvms.len > LISTED_MAX)
		buf_printf(out, " and %zu more", running->jvms.len - LISTED_MAX);
}
