/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "in/readers.h"

const struct reader *const readers[] = {
	&reader_duet,
	&reader_jfr,
	&reader_otlp,
	&reader_pprof,
	&reader_html,
	&reader_perf,
	&reader_collapsed,
	NULL,
};

/* Reads until `len` bytes are there or the file ends. */
static ssize_t read_whole(int fd, unsigned char *bytes, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t more = read(fd, bytes + got, len - got);

		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0)
			return -errno;
		if (!more)
			break;
		got += (size_t)more;
	}
	return (ssize_t)got;
}

static int open_path(const char *path, struct buf *why)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	int err = fd < 0 ? -errno : 0;

	if (!err && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(fd);
		err = -EISDIR;
	}
	if (err < 0)
		buf_printf(why, "cannot be read: %s", strerror(-err));
	return err ? err : fd;
}

int reader_open(struct reader_source *source, const char *path, struct buf *why)
{
	int fd = open_path(path, why);
	ssize_t got;

	if (fd < 0)
		return fd;
	*source = (struct reader_source){.name = strcmp(path, "-") ? path : "stdin", .fd = fd};
	buf_init(&source->warning);
	got = read_whole(fd, source->start, sizeof(source->start));
	if (got >= 0) {
		source->start_len = (size_t)got;
		return 0;
	}
	buf_printf(why, "cannot be read: %s", strerror((int)-got));
	reader_close(source);
	return (int)got;
}

void reader_close(struct reader_source *source)
{
	close(source->fd);
	buf_release(&source->warning);
}

ssize_t reader_bytes(struct reader_source *source, void *bytes, size_t len)
{
	size_t ready = 0;
	ssize_t got;

	if (source->offset < source->start_len) {
		ready = source->start_len - (size_t)source->offset;
		ready = ready < len ? ready : len;
		memcpy(bytes, source->start + source->offset, ready);
	}
	got = read_whole(source->fd, (unsigned char *)bytes + ready, len - ready);
	if (got < 0)
		return got;
	source->offset += ready + (size_t)got;
	return (ssize_t)ready + got;
}

int reader_read(struct reader_source *source, struct profile *profile, struct buf *why)
{
	for (size_t i = 0; readers[i]; i++)
		if (readers[i]->claims(source->start, source->start_len))
			return readers[i]->read(profile, source, why);
	buf_printf(why, source->start_len ? "not a profile in a format that duet reads" : "the file is empty");
	return -EINVAL;
}
