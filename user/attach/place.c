/* SPDX-License-Identifier: MIT */
#include "attach/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/io.h"
#include "base/root.h"

static const char *const dirs[] = {"/tmp", "/dev/shm", "/var/tmp", "/run"};

#define LEFTOVER_AGE_S 60 /* seconds; longer than any attach takes */
#define NAME_TRIES 4
#define HASH_DIGITS 16
#define SCAN_MAX 4096 /* entries of a folder */
#define DIRS (sizeof(dirs) / sizeof(dirs[0]))

/* Identifies this build: the same bytes must get the same path, other bytes another one. FNV-1a. */
static uint64_t library_hash(void)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < attach_library_bytes; i++)
		hash = (hash ^ attach_library[i]) * 0x100000001b3;
	return hash;
}

/* A name for this build, JVM and user. It has the pid so that two attaches at the same time do not share a folder. */
static void make_name(const struct visit *visit, uint64_t build, char name[PLACE_NAME_MAX])
{
	snprintf(name, PLACE_NAME_MAX, ".duet-%u-%016lx-%d", visit->target->uid, build, visit->target->ns_pid);
}

/* Opens a folder by name and checks it, also one that was just made: something else may have replaced it. */
static int open_made(int parent, const char *name, uid_t owner)
{
	int fd = root_open_entry(parent, name, O_PATH | O_DIRECTORY);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && st.st_uid == owner && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	close(fd);
	return -EPERM;
}

static int make_folder(int parent, const char *name, uid_t owner)
{
	int fd;

	if (mkdirat(parent, name, 0755) < 0)
		return -errno;
	fd = open_made(parent, name, owner);
	if (fd < 0)
		unlinkat(parent, name, AT_REMOVEDIR);
	return fd;
}

/* Removes a leftover only if it is old: a younger one may be in use by another attach. */
static void remove_leftover(int parent, const char *name, uid_t owner)
{
	IO_FD(fd) = open_made(parent, name, owner);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_ctime + LEFTOVER_AGE_S < time(NULL)) {
		unlinkat(fd, PLACE_LIBRARY, 0);
		unlinkat(parent, name, AT_REMOVEDIR);
	}
}

/* Returns true for a name that attaches to this user's JVMs make, for any JVM and build. */
static bool is_leftover(const char *name, uid_t uid)
{
	char prefix[32];
	size_t len = (size_t)snprintf(prefix, sizeof(prefix), ".duet-%u-", uid);

	return !strncmp(name, prefix, len) && strspn(name + len, "0123456789abcdef") == HASH_DIGITS &&
	       name[len + HASH_DIGITS] == '-';
}

/*
 * Removes the files that children left when their user killed them. Only with that user's rights, only files that the
 * user owns, and only among a limited number of entries: anybody may fill the folder.
 */
static void remove_leftovers(const struct visit *visit, int parent, uid_t owner)
{
	int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	for (int i = 0; dir && i < SCAN_MAX && (entry = readdir(dir)); i++)
		if (is_leftover(entry->d_name, visit->target->uid))
			remove_leftover(parent, entry->d_name, owner);
	if (dir)
		closedir(dir);
	else
		io_close(&fd);
}

int place_folder(const struct visit *visit, int parent, uid_t owner, char name[PLACE_NAME_MAX])
{
	uint64_t random;
	int fd;

	remove_leftovers(visit, parent, owner);
	make_name(visit, library_hash(), name);
	fd = make_folder(parent, name, owner);
	for (int i = 0; fd == -EEXIST && i < NAME_TRIES; i++) {
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
			return -EAGAIN;
		make_name(visit, random, name);
		fd = make_folder(parent, name, owner);
	}
	return fd;
}

