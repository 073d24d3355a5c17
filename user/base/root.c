/* SPDX-License-Identifier: MIT */
#include "base/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_component(int dir, const char *name, size_t len, int flags)
{
	char text[NAME_MAX + 1];
	int fd;

	/* ".." could leave the root if the directory is moved meanwhile. */
	if (len > NAME_MAX || (len == 2 && memcmp(name, "..", 2) == 0))
		return -EINVAL;
	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	fd = openat(dir, text, flags | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int walk(int root, const char *path, int flags)
{
	int dir = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (dir >= 0) {
		const char *name = path + strspn(path, "/");
		size_t len = strcspn(name, "/");
		bool last = name[len + strspn(name + len, "/")] == '\0';
		int fd = open_component(dir, name, len, last ? flags : O_PATH | O_DIRECTORY);

		close(dir);
		if (last || fd < 0)
			return fd;
		dir = fd;
		path = name + len;
	}
	return -errno;
}

int root_open(int root, const char *path, int flags, bool follow)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | (follow ? 0 : RESOLVE_NO_SYMLINKS),
	};
	int fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (fd >= 0)
		return fd;
	/* EPERM: container runtimes of that time return it for system calls they do not know. */
	return errno == ENOSYS || errno == EPERM ? walk(root, path, flags) : -errno;
}

static int open_entry_by_device(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
	struct stat above, entry;

	if (fd < 0)
		return -errno;
	if (fstat(dir, &above) == 0 && fstat(fd, &entry) == 0 && above.st_dev == entry.st_dev)
		return fd;
	close(fd);
	return -EXDEV;
}

int root_open_entry(int dir, const char *name, int flags)
{
	struct open_how how = {
		.flags = flags | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
	};
	int fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));

	if (fd >= 0)
		return fd;
	return errno == ENOSYS || errno == EPERM ? open_entry_by_device(dir, name, flags) : -errno;
}

int root_read(int root, const char *path, size_t max, struct buf *ret_text)
{
	int fd = root_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, true);
	struct stat st;
	char chunk[4096];
	ssize_t len = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	while (max > 0 && (len = read(fd, chunk, max < sizeof(chunk) ? max : sizeof(chunk))) > 0) {
		buf_add(ret_text, chunk, len);
		max -= len;
	}
	if (len < 0)
		len = -errno;
	close(fd);
	return len < 0 ? (int)len : 0;
}
