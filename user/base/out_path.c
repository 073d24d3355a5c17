/* SPDX-License-Identifier: MIT */
#include "base/out_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/io.h"

#define LINKS_MAX 40 /* the kernel's limit */

struct walk {
	int dir;
	char rest[2 * PATH_MAX]; /* the part of the path that is not walked yet, relative to `dir` */
	int links;
	bool follow;
};

static int enter(struct walk *walk, int fd)
{
	if (fd < 0)
		return -errno;
	close(walk->dir);
	walk->dir = fd;
	return 0;
}

/* Takes the next name, uncut: the kernel refuses one that is too long. Returns true if it was the last. */
static bool next_name(struct walk *walk, char name[PATH_MAX])
{
	const char *start = walk->rest + strspn(walk->rest, "/");
	size_t len = strcspn(start, "/");
	const char *end = start + len;

	snprintf(name, PATH_MAX, "%.*s", (int)len, start);
	end += strspn(end, "/");
	memmove(walk->rest, end, strlen(end) + 1);
	return !walk->rest[0];
}

static bool may_follow(const struct walk *walk, const struct stat *link)
{
	struct stat dir;

	return fstat(walk->dir, &dir) == 0 &&
	       (!(dir.st_mode & S_IWOTH) || link->st_uid == geteuid() || link->st_uid == dir.st_uid);
}

/* Puts the link's target in front of the rest. */
static int follow_text(struct walk *walk, int link)
{
	char target[PATH_MAX], joined[sizeof(walk->rest)];
	ssize_t len = readlinkat(link, "", target, sizeof(target) - 1);

	if (len < 0)
		return -errno;
	target[len] = '\0';
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	if (snprintf(joined, sizeof(joined), "%s/%s", target, walk->rest) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (!walk->rest[0])
		joined[len] = '\0';
	strcpy(walk->rest, joined);
	return target[0] == '/' ? enter(walk, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
}

/* A link of /proc leads to an open file, which need not have a name. */
static bool is_magic(int link)
{
	struct statfs fs;

	return fstatfs(link, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static int finish(struct walk *walk, const char *name, int found, bool magic, struct out_path *ret)
{
	struct out_path path = {.dir = walk->dir, .name = strdup(name), .found = found, .is_magic = magic};

	if (!path.name) {
		io_close(&found);
		return -ENOMEM;
	}
	walk->dir = -1;
	*ret = path;
	return 0;
}

/* Follows a link. Returns 1 when the walk continues, 0 when `ret` is set, or -errno. */
static int step_link(struct walk *walk, int link, const struct stat *st, const char *name, bool is_last,
		     struct out_path *ret)
{
	int fd, err;

	if (is_last && !walk->follow)
		return finish(walk, name, -1, false, ret);
	if (!may_follow(walk, st))
		return -EACCES;
	if (!is_magic(link)) {
		err = follow_text(walk, link);
		return err ? err : 1;
	}
	fd = openat(walk->dir, name, O_PATH | O_CLOEXEC);
	if (fd >= 0 && is_last)
		return finish(walk, name, fd, true, ret);
	err = enter(walk, fd);
	return err ? err : 1;
}

/* Takes one step. Returns 1 when the walk continues, 0 when `ret` is set, or -errno. */
static int step(struct walk *walk, struct out_path *ret)
{
	char name[PATH_MAX];
	bool is_last = next_name(walk, name);
	struct stat st;
	int err, fd = openat(walk->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && is_last)
		return finish(walk, name, -1, false, ret);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
		err = step_link(walk, fd, &st, name, is_last, ret);
		close(fd);
		return err;
	}
	if (is_last)
		return finish(walk, name, fd, false, ret);
	return enter(walk, fd) < 0 ? -errno : 1;
}

int out_path_open(struct out_path *ret, const char *path, bool follow)
{
	const char *start = path[0] == '/' ? "/" : ".";
	struct walk walk = {.dir = open(start, O_PATH | O_DIRECTORY | O_CLOEXEC), .follow = follow};
	int err = 1;

	if (walk.dir < 0)
		return -errno;
	if (!path[0] || strlen(path) >= PATH_MAX)
		err = path[0] ? -ENAMETOOLONG : -ENOENT;
	else
		strcpy(walk.rest, path);
	while (err > 0)
		err = step(&walk, ret);
	io_close(&walk.dir);
	return err;
}

void out_path_release(struct out_path *path)
{
	if (!path->name)
		return;
	close(path->dir);
	io_close(&path->found);
	free(path->name);
	*path = (struct out_path){0};
}
