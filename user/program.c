/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/hsperfdata.h"
#include "base/io.h"
#include "runtime/application.h"
#include "runtime/spark.h"
#include "sym/target_file.h"

#define ARGUMENTS_MAX (2u << 20) /* bytes of /proc/PID/cmdline: class paths are long */
#define COMMAND_MAX 4096 /* bytes of the counter sun.rt.javaCommand */
#define PROPERTIES_MAX (1u << 20) /* bytes of a file of Spark's that are read: they have some kilobytes */
#define SPARK_PREFIX ", spark: " /* gProfiler's */

/* ---- its name ---- */

static int read_arguments(pid_t pid, struct buf *arguments)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	return io_read_file(AT_FDCWD, path, ARGUMENTS_MAX, arguments);
}

static int name_by_arguments(pid_t pid, struct buf *name)
{
	struct buf arguments;
	int err;

	buf_init(&arguments);
	err = read_arguments(pid, &arguments);
	if (!err)
		err = application_from_arguments(arguments.data, arguments.len, name);
	buf_release(&arguments);
	return err;
}

/* What the JVM says about itself: for launchers of its own, and options in files. */
static int name_by_counter(const struct process *process, struct buf *name)
{
	char path[32], command[COMMAND_MAX];
	struct buf bytes;
	int err, root;

	snprintf(path, sizeof(path), "/proc/%d/root", process->pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	buf_init(&bytes);
	err = hsperfdata_read(root, process->ns_pid, process->uid, &bytes);
	if (!err)
		err = hsperfdata_string(bytes.data, bytes.len, "sun.rt.javaCommand", command, sizeof(command));
	if (!err)
		err = application_from_command(command, name);
	buf_release(&bytes);
	close(root);
	return err;
}

int program_name(const struct process *process, struct buf *name)
{
	return name_by_arguments(process->pid, name) ? name_by_counter(process, name) : 0;
}

/* ---- how it was started ---- */

/* Bytes read of /proc/PID/`file`, or -1. */
static ssize_t read_of(pid_t pid, const char *file, uint64_t offset, void *bytes, size_t size)
{
	char path[32];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = pread(fd, bytes, size, (off_t)offset);
	close(fd);
	return len;
}

void program_executed_as(pid_t pid, char *name, size_t size)
{
	Elf64_auxv_t vector[64];
	ssize_t len = read_of(pid, "auxv", 0, vector, sizeof(vector));
	uint64_t address = 0;

	for (ssize_t i = 0; i < len / (ssize_t)sizeof(*vector); i++)
		if (vector[i].a_type == AT_EXECFN)
			address = vector[i].a_un.a_val;
	len = address ? read_of(pid, "mem", address, name, size - 1) : -1; /* ends with the stack, which is near */
	name[len > 0 ? len : 0] = '\0';
}

/* ---- Spark's name for it ---- */

/*
 * As the process sees the file, whose content counts for nothing but the name in it: a hostile one may have linked it
 * anywhere in its own root.
 */
static int read_properties(pid_t pid, const char *path, struct buf *name)
{
	char itself[64];
	struct buf text;
	int err, fd = target_file_open(pid, path);

	if (fd < 0)
		return fd;
	buf_init(&text);
	snprintf(itself, sizeof(itself), "/proc/self/fd/%d", fd);
	err = io_read_file(AT_FDCWD, itself, PROPERTIES_MAX, &text);
	if (!err)
		err = spark_from_properties(text.data, text.len, name);
	buf_release(&text);
	close(fd);
	return err;
}

/* `path`, absolute or below the working directory. */
static int read_properties_at(pid_t pid, const char *path, struct buf *name)
{
	char link[32], folder[PATH_MAX];
	struct buf whole;
	ssize_t len;
	int err;

	if (*path == '/')
		return read_properties(pid, path, name);
	snprintf(link, sizeof(link), "/proc/%d/cwd", pid);
	len = readlink(link, folder, sizeof(folder) - 1);
	if (len < 0)
		return -errno;
	folder[len] = '\0';
	buf_init(&whole);
	buf_printf(&whole, "%s/%s", folder, path);
	err = read_properties(pid, whole.data, name);
	buf_release(&whole);
	return err;
}

static void find_spark_name(pid_t pid, const struct spark *spark, struct buf *name)
{
	if (spark->name)
		buf_add_str(name, spark->name);
	if (name->len || !spark->is_own)
		return;
	if (spark->properties && !read_properties_at(pid, spark->properties, name))
		return;
	if (!read_properties_at(pid, SPARK_PROPERTIES, name) || !spark->id)
		return;
	buf_add_str(name, spark->id);
}

void program_add_spark(pid_t pid, struct buf *application)
{
	struct buf arguments, name;
	struct spark spark;

	buf_init(&arguments);
	buf_init(&name);
	if (!read_arguments(pid, &arguments)) {
		spark_from_arguments(arguments.data, arguments.len, &spark);
		find_spark_name(pid, &spark, &name);
	}
	if (name.len) {
		buf_add_str(application, SPARK_PREFIX);
		buf_add(application, name.data, name.len < APPLICATION_MAX ? name.len : APPLICATION_MAX);
	}
	buf_release(&name);
	buf_release(&arguments);
}
