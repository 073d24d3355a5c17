/* SPDX-License-Identifier: MIT */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/major.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TEMPORARY_TRIES 16
#define COPY_BYTES 16384
#define IO_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

/* A handler of signals may read the list at any time. */
struct io_temporary {
	struct io_temporary *next;
	pid_t owner;
	int dir; /* of the output */
	char name[NAME_MAX + 1];
};

static struct io_temporary *temporaries;
static int (*open_unlinked)(void); /* NULL: io_open_unlinked() itself */

/* Destination of the stream. Keeps the first error, which stdio does not. */
struct io_sink {
	int fd;
	int error; /* first -errno */
	bool is_terminal;
	bool is_stuck; /* a write failed, and so does what follows, until the position is set */
	char buffer[1 << 18]; /* of the stream: files of gigabytes are written in few calls */
};

void io_close(int *fd)
{
	int before = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = before;
}

int io_open_again(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

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
	/* O_NONBLOCK: a hostile process may have put a FIFO in the file's place, which must not block us. */
	IO_FD(fd) = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : read_all(fd, max, buf);
}

int io_read_again(int fd, size_t max, struct buf *buf)
{
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : read_all(fd, max, buf);
}

uint64_t io_number_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

uint64_t io_bytes(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_size;
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

void io_open_unlinked_by(int (*open)(void))
{
	open_unlinked = open;
}

/* Without O_TMPFILE: overlayfs, on which containers run, supports it only since Linux 6.1. */
int io_open_unlinked(void)
{
	const char *folder = secure_getenv("TMPDIR");
	char *path;
	int fd;

	if (open_unlinked)
		return open_unlinked();
	if (asprintf(&path, "%s/duet-XXXXXX", folder ? folder : "/var/tmp") < 0)
		return -ENOMEM;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	else
		fd = -errno;
	free(path);
	return fd;
}

int io_copy(int from, uint64_t at, uint64_t bytes, int to)
{
	char piece[COPY_BYTES];
	ssize_t more = 1;
	int err = 0;

	for (; !err && bytes && more; at += (uint64_t)more, bytes -= (uint64_t)more) {
		more = pread(from, piece, bytes < sizeof(piece) ? bytes : sizeof(piece), (off_t)at);
		if (more < 0)
			return -errno;
		err = io_write_all(to, piece, (size_t)more);
	}
	return err;
}

int io_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, IO_SEALS) < 0 ? -errno : 0;
}

int64_t io_sealed_bytes(int fd, uint64_t most)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & IO_SEALS) != IO_SEALS)
		return -EPERM;
	if (fstat(fd, &st) < 0)
		return -errno;
	return (uint64_t)st.st_size > most || st.st_size / 512 > st.st_blocks ? -EFBIG : st.st_size;
}

/* As isatty(), which a process in a box (base/box.h) cannot ask: all character devices but /dev/null and its like. */
static bool is_terminal(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISCHR(st.st_mode) && major(st.st_rdev) != MEM_MAJOR;
}

/* A terminal obeys some control characters, and formats that are no text may have any. */
static bool has_control(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)bytes[i] < ' ' && bytes[i] != '\n' && bytes[i] != '\t') || bytes[i] == 0x7f)
			return true;
	return false;
}

static ssize_t sink_write(void *cookie, const char *bytes, size_t len)
{
	struct io_sink *sink = cookie;
	int err = sink->is_stuck ? -EIO : sink->is_terminal && has_control(bytes, len) ? -EILSEQ : 0;

	if (!err)
		err = io_write_all(sink->fd, bytes, len);
	sink->is_stuck |= err < 0;
	if (!sink->error)
		sink->error = err;
	return err ? 0 : (ssize_t)len; /* a cookie's write function returns 0 on error */
}

