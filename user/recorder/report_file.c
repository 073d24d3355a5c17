/* SPDX-License-Identifier: MIT */
#include "recorder/report_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/packet.h"
#include "base/root.h"

static void add_time(time_t when, struct buf *ret)
{
	char stamp[32] = "";
	struct tm local;

	if (localtime_r(&when, &local))
		strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
	buf_add_str(ret, stamp);
}

/* Appends the value of the variable in braces. Returns the text after the braces. */
static const char *add_variable(const char *braces, struct buf *ret)
{
	size_t length = strcspn(braces + 1, "}");
	char *name = strndup(braces + 1, length);
	const char *value = name ? getenv(name) : NULL;

	if (value)
		buf_add_str(ret, value);
	free(name);
	return braces + 1 + length + (braces[1 + length] == '}');
}

static const char *add_number(const char *after, unsigned int number, struct buf *ret)
{
	char *end;
	unsigned long most;

	if (*after != '{' || !isdigit((unsigned char)after[1])) {
		buf_printf(ret, "%u", number);
		return after;
	}
	most = strtoul(after + 1, &end, 10);
	buf_printf(ret, "%lu", most ? number % most : number);
	return end + (*end == '}');
}

void report_file_name(const char *path, pid_t pid, unsigned int number, time_t when, struct buf *ret)
{
	while (*path) {
		char kind = *path == '%' ? path[1] : '\0';

		path += kind && strchr("ptn{%", kind) ? 2 : 1;
		if (kind == 'p')
			buf_printf(ret, "%d", pid);
		else if (kind == 't')
			add_time(when, ret);
		else if (kind == 'n')
			path = add_number(path, number, ret);
		else if (kind == '{')
			path = add_variable(path - 1, ret);
		else
			buf_add_char(ret, path[-1]);
	}
}

/* Does not ask a file system for attributes: that of the process's root may never answer. */
static int identify(const char *process, const char *name, struct statx *ret)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%s/%s", process, name);
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, ret);
}

static bool is_same(pid_t pid, const char *name)
{
	struct statx its, ours;
	char process[16];

	snprintf(process, sizeof(process), "%d", pid);
	return identify(process, name, &its) < 0 || identify("self", name, &ours) < 0 ||
	       (its.stx_dev_major == ours.stx_dev_major && its.stx_dev_minor == ours.stx_dev_minor &&
		its.stx_ino == ours.stx_ino);
}

void report_file_path(pid_t pid, const char *path, struct buf *ret)
{
	static const struct {
		const char *name, *in_proc;
	} own[] = {{"/proc/self/", ""}, {"/dev/fd/", "fd/"}, {"/dev/stdout", "fd/1"}, {"/dev/stderr", "fd/2"}};

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		size_t length = strlen(own[i].name);

		if (strncmp(path, own[i].name, length) != 0 || (own[i].name[length - 1] != '/' && path[length]))
			continue;
		return buf_printf(ret, "/proc/%d/%s%s", pid, own[i].in_proc, path + length);
	}
	buf_add_str(ret, path);
}

/* In the root of a process that has ended nothing can be created, so its files are looked up in ours. */
bool report_file_is_ours(pid_t pid)
{
	return is_same(pid, "root") && is_same(pid, "ns/mnt");
}

/* Ends the output. In a child, reports its progress to the parent. */
static int copy(struct io_output *output, int report, int parent)
{
	static char bytes[USER_CHILD_PIECE];
	ssize_t more = 1;
	int err = 0;

	io_output_cut(output);
	for (off_t at = 0; !err && (more = pread(report, bytes, sizeof(bytes), at)) > 0; at += more) {
		if (fwrite(bytes, 1, (size_t)more, output->file) != (size_t)more)
			err = -EIO;
		if (parent >= 0)
			user_child_answer(parent, USER_CHILD_GOES_ON);
	}
	return io_output_end(output, more < 0 ? -errno : err);
}

struct own {
	const char *path;
	struct io_access access;
};

/* Reports two results, as work(). */
static void work_own(int socket, int root, const void *context)
{
	const struct own *own = context;
	struct io_output output;
	int source, err = io_output_open(&output, own->path, &own->access);
	char none;

	user_child_answer(socket, err);
	if (!err && packet_receive(socket, &none, sizeof(none), -1, &source) > 0 && source >= 0)
		user_child_answer(socket, copy(&output, source, socket));
}

static int await_created(struct foreign_file *file, int err)
{
	if (!err)
		err = user_child_await(&file->child, USER_CHILD_MS);
	if (err)
		foreign_file_release(file);
	return err;
}

