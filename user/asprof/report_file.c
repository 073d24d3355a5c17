/* SPDX-License-Identifier: MIT */
#include "asprof/report_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rights.h"
#include "base/root.h"

#define PATIENCE_S 5 /* for a file system of the process that does not answer */
#define COPY_BYTES 65536

/* ---- names ---- */

static void add_time(struct buf *ret)
{
	time_t now = time(NULL);
	char stamp[32] = "";
	struct tm local;

	if (localtime_r(&now, &local))
		strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
	buf_add_str(ret, stamp);
}

/* Appends the value of the variable in braces. Returns what follows them. */
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

void report_file_name(const char *path, pid_t pid, unsigned int number, struct buf *ret)
{
	while (*path) {
		char kind = *path == '%' ? path[1] : '\0';

		path += kind && strchr("ptn{%", kind) ? 2 : 1;
		if (kind == 'p')
			buf_printf(ret, "%d", pid);
		else if (kind == 't')
			add_time(ret);
		else if (kind == 'n')
			path = add_number(path, number, ret);
		else if (kind == '{')
			path = add_variable(path - 1, ret);
		else
			buf_add_char(ret, path[-1]);
	}
}

/* ---- files of the process ---- */

static bool is_same(pid_t pid, const char *name)
{
	char path[48], own[48];
	struct stat its, ours;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	snprintf(own, sizeof(own), "/proc/self/%s", name);
	return stat(path, &its) < 0 || stat(own, &ours) < 0 || (its.st_dev == ours.st_dev && its.st_ino == ours.st_ino);
}

/* In a process that has ended nothing can be created; its files are where we see them. */
static bool same_files(pid_t pid)
{
	return is_same(pid, "root") && is_same(pid, "ns/mnt");
}

static int become_owner(const struct stat *process)
{
	if (geteuid() == process->st_uid && getegid() == process->st_gid)
		return 0;
	if (setgroups(1, &process->st_gid) < 0 || setresgid(process->st_gid, process->st_gid, process->st_gid) < 0 ||
	    setresuid(process->st_uid, process->st_uid, process->st_uid) < 0)
		return -errno;
	return rights_keep(RIGHTS_NONE);
}

/* The folder is found inside the process's root. A link in the place of the file itself is not followed. */
static int create_in(int root, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	int fd, dir = folder ? root_open(root, folder, O_PATH | O_DIRECTORY, true) : -ENOMEM;

	free(folder);
	if (dir < 0)
		return dir;
	fd = openat(dir, slash + 1, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : fd;
}

/* In a child. Returns a descriptor or -errno. */
static int create_as_owner(pid_t pid, const char *path)
{
	char proc[32];
	struct stat process;
	int dir, root, err;

	snprintf(proc, sizeof(proc), "/proc/%d", pid);
	dir = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	root = dir < 0 ? -1 : openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || fstat(dir, &process) < 0)
		return -errno;
	err = become_owner(&process);
	prctl(PR_SET_DUMPABLE, 0); /* the process's user must not be able to trace this one */
	return err ? err : create_in(root, path);
}

struct created {
	int error;
};

static void send_created(int socket, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} rights = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct created created = {.error = fd < 0 ? fd : 0};
	struct iovec part = {&created, sizeof(created)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&rights.head), &fd, sizeof(fd));
		message.msg_control = rights.bytes;
		message.msg_controllen = sizeof(rights.bytes);
	}
	(void)!sendmsg(socket, &message, MSG_NOSIGNAL);
}

static int receive_created(int socket)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} rights;
	struct created created;
	struct iovec part = {&created, sizeof(created)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	struct cmsghdr *head;
	int fd;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(created))
		return -ETIMEDOUT; /* its alarm has ended the child */
	head = CMSG_FIRSTHDR(&message);
	if (created.error || !head || head->cmsg_type != SCM_RIGHTS)
		return created.error < 0 ? created.error : -EPROTO;
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

static int create_foreign(pid_t pid, const char *path)
{
	int pair[2], fd;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	child = fork();
	if (!child) {
		signal(SIGALRM, SIG_DFL);
		alarm(PATIENCE_S);
		send_created(pair[1], create_as_owner(pid, path));
		_exit(0);
	}
	close(pair[1]);
	fd = child < 0 ? -EAGAIN : receive_created(pair[0]);
	close(pair[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return fd;
}

/* ---- the file ---- */

int report_file_open(struct report_file *file, pid_t pid, const char *path, struct buf *why)
{
	int err;

	*file = (struct report_file){.foreign = -1};
	if (same_files(pid)) {
		err = io_output_open(&file->own, path, NULL);
	} else {
		file->foreign = create_foreign(pid, path);
		err = file->foreign < 0 ? file->foreign : 0;
	}
	if (err < 0)
		buf_printf(why, "Could not open output file: %s: %s", path, strerror(-err));
	return err;
}

static int copy(struct report_file *file, int report)
{
	char bytes[COPY_BYTES];
	ssize_t more;
	int err = 0;

	for (off_t at = 0; !err && (more = pread(report, bytes, sizeof(bytes), at)) > 0; at += more)
		if (file->foreign >= 0)
			err = io_write_all(file->foreign, bytes, (size_t)more);
		else if (fwrite(bytes, 1, (size_t)more, file->own.file) != (size_t)more)
			err = io_output_error(&file->own) ? io_output_error(&file->own) : -EIO;
	return err;
}

int report_file_write(struct report_file *file, int report, struct buf *why)
{
	int err = copy(file, report);

	if (!err && file->foreign < 0)
		err = io_output_commit(&file->own);
	report_file_discard(file);
	if (err < 0)
		buf_printf(why, "Could not write output file: %s", strerror(-err));
	return err;
}

void report_file_discard(struct report_file *file)
{
	if (file->foreign >= 0)
		close(file->foreign);
	else
		io_output_discard(&file->own);
	*file = (struct report_file){.foreign = -1};
}