/* Only within files, and not where each write goes to the end. */
static int sink_seek(void *cookie, off64_t *offset, int whence)
{
	struct io_sink *sink = cookie;
	int flags = fcntl(sink->fd, F_GETFL);
	struct stat st;
	off64_t at;

	if (flags < 0 || flags & O_APPEND || fstat(sink->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	at = lseek64(sink->fd, *offset, whence);
	if (at < 0)
		return -1;
	sink->is_stuck &= whence != SEEK_SET;
	*offset = at;
	return 0;
}

/* Takes ownership of fd. */
static int sink_open(struct io_output *out, int fd)
{
	out->sink = calloc(1, sizeof(*out->sink));
	if (!out->sink) {
		close(fd);
		return -ENOMEM;
	}
	out->sink->fd = fd;
	out->sink->is_terminal = is_terminal(fd);
	out->file = fopencookie(out->sink, "w", (cookie_io_functions_t){.write = sink_write, .seek = sink_seek});
	if (out->file)
		setvbuf(out->file, out->sink->buffer, _IOFBF, sizeof(out->sink->buffer));
	return out->file ? 0 : -ENOMEM;
}

int io_output_error(const struct io_output *out)
{
	return out->sink ? out->sink->error : 0;
}

void io_output_cut(struct io_output *out)
{
	int64_t len = ftello(out->file);

	/* A file that cannot be cut stays as it is: its reader then finds the damage. */
	if (len >= 0 && ftruncate(out->sink->fd, len) < 0 && !out->sink->error)
		out->sink->error = -errno;
}

int io_output_close(struct io_output *out)
{
	int err = 0;

	if (out->file && fclose(out->file))
		err = -EIO;
	out->file = NULL;
	if (!out->sink)
		return err;
	if (out->sink->error)
		err = out->sink->error;
	/* A file that will be renamed must be on disk before its name is. */
	if (!err && (out->temporary || out->is_published) && fsync(out->sink->fd) < 0)
		err = -errno;
	if (close(out->sink->fd) < 0 && !err)
		err = -errno;
	free(out->sink);
	out->sink = NULL;
	return err;
}

/* The file has its name, or is removed. */
static void forget_temporary(struct io_output *out)
{
	for (struct io_temporary **at = &temporaries; *at; at = &(*at)->next)
		if (*at == out->temporary) {
			__atomic_store_n(at, out->temporary->next, __ATOMIC_RELEASE);
			break;
		}
	free(out->temporary);
	out->temporary = NULL;
}

static void remove_temporary(struct io_output *out)
{
	if (!out->temporary)
		return;
	unlinkat(out->temporary->dir, out->temporary->name, 0);
	forget_temporary(out);
}

void io_remove_temporaries(void)
{
	for (struct io_temporary *at = __atomic_load_n(&temporaries, __ATOMIC_ACQUIRE); at; at = at->next)
		if (at->owner == getpid() && at->name[0])
			unlinkat(at->dir, at->name, 0);
}

static void output_release(struct io_output *out)
{
	if (out->temporary)
		forget_temporary(out);
	out_path_release(&out->at);
	*out = (struct io_output){0};
}

static int open_stdout(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : fd;
}

static bool is_stdout(const struct stat *target)
{
	struct stat st;

	return fstat(STDOUT_FILENO, &st) == 0 && target->st_dev == st.st_dev && target->st_ino == st.st_ino;
}

/* A pipe that another user put into a folder that everybody can write to: that user would get the recording. */
static bool is_trap(const struct out_path *at, const struct stat *target)
{
	struct stat dir;

	return S_ISFIFO(target->st_mode) && !at->is_magic && fstat(at->dir, &dir) == 0 && dir.st_mode & S_IWOTH &&
	       target->st_uid != geteuid() && target->st_uid != dir.st_uid;
}

/* In a folder of others, a second name of our file may be their link to it. */
static bool is_ours(const struct out_path *at, const struct stat *target)
{
	struct stat dir;

	return target->st_uid == geteuid() &&
	       (target->st_nlink <= 1 ||
		(!fstat(at->dir, &dir) && dir.st_uid == geteuid() && !(dir.st_mode & (S_IWGRP | S_IWOTH))));
}

/* Returns the descriptor. Uses open() rather than mkostemp(), so that umask and the folder's ACL decide the mode. */
static int open_name(const struct io_output *out, mode_t mode, struct io_temporary *temporary)
{
	uint32_t random = 0;
	int fd = -EEXIST;

	for (int i = 0; i < TEMPORARY_TRIES && fd == -EEXIST; i++) {
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
			return -errno;
		/* The target's name may have up to 255 bytes; this one must fit in 255 too. */
		snprintf(temporary->name, sizeof(temporary->name), ".%.200s.duet-%06x", out->at.name,
			 random & 0xffffff);
		fd = openat(out->at.dir, temporary->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd < 0)
			fd = -errno;
	}
	return fd;
}

/* The list has the name before the file exists. */
static int open_temporary(struct io_output *out, mode_t mode)
{
	struct io_temporary *temporary = calloc(1, sizeof(*temporary));
	int fd;

	if (!temporary)
		return -ENOMEM;
	*temporary = (struct io_temporary){.next = temporaries, .owner = getpid(), .dir = out->at.dir};
	out->temporary = temporary;
	__atomic_store_n(&temporaries, temporary, __ATOMIC_RELEASE);
	fd = open_name(out, mode, temporary);
	if (fd < 0)
		forget_temporary(out);
	return fd;
}

/* Sets the group first: otherwise the new mode would let the old group in for a moment. */
static int give_access(int fd, const struct io_access *access)
{
	if (access->group != IO_NO_GROUP && fchown(fd, (uid_t)-1, access->group) < 0)
		return -errno;
	return fchmod(fd, access->group == IO_NO_GROUP ? 0600 : 0640) < 0 ? -errno : 0;
}

static int open_new(struct io_output *out, const struct io_access *access)
{
	bool is_private = access && access->is_private;
	int err, fd = open_temporary(out, is_private ? 0600 : 0666);

	if (fd < 0 || !is_private)
		return fd;
	err = give_access(fd, access);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/*
 * A pipe, a device, or the file that stdout goes to must not be replaced. Everything else gets a new file. Opens what
 * was found by descriptor: by now the name may belong to another file.
 */
static int open_at(struct io_output *out, const struct io_access *access)
{
	struct stat target;

	if (out->at.found < 0 || fstat(out->at.found, &target) < 0)
		return open_new(out, access);
	if (is_trap(&out->at, &target))
		return -EACCES;
	if (!S_ISREG(target.st_mode))
		return io_open_again(out->at.found, O_WRONLY);
	if (is_stdout(&target))
		return open_stdout();
	if (access && access->in_place && is_ours(&out->at, &target))
		return io_open_again(out->at.found, O_WRONLY);
	return out->at.is_magic ? io_open_again(out->at.found, O_WRONLY | O_TRUNC) : open_new(out, access);
}

/* Takes ownership of `opened` and its descriptor `fd`, or of the -errno in `fd`. */
static int output_fill(struct io_output *out, struct io_output *opened, int fd)
{
	int err = fd < 0 ? fd : sink_open(opened, fd);

	if (err < 0)
		io_output_discard(opened);
	else
		*out = *opened;
	return err;
}

int io_output_open(struct io_output *out, const char *path, const struct io_access *access)
{
	struct io_output opened = {0};
	int err;

	if (!strcmp(path, "-"))
		return output_fill(out, &opened, open_stdout());
	if (!path[0] || path[strlen(path) - 1] == '/')
		return path[0] ? -EISDIR : -ENOENT;
	err = out_path_open(&opened.at, path, true);
	return output_fill(out, &opened, err ? err : open_at(&opened, access));
}

int io_output_create(struct io_output *out, int dir, const char *name, const struct io_access *access)
{
	struct io_output opened = {.at = {.dir = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), .found = -1}};

	if (opened.at.dir < 0)
		return -errno;
	opened.at.name = strdup(name);
	if (!opened.at.name) {
		close(opened.at.dir);
		return -ENOMEM;
	}
	return output_fill(out, &opened, open_new(&opened, access));
}

/* Where others can make names, a file that is there is ours, and has no second name, which would be a link as well. */
static bool is_own(const struct out_path *at, int fd)
{
	struct stat dir, file;

	return !fstat(at->dir, &dir) && !fstat(fd, &file) &&
	       (!(dir.st_mode & S_IWOTH) || (file.st_uid == geteuid() && file.st_nlink <= 1));
}

/* Returns -EEXIST if somebody has just made it. */
static int try_own(const char *path, int flags, mode_t mode)
{
	struct out_path at;
	int fd, err = out_path_open(&at, path, true);

	if (err < 0)
		return err;
	if (at.found >= 0)
		fd = is_own(&at, at.found) ? io_open_again(at.found, flags | O_NONBLOCK) : -EACCES;
	else if ((fd = openat(at.dir, at.name, flags | O_CREAT | O_EXCL | O_CLOEXEC, mode)) < 0)
		fd = -errno;
	out_path_release(&at);
	return fd;
}

int io_open_own(const char *path, int flags, mode_t mode)
{
	int fd = -EEXIST;

	for (int i = 0; i < TEMPORARY_TRIES && fd == -EEXIST; i++)
		fd = try_own(path, flags, mode);
	return fd;
}

int io_output_take(struct io_output *out, int fd)
{
	struct io_output opened = {0};

	return output_fill(out, &opened, fd);
}

int io_output_copy(const struct io_output *out)
{
	int fd = fcntl(out->sink->fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : fd;
}

static int give_name(struct io_output *out)
{
	if (out->temporary && renameat(out->at.dir, out->temporary->name, out->at.dir, out->at.name) < 0)
		return -errno;
	return 0;
}

int io_output_publish(struct io_output *out)
{
	int err = fflush(out->file) == EOF ? io_output_error(out) : 0;

	if (!err)
		err = give_name(out);
	if (err || !out->temporary)
		return err;
	forget_temporary(out);
	out->is_published = true;
	return 0;
}

int io_output_commit(struct io_output *out)
{
	int err = io_output_close(out);

	if (!err)
		err = give_name(out);
	if (err)
		remove_temporary(out);
	output_release(out);
	return err;
}

void io_output_discard(struct io_output *out)
{
	if (!out)
		return;
	(void)io_output_close(out);
	remove_temporary(out);
	output_release(out);
}

int io_output_end(struct io_output *out, int err)
{
	if (err < 0 && io_output_error(out))
		err = io_output_error(out);
	if (!err)
		err = io_output_commit(out);
	io_output_discard(out);
	return err;
}

const char *io_other_folder(size_t i)
{
	const char *chosen = getenv("TMPDIR");
	const char *const folders[] = {chosen ? chosen : "/tmp", "/tmp", "/var/tmp", "/dev/shm", getenv("HOME")};

	return i < sizeof(folders) / sizeof(*folders) ? folders[i] : NULL;
}

const char *io_advice(int err)
{
	switch (-err) {
	case ENOSPC:
	case EDQUOT:
		return "; free some space or choose another place";
	case EFBIG:
		return "; raise the limit of a file's size (ulimit -f)";
	case EPIPE:
		return ": who was to read it has ended";
	case EILSEQ:
		return ": a terminal shows text alone; name a file";
	case EBADF:
		return ": it is closed; name a file";
	default:
		return "";
	}
}
