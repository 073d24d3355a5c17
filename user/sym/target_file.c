/* SPDX-License-Identifier: MIT */
#include "sym/target_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Turns an O_PATH descriptor, which it closes, into one for reading. */
static int open_regular(int path_fd)
{
	char path[32];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0)
		fd = -errno;
	else if (!S_ISREG(st.st_mode))
		fd = -EINVAL;
	else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	close(path_fd);
	return fd;
}

int target_file_open(pid_t pid, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char root[32];
	int root_fd, fd;

	while (*path == '/')
		path++;
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	/* Before Linux 5.6, or refused by an old container's seccomp filter: absolute links then lead into our root. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(root_fd, path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(root_fd);
	return fd < 0 ? fd : open_regular(fd);
}

/* Needs CAP_CHECKPOINT_RESTORE (CAP_SYS_ADMIN before Linux 5.9), and that the mapping was not split since. */
static int open_map_file(pid_t pid, const struct mapping *mapping)
{
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->start, mapping->end);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : open_regular(fd);
}

/* Takes over fd. overlayfs and btrfs show other device numbers in maps than in stat; `any_device` allows for that. */
static int check_identity(int fd, const struct mapping *mapping, bool any_device)
{
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && st.st_ino == mapping->inode &&
	    (any_device || st.st_dev == makedev(mapping->dev_major, mapping->dev_minor)))
		return fd;
	close(fd);
	return -ESTALE;
}

int target_file_open_mapping(const struct process *process, const struct mapping *mapping)
{
	int fd = process->exited ? -ESRCH : open_map_file(process->pid, mapping);

	if (fd >= 0)
		return fd;
	fd = process->exited ? -ESRCH : check_identity(target_file_open(process->pid, mapping->path), mapping, true);
	if (fd >= 0 || fd == -ESTALE)
		return fd;
	/* The process is gone and its root with it; most files are also ours. */
	return check_identity(target_file_open(getpid(), mapping->path), mapping, false);
}
