/* SPDX-License-Identifier: MIT */
#include "attach/hsperfdata.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/root.h"

#define SCAN_MAX 4096 /* entries of /tmp to look at, at most: it may be hostile */

/* PerfDataPrologue of jdk.internal.perf, version 2.0: JDK 1.5 to 27. */
struct prologue {
	uint8_t magic[4];
	uint8_t little_endian;
	uint8_t major;
	uint8_t minor;
	uint8_t accessible;
	uint32_t used;
	uint32_t overflow;
	uint64_t modified;
	uint32_t entry_offset;
	uint32_t num_entries;
};

struct entry {
	uint32_t length;
	uint32_t name_offset; /* relative to the entry */
	uint32_t vector_length; /* 0 for a scalar */
	uint8_t type; /* a JVM type letter; strings are byte vectors */
	uint8_t flags;
	uint8_t units;
	uint8_t variability;
	uint32_t data_offset; /* relative to the entry */
};

static bool prologue_valid(const struct prologue *head)
{
	static const uint8_t magic[4] = {0xca, 0xfe, 0xc0, 0xc0};
	bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

	return memcmp(head->magic, magic, sizeof(magic)) == 0 && head->little_endian == little && head->major == 2;
}

static bool entry_named(const struct entry *entry, const char *bytes, const char *name)
{
	size_t len = strlen(name) + 1;

	return entry->name_offset <= entry->length && len <= entry->length - entry->name_offset &&
	       memcmp(bytes + entry->name_offset, name, len) == 0;
}

static int entry_copy(const struct entry *entry, const char *bytes, char *value, size_t size)
{
	size_t len = entry->vector_length;

	if (entry->type != 'B' || entry->data_offset > entry->length || len > entry->length - entry->data_offset)
		return -EBADMSG;
	len = strnlen(bytes + entry->data_offset, len < size ? len : size - 1);
	memcpy(value, bytes + entry->data_offset, len);
	value[len] = '\0';
	return 0;
}

/* Returns 0 with the entry and its first byte, or -errno. */
static int find_entry(const char *bytes, size_t len, const char *name, struct entry *ret_entry, const char **ret_at)
{
	struct prologue head;
	size_t at;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	if (!prologue_valid(&head))
		return -EBADMSG;
	for (at = head.entry_offset; head.num_entries-- > 0; at += ret_entry->length) {
		if (at > len || len - at < sizeof(*ret_entry))
			return -EBADMSG;
		memcpy(ret_entry, bytes + at, sizeof(*ret_entry));
		if (ret_entry->length < sizeof(*ret_entry) || ret_entry->length > len - at)
			return -EBADMSG;
		*ret_at = bytes + at;
		if (entry_named(ret_entry, *ret_at, name))
			return 0;
	}
	return -ENOENT;
}

int hsperfdata_string(const void *bytes, size_t len, const char *name, char *value, size_t size)
{
	struct entry entry;
	const char *at;
	int err = find_entry(bytes, len, name, &entry, &at);

	return err ? err : entry_copy(&entry, at, value, size);
}

int hsperfdata_number(const void *bytes, size_t len, const char *name, uint64_t *ret_number)
{
	struct entry entry;
	const char *at;
	int err = find_entry(bytes, len, name, &entry, &at);

	if (err)
		return err;
	if (entry.type != 'J' || entry.vector_length || entry.data_offset > entry.length ||
	    entry.length - entry.data_offset < sizeof(*ret_number))
		return -EBADMSG;
	memcpy(ret_number, at + entry.data_offset, sizeof(*ret_number));
	return 0;
}

/* The folder's name has the user as in the target's own /etc/passwd: unchecked, but the file's owner is checked. */
static int read_below(int tmp, const char *folder, pid_t ns_pid, uid_t uid, struct buf *ret_bytes)
{
	char path[300];

	if (strncmp(folder, "hsperfdata_", strlen("hsperfdata_")) != 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%d", folder, ns_pid);
	return root_read(tmp, path, uid, HSPERFDATA_MAX, ret_bytes) ? -ENOENT : 0;
}

int hsperfdata_read(int root, pid_t ns_pid, uid_t uid, struct buf *ret_bytes)
{
	int err = -ENOENT, fd = root_open(root, "tmp", O_RDONLY | O_DIRECTORY, true);
	DIR *tmp = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *item;

	if (!tmp) {
		err = fd < 0 ? fd : -errno;
		io_close(&fd);
		return err;
	}
	for (int i = 0; err == -ENOENT && i < SCAN_MAX && (item = readdir(tmp)); i++)
		err = read_below(fd, item->d_name, ns_pid, uid, ret_bytes);
	closedir(tmp);
	return err;
}
