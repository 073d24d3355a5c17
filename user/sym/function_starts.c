/* SPDX-License-Identifier: MIT */
#include "sym/function_starts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EH_FRAME_HDR_VERSION 1
#define MAX_FUNCTIONS (FUNCTION_STARTS_MAX_BYTES / sizeof(struct eh_frame_row))
/* Encodings of pointers, from the LSB's chapter on .eh_frame: their width, and what they are relative to. */
#define DW_EH_PE_UDATA4 0x03
#define DW_EH_PE_SDATA4 0x0b
#define DW_EH_PE_FORMAT 0x0f
#define DW_EH_PE_DATAREL 0x30

struct eh_frame_hdr { /* as GNU ld, gold, lld and mold write it */
	uint8_t version;
	uint8_t frame_encoding;
	uint8_t count_encoding;
	uint8_t table_encoding;
	uint32_t frame; /* address of .eh_frame; not used, but its width decides where the rest is */
	uint32_t count;
};

struct eh_frame_row {
	int32_t start;
	int32_t fde;
};

/* An FDE of .eh_frame, as far as it is needed, with the encoding that compilers write: relative, 4 bytes. */
struct eh_frame_fde {
	uint32_t len; /* of what follows it; 0: the table ends */
	uint32_t cie; /* 0: this is no FDE but a CIE */
	int32_t start;
	uint32_t size;
};

static bool is_supported(const struct eh_frame_hdr *header)
{
	uint8_t frame_format = header->frame_encoding & DW_EH_PE_FORMAT;

	return header->version == EH_FRAME_HDR_VERSION &&
	       (frame_format == DW_EH_PE_SDATA4 || frame_format == DW_EH_PE_UDATA4) &&
	       header->count_encoding == DW_EH_PE_UDATA4 &&
	       header->table_encoding == (DW_EH_PE_DATAREL | DW_EH_PE_SDATA4);
}

/* False if they are not in order. */
static bool copy_starts(int32_t *offsets, const char *rows, size_t count)
{
	struct eh_frame_row row;

	for (size_t i = 0; i < count; i++) {
		memcpy(&row, rows + i * sizeof(row), sizeof(row));
		if (i && row.start < offsets[i - 1])
			return false;
		offsets[i] = row.start;
	}
	return true;
}

int function_starts_read(struct function_starts *starts, uint64_t vaddr, const void *bytes, size_t len)
{
	struct eh_frame_hdr header;
	int32_t *offsets;

	if (len < sizeof(header))
		return -EINVAL;
	memcpy(&header, bytes, sizeof(header));
	if (!is_supported(&header))
		return -ENOTSUP;
	if (!header.count || header.count > (len - sizeof(header)) / sizeof(struct eh_frame_row))
		return -EINVAL;
	offsets = malloc(header.count * sizeof(*offsets));
	if (!offsets)
		return -ENOMEM;
	if (!copy_starts(offsets, (const char *)bytes + sizeof(header), header.count)) {
		free(offsets);
		return -EINVAL;
	}
	*starts = (struct function_starts){.base = vaddr, .offsets = offsets, .count = header.count};
	return 0;
}

void function_starts_pack(struct buf *buf, const struct function_starts *starts)
{
	parts_add(buf, &starts->base, sizeof(starts->base));
	parts_add(buf, starts->offsets, starts->count * sizeof(*starts->offsets));
	parts_add(buf, starts->sizes, starts->sizes ? starts->count * sizeof(*starts->sizes) : 0);
}

void function_starts_unpack(struct parts *parts, struct function_starts *ret)
{
	struct vec(int32_t) offsets;
	struct vec(uint32_t) sizes;

	parts_read(parts, &ret->base, sizeof(ret->base));
	parts_read_vec(parts, &offsets, MAX_FUNCTIONS);
	parts_read_vec(parts, &sizes, MAX_FUNCTIONS);
	if (sizes.len && sizes.len != offsets.len)
		parts->err = -EBADMSG;
	ret->offsets = offsets.items;
	ret->sizes = sizes.items;
	ret->count = offsets.len;
}

void function_starts_release(struct function_starts *starts)
{
	if (!starts)
		return;
	free(starts->offsets);
	free(starts->sizes);
	*starts = (struct function_starts){0};
}

/* The number of functions that start at or before the address. */
static size_t count_up_to(const struct function_starts *starts, uint64_t vaddr)
{
	int64_t offset = (int64_t)(vaddr - starts->base);
	size_t low = 0, high = starts->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (starts->offsets[middle] <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t start_at(const struct function_starts *starts, size_t i)
{
	return starts->base + (uint64_t)(int64_t)starts->offsets[i];
}

int function_starts_measure(struct function_starts *starts, uint64_t vaddr, const void *bytes, size_t len)
{
	struct eh_frame_fde fde;

	starts->sizes = calloc(starts->count, sizeof(*starts->sizes));
	if (!starts->sizes)
		return -ENOMEM;
	for (size_t at = 0; len - at >= sizeof(fde); at += sizeof(fde.len) + fde.len) {
		uint64_t start, i;

		memcpy(&fde, (const char *)bytes + at, sizeof(fde));
		if (!fde.len || fde.len > len - at - sizeof(fde.len))
			break;
		start = vaddr + at + offsetof(struct eh_frame_fde, start) + (uint64_t)(int64_t)fde.start;
		i = count_up_to(starts, start);
		if (fde.cie && i && start_at(starts, i - 1) == start) /* with another encoding it is not */
			starts->sizes[i - 1] = fde.size;
	}
	return 0;
}

bool function_starts_find(const struct function_starts *starts, uint64_t vaddr, uint64_t *ret_start)
{
	size_t count = count_up_to(starts, vaddr);

	if (!count || !starts->sizes || vaddr - start_at(starts, count - 1) >= starts->sizes[count - 1])
		return false;
	*ret_start = start_at(starts, count - 1);
	return true;
}

uint64_t function_starts_next(const struct function_starts *starts, uint64_t vaddr)
{
	size_t count = count_up_to(starts, vaddr);

	return count < starts->count ? start_at(starts, count) : UINT64_MAX;
}
