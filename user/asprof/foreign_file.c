/* SPDX-License-Identifier: MIT */
#include "asprof/foreign_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/children.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/packet.h"
#include "base/rights.h"
#include "base/root.h"
#include "proc/process.h"

#define PATIENCE_MS 5000
#define MEGABYTE_MS 1000 /* for each megabyte that is written, in addition to PATIENCE_MS */
#define COPY_BYTES 65536
#define LEFT_MAX 8 /* children of one user that did not end */

/* ---- the child ---- */

/* A process of root may be root of a container only, so its child has no capability either. */
static int become(const struct stat *process)
{
	bool is_same = geteuid() == process->st_uid && getegid() == process->st_gid;

	if (!is_same &&
	    (setgroups(1, &process->st_gid) < 0 || setresgid(process->st_gid, process->st_gid, process->st_gid) < 0 ||
	     setresuid(process->st_uid, process->st_uid, process->st_uid) < 0))
		return -errno;
	prctl(PR_SET_DUMPABLE, 0); /* its user must not be able to trace this one */
	return rights_keep(RIGHTS_NONE);
}

/* Opens by descriptor, so that the file that is opened is the one that was checked. */
static int open_existing(int dir, const char *name)
{
	int fd = -EACCES, there = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	char link[32];

	if (there < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", there);
	if (!fstat(there, &st) && S_ISREG(st.st_mode) && !root_is_made_up(there)) {
		fd = open(link, O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	close(there);
	return fd;
}

/* Finds the folder inside the process's root. If the file itself is a link, it is not followed. */
static int create_in(int root, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	int fd, dir = folder ? root_open(root, folder, O_PATH | O_DIRECTORY, true) : -ENOMEM;

	free(folder);
	if (dir < 0)
		return dir;
	fd = openat(dir, slash + 1, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		fd = errno == EEXIST ? open_existing(dir, slash + 1) : -errno;
	close(dir);
	return fd;
}

static int copy(int source, int fd)
{
	char bytes[COPY_BYTES];
	ssize_t more = 0;
	int err = 0;

	for (off_t at = 0; !err && (more = pread(source, bytes, sizeof(bytes), at)) > 0; at += more)
		err = io_write_all(fd, bytes, (size_t)more);
	return err || more == 0 ? err : -errno;
}

static void tell(int socket, int result)
{
	(void)packet_send(socket, &result, sizeof(result), -1, 0);
}

/* `root` and `process` belong to one process. Reports two results: of creating the file, and of writing it. */
static void work(int socket, int root, const struct stat *process, const char *path)
{
	int err = become(process);
	int source, fd = err < 0 ? err : create_in(root, path);
	char none;

	tell(socket, fd < 0 ? fd : 0);
	if (fd >= 0 && packet_receive(socket, &none, sizeof(none), -1, &source) > 0 && source >= 0)
		tell(socket, copy(source, fd));
}

/* ---- the parent ---- */

/* Returns the result that the child reports, or -ETIMEDOUT. */
static int await_result(const struct foreign_file *file, uint64_t ms)
{
	int result, none;
	ssize_t len = packet_receive(file->socket, &result, sizeof(result), ms < INT_MAX ? (int)ms : INT_MAX, &none);

	if (len != sizeof(result))
		return -ETIMEDOUT; /* a child that is killed by its user has not answered either */
	return result < 0 ? result : 0;
}

static int start(struct foreign_file *file, int root, const struct stat *process, const char *path)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	file->child = fork();
	if (!file->child) {
		signal(SIGPIPE, SIG_IGN);
		close(pair[0]);
		work(pair[1], root, process, path);
		_exit(0);
	}
	close(pair[1]);
	file->socket = pair[0];
	file->uid = process->st_uid;
	if (file->child > 0)
		return 0;
	file->child = 0;
	return -EAGAIN;
}

/* Opens nothing that could block: only entries of /proc/PID itself. */
static int open_process(pid_t pid, uint64_t start_ticks, struct stat *ret_process)
{
	char path[32], state;
	uint64_t ticks = 0;
	int proc, stat_fd, root = -1, err = -ESRCH;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -ESRCH;
	stat_fd = openat(proc, "stat", O_RDONLY | O_CLOEXEC);
	root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		err = -errno;
	else if (stat_fd >= 0 && !process_read_stat(stat_fd, &ticks, &state) && ticks == start_ticks &&
		 !fstat(proc, ret_process))
		err = 0;
	if (err && root >= 0)
		close(root);
	if (stat_fd >= 0)
		close(stat_fd);
	close(proc);
	return err ? err : root;
}

int foreign_file_create(struct foreign_file *file, pid_t pid, uint64_t start_ticks, const char *path)
{
	struct stat process;
	int err, root = open_process(pid, start_ticks, &process);

	*file = (struct foreign_file)FOREIGN_FILE_NONE;
	if (root < 0)
		return root;
	children_collect(clock_monotonic_ns());
	err = children_left(process.st_uid) < LEFT_MAX ? start(file, root, &process, path) : -EBUSY;
	close(root);
	if (!err)
		err = await_result(file, PATIENCE_MS);
	if (err)
		foreign_file_release(file);
	return err;
}

int foreign_file_write(const struct foreign_file *file, int source)
{
	struct stat st;
	int err = fstat(source, &st) < 0 ? -errno : packet_send(file->socket, "", 1, source, MSG_DONTWAIT);

	return err ? err : await_result(file, PATIENCE_MS + ((uint64_t)st.st_size >> 20) * MEGABYTE_MS);
}

/* A child that does not end at once is collected by a later foreign_file_create(). */
void foreign_file_release(struct foreign_file *file)
{
	uint64_t cpu_ns;
	int status;

	if (file->child) {
		kill(file->child, SIGKILL);
		fcntl(file->socket, F_SETFL, O_NONBLOCK);
		if (!children_collect_soon(file->child, &status, &cpu_ns)) {
			children_leave(file->child, file->socket, file->uid, clock_monotonic_ns());
			file->socket = -1;
		}
	}
	if (file->socket >= 0)
		close(file->socket);
	*file = (struct foreign_file)FOREIGN_FILE_NONE;
}
