/* SPDX-License-Identifier: MIT */
#include "proc/maps_query.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* struct procmap_query of include/uapi/linux/fs.h, Linux 6.11, which older headers lack. */
struct query {
	uint64_t size;
	uint64_t flags;
	uint64_t address;
	uint64_t start;
	uint64_t end;
	uint64_t mapping_flags;
	uint64_t page_size;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t name_size; /* of the room; then of the name, with its 0; 0: there is none */
	uint32_t build_id_size;
	uint64_t name;
	uint64_t build_id;
};
_Static_assert(sizeof(struct query) == 104, "as in the kernel");

#define QUERY _IOWR('f', 17, struct query)
#define IS_READABLE 0x01
#define IS_WRITABLE 0x02
#define IS_EXECUTABLE 0x04
#define IS_SHARED 0x08
#define COVERING_OR_NEXT 0x10

static void add_name(struct buf *text, const char *name)
{
	for (; *name; name++) {
		if (*name == '\n')
			buf_add_str(text, "\\012");
		else
			buf_add_char(text, *name);
	}
}

static void add_line(struct buf *text, const struct query *mapping, const char *name)
{
	uint64_t flags = mapping->mapping_flags;

	buf_printf(text, "%" PRIx64 "-%" PRIx64 " %c%cx%c %" PRIx64 " %" PRIx32 ":%" PRIx32 " %" PRIu64 " ",
		   mapping->start, mapping->end, flags & IS_READABLE ? 'r' : '-', flags & IS_WRITABLE ? 'w' : '-',
		   flags & IS_SHARED ? 's' : 'p', mapping->offset, mapping->dev_major, mapping->dev_minor,
		   mapping->inode);
	if (mapping->name_size)
		add_name(text, name);
	buf_add_char(text, '\n');
}

int maps_query_executable(int maps_fd, size_t max, struct buf *text)
{
	size_t len = text->len;
	char name[PATH_MAX];
	uint64_t next = 0;

	for (;;) {
		struct query query = {.size = sizeof(query),
				      .flags = IS_EXECUTABLE | COVERING_OR_NEXT,
				      .address = next,
				      .name_size = sizeof(name),
				      .name = (uintptr_t)name};

		if (ioctl(maps_fd, QUERY, &query) < 0)
			return errno == ENOENT ? 0 : -errno;
		if (query.end <= next)
			return -EPROTO;
		add_line(text, &query, name);
		if (text->len - len > max)
			return -EFBIG;
		next = query.end;
	}
}
