/* SPDX-License-Identifier: MIT */
#include "attach/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/io.h"
#include "base/root.h"

static const char *const dirs[] = {"/tmp", "/dev/shm", "/var/tmp", "/run"};

#define DIRS (sizeof(dirs) / sizeof(dirs[0]))

/* Names this build: the same bytes must get the same path, other bytes another one. FNV-1a. */
static uint64_t library_hash(void)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < attach_library_bytes; i++)
		hash = (hash ^ attach_library[i]) * 0x100000001b3;
	return hash;
}

int place_folder(int parent, const char *name)
{
	struct stat st;
	int fd, made = mkdirat(parent, name, 0700);

	if (made < 0 && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) /* a link or a file that waits for us */
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
	    fchmod(fd, 0755) == 0)
		return fd;
	close(fd);
	return -EPERM;
}

/* Written under another name first: a JVM never sees half a library. */
int place_write(int folder)
{
	char temporary[32];
	int fd, err;

	snprintf(temporary, sizeof(temporary), ".%d", getpid());
	unlinkat(folder, temporary, 0);
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = io_write_all(fd, attach_library, attach_library_bytes);
	if (!err && fchmod(fd, 0644) < 0)
		err = -errno;
	close(fd);
	if (!err && renameat(folder, temporary, folder, PLACE_LIBRARY) < 0)
		err = -errno;
	if (err)
		unlinkat(folder, temporary, 0);
	return err;
}

/* -EACCES where the dynamic linker could not map it executable. */
static int check_mount(int dir)
{
	struct statvfs fs;

	if (fstatvfs(dir, &fs) < 0)
		return -errno;
	if (fs.f_flag & ST_RDONLY)
		return -EROFS;
	return fs.f_flag & ST_NOEXEC ? -EACCES : 0;
}

/* Owns `parent` from here on. */
static int place_in(int parent, struct place *place)
{
	int folder, err = check_mount(parent);

	place->parent = parent;
	folder = err ? err : place_folder(parent, place->folder);
	err = folder < 0 ? folder : place_write(folder);
	if (folder >= 0)
		close(folder);
	if (err) {
		unlinkat(parent, place->folder, AT_REMOVEDIR); /* only an empty one goes */
		close(parent);
		place->parent = -1;
	}
	return err;
}

void place_name(const struct visit *visit, char *name, size_t size)
{
	snprintf(name, size, ".duet-%u-%016llx-%d", geteuid(), (unsigned long long)library_hash(),
		 visit->target->ns_pid);
}

/* Without becoming the target's user, so from what the directory says of itself. */
static bool is_place(int dir, uid_t uid)
{
	struct stat st;

	return check_mount(dir) == 0 && fstat(dir, &st) == 0 && (st.st_mode & S_IWOTH || st.st_uid == uid);
}

bool place_exists(const struct visit *visit)
{
	bool found = false;

	for (size_t i = 0; i < DIRS && !found; i++) {
		int dir = root_open(visit->root, dirs[i], O_RDONLY | O_DIRECTORY, false);

		if (dir < 0)
			continue;
		found = is_place(dir, visit->target->uid);
		close(dir);
	}
	return found;
}

int place_library(struct visit *visit, struct place *ret_place)
{
	struct place place = {.parent = -1};
	int err = -ENOENT;

	place_name(visit, place.folder, sizeof(place.folder));
	for (size_t i = 0; i < DIRS; i++) {
		int parent = root_open(visit->root, dirs[i], O_RDONLY | O_DIRECTORY, false);

		err = parent < 0 ? parent : place_in(parent, &place);
		if (err)
			continue;
		snprintf(place.path, sizeof(place.path), "%s/%s/" PLACE_LIBRARY, dirs[i], place.folder);
		*ret_place = place;
		return 0;
	}
	return visit_fail(
		visit, err,
		"no place for the agent in JVM %d: /tmp, /dev/shm, /var/tmp, /run are read-only or noexec (%s)",
		visit->target->pid, strerror(-err));
}

void place_remove(struct place *place)
{
	char path[sizeof(place->folder) + sizeof(PLACE_LIBRARY) + 1];

	if (!place || place->parent < 0)
		return;
	snprintf(path, sizeof(path), "%s/" PLACE_LIBRARY, place->folder);
	unlinkat(place->parent, path, 0);
	unlinkat(place->parent, place->folder, AT_REMOVEDIR);
	close(place->parent);
	place->parent = -1;
}

int attach_place_library(char *path, size_t size)
{
	const char *tmp = getenv("TMPDIR");
	char folder[PATH_MAX];
	int fd, err;

	snprintf(folder, sizeof(folder), "%s/duet-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	if (strlen(folder) + sizeof("/" PLACE_LIBRARY) > size)
		return -ENAMETOOLONG;
	if (!mkdtemp(folder))
		return -errno;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	err = fd < 0 || fchmod(fd, 0755) < 0 ? -errno : place_write(fd); /* the command may run as another user */
	if (fd >= 0)
		close(fd);
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