/* A pipe is opened once, when there is something to write: its reader would see an end otherwise. */
int report_file_create(int *ret, pid_t pid, uint64_t start_ticks, const char *path, bool is_private, bool keeps,
		       struct buf *why)
{
	bool is_regular = true;
	struct report_file file;
	struct stat st;
	int err;

	*ret = -1;
	if (!report_file_is_ours(pid)) {
		err = report_file_open(&file, pid, start_ticks, path, is_private ? REPORT_FILE_PRIVATE : 0, why);
		report_file_discard(&file);
		return err;
	}
	if (!stat(path, &st))
		is_regular = S_ISREG(st.st_mode);
	if (!is_regular)
		return 0;
	*ret = io_open_own(path, O_WRONLY | O_CLOEXEC, is_private ? 0600 : 0644);
	err = *ret < 0 ? *ret : !keeps && ftruncate(*ret, 0) < 0 ? -errno : 0;
	if (err)
		buf_printf(why, "Could not open Flight Recorder output file: %s: %s", path, strerror(-err));
	return err;
}

int report_file_open(struct report_file *file, pid_t pid, uint64_t start_ticks, const char *path, unsigned int how,
		     struct buf *why)
{
	bool is_private = how & REPORT_FILE_PRIVATE;
	const struct own own = {path, {.is_private = is_private, .group = IO_NO_GROUP, .in_place = !is_private}};
	int err;

	*file = (struct report_file){.foreign = FOREIGN_FILE_NONE};
	if (strcmp(path, "-") != 0 && !report_file_is_ours(pid)) {
		if (own.access.is_private)
			return file->error = buf_explain(why, -EPERM, REPORT_FILE_NOT_PRIVATE);
		err = foreign_file_create(&file->foreign, pid, start_ticks, path);
	} else if (how & REPORT_FILE_WAITS) {
		err = io_output_open(&file->own, path, &own.access);
	} else {
		err = await_created(&file->foreign, user_child_start(&file->foreign.child, 0, 0, work_own, &own));
	}
	if (err < 0)
		buf_printf(why, "Could not open output file: %s: %s", path, strerror(-err));
	file->error = err;
	return err;
}

int report_file_write(struct report_file *file, int report, struct buf *why)
{
	int err = file->error;

	if (err)
		return err;
	err = file->foreign.child.pid ? foreign_file_write(&file->foreign, report) : copy(&file->own, report, -1);

	report_file_discard(file);
	if (err < 0)
		buf_printf(why, "Could not write output file: %s%s", strerror(-err), io_advice(err));
	return err;
}

void report_file_discard(struct report_file *file)
{
	foreign_file_release(&file->foreign);
	io_output_discard(&file->own);
	*file = (struct report_file){.foreign = FOREIGN_FILE_NONE};
}

/* Opens by descriptor, so that the file that is opened is the one that was checked. */
static int open_existing(int dir, const char *name)
{
	IO_FD(there) = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	char link[32];
	int fd;

	if (there < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", there);
	if (fstat(there, &st) || !S_ISREG(st.st_mode) || root_is_made_up(there))
		return -EACCES;
	fd = open(link, O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Finds the folder inside the process's root. If the file itself is a link, it is not followed. */
static int create_in(int root, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	IO_FD(dir) = folder ? root_open(root, folder, O_PATH | O_DIRECTORY, true) : -ENOMEM;
	int fd;

	free(folder);
	if (dir < 0)
		return dir;
	fd = openat(dir, slash + 1, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return errno == EEXIST ? open_existing(dir, slash + 1) : -errno;
	return fd;
}

/* Reports two results: of creating the file, and of writing it. */
static void work(int socket, int root, const void *path)
{
	int source, fd = create_in(root, path);
	char none;

	user_child_answer(socket, fd < 0 ? fd : 0);
	if (fd >= 0 && packet_receive(socket, &none, sizeof(none), -1, &source) > 0 && source >= 0)
		user_child_answer(socket, user_child_copy(socket, source, io_bytes(source), fd));
}

int foreign_file_create(struct foreign_file *file, pid_t pid, uint64_t start_ticks, const char *path)
{
	return await_created(file, user_child_start(&file->child, pid, start_ticks, work, path));
}

int foreign_file_write(const struct foreign_file *file, int source)
{
	int err = packet_send(file->child.socket, "", 1, source, MSG_DONTWAIT);

	return err ? err : user_child_await_copy(&file->child);
}

void foreign_file_release(struct foreign_file *file)
{
	user_child_release(&file->child);
}
