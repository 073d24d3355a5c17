/* SPDX-License-Identifier: MIT */
#include "base/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/io.h"

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
	io_close(&fd);
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

bool root_is_made_up(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	switch ((uint32_t)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case SECURITYFS_MAGIC:
	case SELINUX_MAGIC:
	case SMACK_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case BPF_FS_MAGIC:
	case PSTOREFS_MAGIC:
	case EFIVARFS_MAGIC:
	case BINFMTFS_MAGIC:
	case 0x62656570: /* configfs; these four are not in linux/magic.h */
	case 0x19800202: /* mqueue */
	case 0x07655821: /* resctrl */
	case 0x6e667364: /* nfsd */
		return true;
	}
	return false;
}

bool root_is_stored(int fd, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size && !root_is_made_up(fd);
}

/* Opens by descriptor, so that the file that is opened is the one that was checked. */
static int open_stored(int root, const char *path, uid_t owner)
{
	IO_FD(fd) = root_open(root, path, O_PATH, true);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (owner != (uid_t)-1 && st.st_uid != owner)
		return -EPERM;
	return root_is_stored(fd, &st) ? io_open_again(fd, O_RDONLY | O_NONBLOCK) : -EINVAL;
}

int root_read(int root, const char *path, uid_t owner, size_t max, struct buf *ret_text)
{
	IO_FD(fd) = open_stored(root, path, owner);
	int err = fd < 0 ? fd : io_read_again(fd, max, ret_text);

	return err == -EFBIG ? 0 : err;
}
