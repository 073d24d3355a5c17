/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "readers/gunzip.h"
#include "readers/inflate.h"
#include "readers/reader.h"

#define ROW(name) &reader_##name,
const struct reader *const readers[] = {READERS(ROW) NULL};

/* Reads until `len` bytes are there or the file ends. */
static ssize_t read_whole(const struct reader_source *source, unsigned char *bytes, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t more = source->gunzip ? gunzip_read(source->gunzip, bytes + got, len - got)
					      : read(source->fd, bytes + got, len - got);

		if (more < 0 && source->gunzip)
			return more;
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

static const struct reader *claiming(const unsigned char *start, size_t len)
{
	for (size_t i = 0; readers[i]; i++)
		if (readers[i]->claims(start, len))
			return readers[i];
	return NULL;
}

/*
 * If the beginning, which has `len` bytes, is that of a compressed file that no reader claims as it is, the source
 * becomes that of its contents. Returns the length of the beginning, or -errno.
 */
static ssize_t decompress(struct reader_source *source, size_t len)
{
	unsigned char inner[READER_START];
	size_t inner_len;

	if (!inflate_is_gzip(source->start, len) || claiming(source->start, len))
		return (ssize_t)len;
	inner_len = inflate_start(source->start, len, inner, sizeof(inner));
	if (!claiming(inner, inner_len))
		return (ssize_t)len;
	source->gunzip = gunzip_open(source->fd, source->start, len);
	return source->gunzip ? read_whole(source, source->start, sizeof(source->start)) : -ENOMEM;
}

static void explain_damage(struct buf *why)
{
	buf_add_str(why, "the compressed data are damaged or end too early");
}

int reader_open(struct reader_source *source, const char *path, struct buf *why)
{
	int fd = open_path(path, why);
	ssize_t got;

	if (fd < 0)
		return fd;
	*source = (struct reader_source){.name = strcmp(path, "-") ? path : "stdin", .fd = fd};
	buf_init(&source->warning);
	got = read_whole(source, source->start, sizeof(source->start));
	if (got >= 0)
		got = decompress(source, (size_t)got);
	if (got >= 0) {
		source->start_len = (size_t)got;
		return 0;
	}
	if (got == -EILSEQ && source->gunzip)
		explain_damage(why);
	else
		buf_printf(why, "cannot be read: %s", strerror((int)-got));
	reader_close(source);
	return (int)got;
}

void reader_close(struct reader_source *source)
{
	gunzip_close(source->gunzip);
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
	got = read_whole(source, (unsigned char *)bytes + ready, len - ready);
	if (got < 0)
		return got;
	source->offset += ready + (size_t)got;
	return (ssize_t)ready + got;
}

bool reader_is_text(const unsigned char *start, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (start[i] < ' ' && !memchr("\t\n\r\f", start[i], 4))
			return false;
	return true;
}

/* Says what a file is that no reader claims. */
static void explain_start(const unsigned char *start, size_t len, struct buf *why)
{
	static const struct {
		const char *name, *unpack;
		unsigned char magic[4];
		size_t len;
	} others[] = {
		{"zstd", "zstd -d", {0x28, 0xb5, 0x2f, 0xfd}, 4},
		{"xz", "xz -d", {0xfd, '7', 'z', 'X'}, 4},
		{"bzip2", "bzip2 -d", {'B', 'Z', 'h'}, 3},
		{"lz4", "lz4 -d", {0x04, 0x22, 0x4d, 0x18}, 4},
		{"zip", "unzip", {'P', 'K', 3, 4}, 4},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (len >= others[i].len && !memcmp(start, others[i].magic, others[i].len)) {
			buf_printf(why, "compressed with %s, not gzip: unpack it first (%s)", others[i].name,
				   others[i].unpack);
			return;
		}
	buf_add_str(why, len ? "not a profile in a format that duet reads" : "the file is empty");
	if (len && reader_is_text(start, len))
		buf_add_str(why, "; of texts, these are collapsed stacks and perf script's, with addresses or events "
				 "(perf script -F ip,sym)");
}

int reader_read(struct reader_source *source, struct profile *profile, struct buf *why)
{
	const struct reader *reader = claiming(source->start, source->start_len);

	if (reader) {
		int err = reader->read(profile, source, why);

		if (err != -EILSEQ || !source->gunzip)
			return err;
		buf_clear(why);
		explain_damage(why);
		return err;
	}
	explain_start(source->start, source->start_len, why);
	return -EINVAL;
}
