/* SPDX-License-Identifier: MIT */
#include "recorder/foreign_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/packet.h"
#include "base/root.h"

#define TIMEOUT_MS 5000
#define MEGABYTE_MS 1000 /* for each megabyte that is written, in addition to TIMEOUT_MS */

/* ---- the child ---- */

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

/* Reports two results: of creating the file, and of writing it. */
static void work(int socket, int root, const void *path)
{
	int source, fd = create_in(root, path);
	char none;

	user_child_answer(socket, fd < 0 ? fd : 0);
	if (fd >= 0 && packet_receive(socket, &none, sizeof(none), -1, &source) > 0 && source >= 0)
		user_child_answer(socket, io_copy(source, fd, UINT64_MAX));
}

/* ---- the parent ---- */

int foreign_file_create(struct foreign_file *file, pid_t pid, uint64_t start_ticks, const char *path)
{
	int err = user_child_start(&file->child, pid, start_ticks, work, path);

	if (!err)
		err = user_child_await(&file->child, TIMEOUT_MS);
	if (err)
		foreign_file_release(file);
	return err;
}

int foreign_file_write(const struct foreign_file *file, int source)
{
	struct stat st;
	int err = fstat(source, &st) < 0 ? -errno : packet_send(file->child.socket, "", 1, source, MSG_DONTWAIT);

	return err ? err : user_child_await(&file->child, TIMEOUT_MS + ((uint64_t)st.st_size >> 20) * MEGABYTE_MS);
}

void foreign_file_release(struct foreign_file *file)
{
	user_child_release(&file->child);
}
