/* SPDX-License-Identifier: MIT */
#include "sym/target_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/map.h"
#include "base/root.h"
#include "proc/helper.h"

#define COPY_NS (NS_PER_SEC / 2) /* longest copy: below the helper's timeout, so that a slow disk does not bar a user */
#define CHUNK_BYTES 16384

/* Answers with `fd`, an O_PATH descriptor. -EINVAL if it is no stored file, -errno if `fd` is negative. */
static int answer_file(int fd, struct helper_answer *answer)
{
	answer->fd = fd;
	if (fd < 0 || fstat(fd, &answer->st) < 0)
		return -errno;
	return root_is_stored(fd, &answer->st) ? 0 : -EINVAL;
}

static int open_in_root(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Linux before 5.6 has no openat2(), and seccomp filters of old containers refuse it, whatever is opened. */
static bool has_openat2(void)
{
	int fd = open_in_root(AT_FDCWD, "/");

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int find_work(const struct helper_task *task, struct helper_answer *answer)
{
	int fd = open_in_root(task->fd, task->path);

	/* With openat() absolute links lead into our root. A file system of a user's own can fail with EPERM too. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
		if (has_openat2())
			return -EPERM;
		fd = openat(task->fd, task->path, O_PATH | O_CLOEXEC);
	}
	return answer_file(fd, answer);
}

/* Runs in the helper too, because looking up a name in map_files takes the lock of the process's mappings. */
static int find_mapped_work(const struct helper_task *task, struct helper_answer *answer)
{
	return answer_file(openat(task->fd, task->path, O_PATH | O_CLOEXEC), answer);
}

/* The id of the mount through which `fd` was opened. It is unique among all mount namespaces. 0: unknown. */
static unsigned long mount_id(int fd)
{
	const char *line;
	unsigned long id = 0;
	BUF(text);
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (!io_read_file(AT_FDCWD, path, 4096, &text) && (line = strstr(text.data, "mnt_id:")))
		id = strtoul(line + strlen("mnt_id:"), NULL, 10);
	return id;
}

static bool has_mount(const char *mounts, unsigned long id)
{
	FILE *file = fopen(mounts, "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (file && !found && getline(&line, &size, file) > 0)
		found = strtoul(line, NULL, 10) == id;
	free(line);
	if (file)
		fclose(file);
	return found;
}

/*
 * Returns true if the process's mount namespace belongs to our user namespace. Then only processes with rights in our
 * user namespace can mount something there; ordinary users have no such rights.
 */
static bool mounts_are_of_our_users(pid_t pid)
{
	struct stat ours, theirs;
	char path[32];
	bool same;
	int users, mounts;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	mounts = open(path, O_RDONLY | O_CLOEXEC);
	users = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
	same = users >= 0 && fstat(users, &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
	if (users >= 0)
		close(users);
	if (mounts >= 0)
		close(mounts);
	return same;
}

/* True for mounts made by root. Users in namespaces of their own may mount overlays, also over FUSE. */
static bool is_mounted_by_root(int fd, pid_t pid)
{
	unsigned long id = mount_id(fd);
	char mounts[40];

	snprintf(mounts, sizeof(mounts), "/proc/%d/mountinfo", pid);
	return id && (has_mount("/proc/self/mountinfo", id) ||
		      (mounts_are_of_our_users(pid) && has_mount(mounts, id)));
}

/*
 * Returns true if no user can make a read of the file wait; it may still wait for the disk. This holds for all files of
 * a file system that the kernel alone implements, and whose buffered reads take no lock that write() holds: the buffer
 * of a write() may be in memory that never arrives. Where reads take such a lock, and on overlays that root mounted, it
 * holds for files that only root can write.
 */
static bool nobody_can_hold(int fd, pid_t pid, const struct stat *st)
{
	bool is_roots = st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((uint32_t)fs.f_type) {
	case EXT4_SUPER_MAGIC: /* ext2 and ext3 have the same number */
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case SQUASHFS_MAGIC:
	case EROFS_SUPER_MAGIC_V1:
	case ISOFS_SUPER_MAGIC:
		return true;
	case XFS_SUPER_MAGIC:
	case 0x2fc12fc1: /* ZFS, which is not in linux/magic.h */
		return is_roots;
	case OVERLAYFS_SUPER_MAGIC: /* shows the owner that the file systems below it report */
		return is_roots && is_mounted_by_root(fd, pid);
	}
	return false;
}

static int copy_bytes(int from, int to, off_t at)
{
	uint64_t end_ns = clock_monotonic_ns() + COPY_NS;
	char chunk[CHUNK_BYTES];
	ssize_t len;
	bool is_zero;

	while ((len = pread(from, chunk, sizeof(chunk), at)) > 0) {
		if (at + len > TARGET_FILE_COPY_MAX)
			return -EFBIG; /* it has grown */
		is_zero = !chunk[0] && !memcmp(chunk, chunk + 1, (size_t)len - 1);
		if (!is_zero && pwrite(to, chunk, (size_t)len, at) != len)
			return -ENOSPC;
		at += len;
		if (clock_monotonic_ns() > end_ns)
			return -ETIME;
	}
	return len < 0 ? -errno : 0;
}

static int copy(int from, const struct stat *st, off_t at, int *ret_fd)
{
	int err, fd;

	if (st->st_size > TARGET_FILE_COPY_MAX)
		return -EFBIG;
	fd = memfd_create("duet-copy", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = ftruncate(fd, st->st_size) < 0 ? -errno : copy_bytes(from, fd, at);
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

/* With O_NONBLOCK, because a lease of the file's owner would otherwise stop us until it is broken. */
static int read_work(const struct helper_task *task, struct helper_answer *answer)
{
	char path[32], byte;
	int fd, err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", task->fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &answer->st) < 0) {
		err = -errno;
	} else if (nobody_can_hold(fd, task->charge->living, &answer->st)) {
		/* Ahead of the loader: a scanner (fanotify) may withhold any read. Then this hangs, not the loader. */
		(void)!pread(fd, &byte, 1, 0);
		answer->fd = fd;
		return 0;
	} else {
		err = copy(fd, &answer->st, (off_t)task->number, &answer->fd);
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* Returns the descriptor that the helper has opened, which the caller owns, or -errno. */
static int run(const struct helper_task *task, struct stat *ret_st)
{
	struct helper_answer answer;
	int err = helper_run(task, &answer), fd = answer.fd;

	if (!err)
		answer.fd = -1;
	*ret_st = answer.st;
	helper_answer_release(&answer);
	return err ? err : fd;
}

/* Takes ownership of `fd`, the directory in which `path` is looked up. If `fd` is -errno, returns that. */
static int find(struct target_file *file, const struct charge *charge, int fd, const char *path,
		int (*work)(const struct helper_task *task, struct helper_answer *answer))
{
	const struct helper_task task = {.work = work, .charge = charge, .fd = fd, .path = path};
	struct target_file found = {.pid = charge->living, .fd = -1};

	if (fd < 0)
		return fd;
	found.path_fd = run(&task, &found.st);
	close(fd);
	if (found.path_fd < 0)
		return found.path_fd;
	*file = found;
	return 0;
}

static int open_place(const char *format, pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), format, pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int target_file_find(struct target_file *file, const struct charge *charge, pid_t root, const char *path)
{
	while (*path == '/')
		path++;
	return find(file, charge, open_place("/proc/%d/root", root), path, find_work);
}

/* Needs CAP_CHECKPOINT_RESTORE (CAP_SYS_ADMIN before Linux 5.9). Fails if the mapping was split since. */
static int find_mapped(struct target_file *file, const struct charge *charge, const struct mapping *mapping)
{
	char path[64];

	snprintf(path, sizeof(path), "map_files/%" PRIx64 "-%" PRIx64, mapping->start, mapping->end);
	return find(file, charge, open_place("/proc/%d", charge->living), path, find_mapped_work);
}

/* overlayfs and btrfs show different device numbers in maps and in stat; `any_device` allows that. */
static int find_same(struct target_file *file, const struct charge *charge, pid_t root, const struct mapping *mapping,
		     bool any_device)
{
	int err = target_file_find(file, charge, root, mapping->path);

	if (err)
		return err;
	if (file->st.st_ino == mapping->inode &&
	    (any_device || file->st.st_dev == makedev(mapping->dev_major, mapping->dev_minor)))
		return 0;
	target_file_release(file);
	return -ESTALE;
}

int target_file_find_mapping(struct target_file *file, const struct charge *charge, const struct process *process,
			     const struct mapping *mapping)
{
	int err = process->exited ? -ESRCH : find_mapped(file, charge, mapping);

	/* Huge pages from a file in memory may hold the code of this one, see maps.c. */
	if (!err && file->st.st_ino != mapping->inode) {
		struct target_file same;

		if (find_same(&same, charge, charge->living, mapping, true))
			return 0;
		target_file_release(file);
		*file = same;
	}
	if (!err)
		return 0;
	err = process->exited ? -ESRCH : find_same(file, charge, charge->living, mapping, true);
	if (!err || err == -ESTALE)
		return err;
	/* The process has ended, so its root cannot be opened any more. Most files exist in our root too. */
	return find_same(file, charge, getpid(), mapping, false);
}

int target_file_read(struct target_file *file, const struct charge *charge, off_t from)
{
	const struct helper_task task = {
		.work = read_work, .charge = charge, .fd = file->path_fd, .path = "", .number = (uint64_t)from};
	struct stat ignored;
	int fd = file->fd >= 0 ? file->fd : run(&task, &ignored);

	if (fd >= 0)
		file->fd = fd;
	return fd;
}

void target_file_release(struct target_file *file)
{
	close(file->path_fd);
	if (file->fd >= 0)
		close(file->fd);
	file->path_fd = file->fd = -1;
}

uint64_t target_file_identity(const struct target_file *file)
{
	const struct stat *st = &file->st;
	const uint64_t identity[] = {st->st_dev, st->st_ino, (uint64_t)st->st_size,
				     (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
				     (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec};

	return hash_bytes(identity, sizeof(identity), 0);
}

bool target_file_same_origin(const struct target_file *file, const struct target_file *other)
{
	unsigned long mount = file->st.st_uid == other->st.st_uid ? mount_id(file->path_fd) : 0;

	return mount && mount_id(other->path_fd) == mount;
}

uint64_t target_file_origin(const struct target_file *file)
{
	const uint64_t origin[] = {mount_id(file->path_fd), file->st.st_uid};

	return origin[0] && !(file->st.st_mode & (S_IWGRP | S_IWOTH)) ? hash_bytes(origin, sizeof(origin), 0) : 0;
}

bool target_file_is_copy(const struct target_file *file)
{
	struct stat st;

	return fstat(file->fd, &st) < 0 || st.st_ino != file->st.st_ino || st.st_dev != file->st.st_dev;
}

int target_file_open(const struct charge *charge, pid_t root, const char *path)
{
	struct target_file file;
	int fd, err = target_file_find(&file, charge, root, path);

	if (err)
		return err;
	fd = target_file_read(&file, charge, 0);
	file.fd = -1;
	target_file_release(&file);
	return fd;
}

/* Returns 0 if the kernel mapped no vdso for us. */
static size_t find_own_bytes(uintptr_t start)
{
	struct maps maps = {0};
	const struct mapping *mapping;
	size_t bytes = 0;

	if (start && !maps_read(&maps, CHARGE_OWN(getpid()))) {
		mapping = maps_find(&maps, start);
		if (mapping && mapping->start == start && !strcmp(mapping->path, "[vdso]"))
			bytes = mapping->end - mapping->start;
	}
	maps_release(&maps);
	return bytes;
}

/* A 32-bit process, or one of x32, has nothing above 4 GB. In a 64-bit process the kernel puts the vdso above 4 GB. */
void *vdso_of(const struct mapping *mapping, size_t *ret_bytes)
{
	static size_t own_bytes;
	uintptr_t own = getauxval(AT_SYSINFO_EHDR);

	if (!own_bytes)
		own_bytes = find_own_bytes(own);
	if (!own_bytes || mapping->end - mapping->start != own_bytes || mapping->start <= UINT32_MAX)
		return NULL;
	*ret_bytes = own_bytes;
	return (void *)own;
}