/* Writes a new file PLACE_LIBRARY. Returns 0, or -errno and leaves no file behind. */
static int place_write(int folder)
{
	IO_FD(fd) = openat(folder, PLACE_LIBRARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	int err;

	if (fd < 0)
		return -errno;
	err = io_write_all(fd, attach_library, attach_library_bytes);
	if (!err && fchmod(fd, 0644) < 0) /* independent of the umask: the JVM's user must be able to read it */
		err = -errno;
	if (err)
		unlinkat(folder, PLACE_LIBRARY, 0);
	return err;
}

/* Returns -EROFS or, where the dynamic linker could not map the library executable, -EACCES. */
static int check_mount(int dir)
{
	struct statvfs fs;

	if (fstatvfs(dir, &fs) < 0)
		return -errno;
	if (fs.f_flag & ST_RDONLY)
		return -EROFS;
	return fs.f_flag & ST_NOEXEC ? -EACCES : 0;
}

/* Takes ownership of `parent` on success. */
static int place_in(const struct visit *visit, int parent, struct place *ret_place)
{
	struct place place = {.parent = parent};
	int err = check_mount(parent);

	place.folder = err ? err : place_folder(visit, parent, geteuid(), place.name);
	if (place.folder < 0)
		return place.folder;
	err = place_write(place.folder);
	if (!err) {
		*ret_place = place;
		return 0;
	}
	close(place.folder);
	unlinkat(parent, place.name, AT_REMOVEDIR);
	return err;
}

/* Judges by the directory's mode and owner, because we are not the target's user yet. */
static bool is_place(int dir, uid_t uid)
{
	struct stat st;

	return check_mount(dir) == 0 && fstat(dir, &st) == 0 && (st.st_mode & S_IWOTH || st.st_uid == uid);
}

bool place_exists(const struct visit *visit)
{
	bool found = false;

	for (size_t i = 0; i < DIRS && !found; i++) {
		IO_FD(dir) = root_open(visit->root, dirs[i], O_RDONLY | O_DIRECTORY, false);

		found = dir >= 0 && is_place(dir, visit->target->uid);
	}
	return found;
}

int place_library(struct visit *visit, struct place *ret_place)
{
	struct place place;
	int err = -ENOENT;

	for (size_t i = 0; i < DIRS; i++) {
		int parent = root_open(visit->root, dirs[i], O_RDONLY | O_DIRECTORY, false);

		err = parent < 0 ? parent : place_in(visit, parent, &place);
		if (!err) {
			snprintf(place.path, sizeof(place.path), "%s/%s/" PLACE_LIBRARY, dirs[i], place.name);
			*ret_place = place;
			return 0;
		}
		io_close(&parent);
	}
	return visit_fail(
		visit, err,
		"no place for the agent in JVM %d: /tmp, /dev/shm, /var/tmp, /run are read-only or noexec (%s)",
		visit->target->pid, strerror(-err));
}

void place_remove(struct place *place)
{
	unlinkat(place->folder, PLACE_LIBRARY, 0);
	unlinkat(place->parent, place->name, AT_REMOVEDIR);
	close(place->folder);
	close(place->parent);
}

int attach_place_library(char *path, size_t size)
{
	const char *tmp = getenv("TMPDIR");
	char folder[PATH_MAX];
	IO_FD(fd) = -1;
	int err;

	snprintf(folder, sizeof(folder), "%s/duet-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	if (strlen(folder) + sizeof("/" PLACE_LIBRARY) > size)
		return -ENAMETOOLONG;
	if (!mkdtemp(folder))
		return -errno;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	err = fd < 0 || fchmod(fd, 0755) < 0 ? -errno : place_write(fd); /* 0755: the command may run as another user */
	if (err)
		rmdir(folder);
	else
		snprintf(path, size, "%s/" PLACE_LIBRARY, folder);
	return err;
}

void attach_remove_library(const char *path)
{
	char folder[PATH_MAX];
	const char *end = path ? strrchr(path, '/') : NULL;

	if (!end || (size_t)(end - path) >= sizeof(folder))
		return;
	snprintf(folder, sizeof(folder), "%.*s", (int)(end - path), path);
	unlink(path);
	rmdir(folder);
}

#define MNT_DETACH 2 /* from <sys/mount.h>, which conflicts with <linux/mount.h> */

struct mount_outcome { /* sent by the helper */
	int error;
	char path[128];
};

/* What the helper has made so far. */
struct scene {
	int tmp; /* the target's /tmp */
	int mount; /* a tmpfs with the library in it; -1 = none */
	int folder; /* where it is mounted; -1 = none */
	char name[PLACE_NAME_MAX]; /* name of the folder */
};

/* Enters the target's mount namespace. Open descriptors keep their meaning. */
static int enter_mounts(const struct visit *visit)
{
	IO_FD(fd) = openat(visit->proc, "ns/mnt", O_RDONLY | O_CLOEXEC);

	return fd < 0 || setns(fd, CLONE_NEWNS) < 0 ? -errno : 0;
}

static int set_text(int context, const char *key, const char *value)
{
	return syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno : 0;
}

/* Makes a tmpfs that is mounted nowhere, for nobody else to reach. Its descriptor; -ENOSYS before Linux 5.2. */
static int new_mount(void)
{
	IO_FD(context) = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	int mount, err;

	if (context < 0)
		return -errno;
	err = set_text(context, "mode", "755");
	if (!err)
		err = set_text(context, "size", "4m");
	if (err)
		return err;
	if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return mount < 0 ? -errno : mount;
}

/* Makes the folder for the mount, with only the file rights of the target's user. */
static int make_mount_folder(const struct visit *visit, struct scene *scene)
{
	const struct attach_target *target = visit->target;
	int err = rights_use_files_of(target->uid, target->gid);

	if (!err)
		err = rights_keep(RIGHT(CAP_SYS_ADMIN));
	if (err)
		return err;
	scene->folder = place_folder(visit, scene->tmp, target->uid, scene->name);
	return scene->folder < 0 ? scene->folder : 0;
}

static int show(const struct scene *scene)
{
	return syscall(SYS_move_mount, scene->mount, "", scene->folder, "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

static int set_up(const struct visit *visit, struct scene *scene)
{
	int err;

	scene->mount = new_mount();
	/* Everything is written before the target can see the mount. */
	err = scene->mount < 0 ? scene->mount : place_write(scene->mount);
	if (!err)
		err = enter_mounts(visit);
	if (!err)
		err = make_mount_folder(visit, scene);
	return err ? err : show(scene);
}

/* Unmounts by descriptor: whatever the target has done to the names, this removes our mount and no other. */
static void take_down(const struct scene *scene)
{
	if (scene->mount >= 0 && fchdir(scene->mount) == 0)
		/* Fails if the tmpfs was never mounted. Then the tmpfs ends with this process. */
		syscall(SYS_umount2, ".", MNT_DETACH);
	if (scene->folder >= 0)
		unlinkat(scene->tmp, scene->name, AT_REMOVEDIR);
}

/* Sends the outcome, then waits until the other end is closed, which also happens when that process dies. */
static void help(const struct visit *visit, int tmp, int socket)
{
	struct scene scene = {.tmp = tmp, .mount = -1, .folder = -1};
	struct mount_outcome outcome = {.error = set_up(visit, &scene)};
	char none;

	snprintf(outcome.path, sizeof(outcome.path), "/tmp/%s/" PLACE_LIBRARY, scene.name);
	if (send(socket, &outcome, sizeof(outcome), MSG_NOSIGNAL) == sizeof(outcome) && !outcome.error)
		while (recv(socket, &none, sizeof(none), 0) < 0 && errno == EINTR)
			;
	take_down(&scene);
}

static int start_helper(const struct visit *visit, int tmp, struct place_mount *mount)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	mount->helper = fork();
	if (mount->helper == 0) {
		close(VISIT_RESULT_FD); /* only the attach child itself may hold the result socket open */
		close(pair[0]);
		help(visit, tmp, pair[1]);
		_exit(0);
	}
	close(pair[1]);
	mount->socket = pair[0];
	if (mount->helper > 0)
		return 0;
	close(pair[0]);
	mount->helper = 0;
	return -EAGAIN;
}

int place_mount_open(const struct visit *visit, struct place_mount *ret_mount)
{
	struct place_mount mount = {.socket = -1};
	struct mount_outcome outcome;
	IO_FD(tmp) = root_open(visit->root, "/tmp", O_RDONLY | O_DIRECTORY, false);
	int err;

	if (tmp < 0)
		return tmp;
	err = start_helper(visit, tmp, &mount);
	if (!err)
		err = recv(mount.socket, &outcome, sizeof(outcome), 0) == sizeof(outcome) ? outcome.error : -EIO;
	if (err) {
		place_mount_close(&mount);
		return err;
	}
	snprintf(mount.path, sizeof(mount.path), "%s", outcome.path);
	*ret_mount = mount;
	return 0;
}

void place_mount_close(struct place_mount *mount)
{
	int status;

	if (!mount || !mount->helper)
		return;
	close(mount->socket);
	(void)child_await(mount->helper, &status);
	mount->helper = 0;
}
