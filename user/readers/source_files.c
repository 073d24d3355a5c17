/* SPDX-License-Identifier: MIT */
#include "readers/source_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io.h"

#define TEXT_MAX ((size_t)16 << 20) /* bytes of a source file */
#define DIRECTORY_MAX ((size_t)128 << 20) /* bytes of a jar's list of files */

/* Returns a descriptor or -errno. */
static int open_file(int folder, const char *path)
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -ENOENT;
}

/* Tries the folders in this one, which are modules. */
static int open_below(int folder, const char *path)
{
	DIR *dir = fdopendir(openat(folder, ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY));
	const struct dirent *entry;
	int fd = -ENOENT;

	while (dir && fd == -ENOENT && (entry = readdir(dir))) {
		BUF(whole);

		if (entry->d_name[0] == '.')
			continue;
		buf_printf(&whole, "%s/%s", entry->d_name, path);
		fd = open_file(folder, whole.data);
		fd = fd == -ENOTDIR ? -ENOENT : fd;
	}
	if (dir)
		closedir(dir);
	return fd;
}

static int open_in_folder(int folder, const char *path, const char *file)
{
	int fd = open_file(folder, path);

	if (fd == -ENOENT)
		fd = open_below(folder, path);
	return fd == -ENOENT ? open_file(folder, file) : fd;
}

/* A jar has the format ZIP, here without its extension for more than 65535 files. */
#define END_SIGNATURE 0x06054b50
#define ENTRY_SIGNATURE 0x02014b50
#define LOCAL_SIGNATURE 0x04034b50
#define END_BYTES 22
#define ENTRY_BYTES 46
#define LOCAL_BYTES 30
#define COMMENT_MAX 65535

static uint32_t u16_at(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32_at(const unsigned char *at)
{
	return u16_at(at) | u16_at(at + 2) << 16;
}

static int read_at(int fd, uint64_t offset, size_t bytes, struct buf *to)
{
	buf_clear(to);
	if (!buf_reserve(to, bytes))
		return -ENOMEM;
	while (to->len < bytes) {
		ssize_t got = pread(fd, to->data + to->len, bytes - to->len, (off_t)(offset + to->len));

		if (got < 0)
			return -errno;
		if (!got)
			return -EBADMSG;
		to->len += (size_t)got;
	}
	return 0;
}

/* Reads the list of files. Returns 0, or -EBADMSG if the file is no jar, or another -errno. */
static int read_directory(int fd, uint64_t size, struct buf *directory)
{
	size_t tail = size < END_BYTES + COMMENT_MAX ? (size_t)size : END_BYTES + COMMENT_MAX;
	int err = read_at(fd, size - tail, tail, directory);
	const unsigned char *bytes = (const unsigned char *)directory->data;

	for (size_t i = tail; !err && i-- > 0;) {
		if (i + END_BYTES > tail || u32_at(bytes + i) != END_SIGNATURE)
			continue;
		if (u32_at(bytes + i + 12) > DIRECTORY_MAX)
			return -EFBIG;
		return read_at(fd, u32_at(bytes + i + 16), u32_at(bytes + i + 12), directory);
	}
	return err ? err : -EBADMSG;
}

static int unpack(const struct buf *packed, size_t bytes, struct buf *text)
{
	z_stream stream = {.next_in = (unsigned char *)packed->data, .avail_in = (uInt)packed->len};
	int code;

	if (!buf_reserve(text, bytes) || inflateInit2(&stream, -MAX_WBITS) != Z_OK)
		return -ENOMEM;
	stream.next_out = (unsigned char *)text->data + text->len;
	stream.avail_out = (uInt)bytes;
	code = inflate(&stream, Z_FINISH);
	text->len += bytes - stream.avail_out;
	text->data[text->len] = '\0';
	inflateEnd(&stream);
	return code == Z_STREAM_END ? 0 : -EBADMSG;
}

/* Reads the file of an entry of the list. */
static int read_entry(int fd, const unsigned char *entry, struct buf *text)
{
	size_t packed_bytes = u32_at(entry + 20), bytes = u32_at(entry + 24);
	uint64_t offset = u32_at(entry + 42);
	BUF(packed);
	int err;

	if (packed_bytes > TEXT_MAX || bytes > TEXT_MAX)
		return -EFBIG;
	err = read_at(fd, offset, LOCAL_BYTES, &packed);
	if (!err && u32_at((const unsigned char *)packed.data) != LOCAL_SIGNATURE)
		err = -EBADMSG;
	if (!err) {
		const unsigned char *local = (const unsigned char *)packed.data;

		offset += LOCAL_BYTES + u16_at(local + 26) + u16_at(local + 28);
		err = read_at(fd, offset, packed_bytes, &packed);
	}
	if (!err && u16_at(entry + 10) == 8)
		err = unpack(&packed, bytes, text);
	else if (!err)
		buf_add(text, packed.data, packed.len);
	return err;
}

/* "com/acme/Main.java", or the same below a folder */
static bool is_entry(const char *name, size_t len, const char *path)
{
	size_t bytes = strlen(path);

	return len >= bytes && !memcmp(name + len - bytes, path, bytes) &&
	       (len == bytes || name[len - bytes - 1] == '/');
}

static int find_in_jar(int fd, uint64_t size, const char *path, struct buf *text)
{
	BUF(directory);
	int err = read_directory(fd, size, &directory);

	for (size_t at = 0; !err;) {
		const unsigned char *entry = (const unsigned char *)directory.data + at;
		size_t name_len;

		if (at + ENTRY_BYTES > directory.len || u32_at(entry) != ENTRY_SIGNATURE) {
			err = -ENOENT;
			break;
		}
		name_len = u16_at(entry + 28);
		if (at + ENTRY_BYTES + name_len > directory.len) {
			err = -EBADMSG;
			break;
		}
		if (is_entry((const char *)entry + ENTRY_BYTES, name_len, path)) {
			err = read_entry(fd, entry, text);
			break;
		}
		at += ENTRY_BYTES + name_len + u16_at(entry + 30) + u16_at(entry + 32);
	}
	return err;
}

int source_files_open(const char *place, const char *path)
{
	IO_FD(folder) = open(place, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOCTTY);
	const char *file = basename(path);

	if (!*path)
		return open_file(AT_FDCWD, place);
	if (*path == '/' || !*file || *file == '.' || strstr(path, ".."))
		return -ENOENT;
	return folder < 0 ? -errno : open_in_folder(folder, path, file);
}

int source_files_read(int fd, const char *path, struct buf *text)
{
	struct stat st;

	if (!path)
		return io_read_again(fd, TEXT_MAX, text);
	return fstat(fd, &st) < 0 ? -errno : find_in_jar(fd, (uint64_t)st.st_size, path, text);
}
