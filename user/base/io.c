/* SPDX-License-Identifier: MIT */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY_TRIES 16

/* What is behind the stream. stdio forgets why an earlier write failed; this does not. */
struct io_sink {
	int fd;
	int error; /* first -errno */
};

static int read_all(int fd, size_t max, struct buf *buf)
{
	char chunk[16384];
	size_t total = 0;
	ssize_t len;

	while ((len = read(fd, chunk, sizeof(chunk))) != 0) {
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return -errno;
		if ((size_t)len > max - total) {
			buf_add(buf, chunk, max - total);
			return -EFBIG;
		}
		buf_add(buf, chunk, (size_t)len);
		total += (size_t)len;
	}
	return buf->failed ? -ENOMEM : 0;
}

int io_read_file(int dirfd, const char *path, size_t max, struct buf *buf)
{
	/* O_NONBLOCK: a FIFO that a hostile process put in the file's place must not stop us. */
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int err;

	if (fd < 0)
		return -errno;
	err = read_all(fd, max, buf);
	close(fd);
	return err;
}

int io_write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;
	ssize_t written;

	while (len) {
		written = write(fd, at, len);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		at += written;
		len -= (size_t)written;
	}
	return 0;
}

static ssize_t sink_write(void *cookie, const char *bytes, size_t len)
{
	struct io_sink *sink = cookie;

	if (!sink->error)
		sink->error = io_write_all(sink->fd, bytes, len);
	return sink->error ? 0 : (ssize_t)len; /* 0 is a cookie's way to say error */
}

/* Takes over fd. */
static int sink_open(struct io_output *out, int fd)
{
	out->sink = malloc(sizeof(*out->sink));
	if (!out->sink) {
		close(fd);
		return -ENOMEM;
	}
	*out->sink = (struct io_sink){.fd = fd};
	out->file = fopencookie(out->sink, "w", (cookie_io_functions_t){.write = sink_write});
	return out->file ? 0 : -ENOMEM;
}

/* Closes the stream and its descriptor; the first error of either or of a write before. */
int io_output_error(const struct io_output *out)
{
	return out->sink ? out->sink->error : 0;
}

static int sink_close(struct io_output *out)
{
	int err = 0;

	if (out->file && fclose(out->file))
		err = -EIO;
	out->file = NULL;
	if (!out->sink)
		return err;
	if (out->sink->error)
		err = out->sink->error;
	/* Only what will be renamed must be on disk before its name is. */
	if (!err && out->temporary && fsync(out->sink->fd) < 0)
		err = -errno;
	if (close(out->sink->fd) < 0 && !err)
		err = -errno;
	free(out->sink);
	out->sink = NULL;
	return err;
}

static void output_release(struct io_output *out)
{
	free(out->path);
	free(out->temporary);
	*out = (struct io_output){0};
}

/* Pipes and devices cannot be replaced by a rename, and what stdout points to must not be. */
static bool is_direct(const char *path)
{
	struct stat target, stdout_target;

	if (stat(path, &target) < 0)
		return false;
	if (!S_ISREG(target.st_mode))
		return true;
	return fstat(STDOUT_FILENO, &stdout_target) == 0 && target.st_dev == stdout_target.st_dev &&
	       target.st_ino == stdout_target.st_ino;
}

static int open_direct(const char *path)
{
	struct stat target;
	int fd;

	if (!strcmp(path, "-") || (stat(path, &target) == 0 && S_ISREG(target.st_mode)))
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int temporary_name(const char *path, char **ret_name)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	uint32_t random = 0;
	char *temporary;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		return -errno;
	/* A name of up to 255 bytes is allowed for the target, so it must not make this one too long. */
	if (asprintf(&temporary, "%.*s.%.200s.duet-%06x", (int)(name - path), path, name, random & 0xffffff) < 0)
		return -ENOMEM;
	*ret_name = temporary;
	return 0;
}

/* The descriptor. open() rather than mkostemp(): the mode is then made from the umask and the folder's ACL. */
static int open_temporary(struct io_output *out)
{
	int fd, err;

	for (int i = 0; i < TEMPORARY_TRIES; i++) {
		err = temporary_name(out->path, &out->temporary);
		if (err < 0)
			return err;
		fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0)
			return fd;
		err = -errno;
		free(out->temporary);
		out->temporary = NULL;
		if (err != -EEXIST)
			return err;
	}
	return -EEXIST;
}

static char *resolve(const char *path)
{
	char *resolved = realpath(path, NULL);

	return resolved || errno != ENOENT ? resolved : strdup(path);
}

/* Takes over `resolved`, which is NULL when errno says why. */
static int output_open(struct io_output *out, char *resolved, bool direct)
{
	struct io_output opened = {.path = resolved};
	int err;

	if (!opened.path)
		return -errno;
	err = direct ? open_direct(resolved) : open_temporary(&opened);
	if (err >= 0)
		err = sink_open(&opened, err);
	if (err < 0) {
		io_output_discard(&opened);
		return err;
	}
	*out = opened;
	return 0;
}

int io_output_open(struct io_output *out, const char *path)
{
	bool direct = !strcmp(path, "-") || is_direct(path);

	if (!path[0] || path[strlen(path) - 1] == '/')
		return path[0] ? -EISDIR : -ENOENT;
	return output_open(out, direct ? strdup(path) : resolve(path), direct);
}

int io_output_create(struct io_output *out, const char *path)
{
	return output_open(out, strdup(path), false);
}

int io_output_commit(struct io_output *out)
{
	int err = sink_close(out);

	if (!err && out->temporary && rename(out->temporary, out->path) < 0)
		err = -errno;
	if (err && out->temporary)
		unlink(out->temporary);
	output_release(out);
	return err;
}

void io_output_discard(struct io_output *out)
{
	if (!out)
		return;
	sink_close(out);
	if (out->temporary)
		unlink(out->temporary);
	output_release(out);
}
