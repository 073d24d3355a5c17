// SPDX-License-Identifier: MIT
#include "unwind/cfi.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

#define CIE_ID 0 /* in .eh_frame; in .debug_frame all bits are set */
#define EXTENDED_LENGTH 0xffffffffu /* 64-bit DWARF follows */
#define MAX_CIES 65536
#define MAX_LETTERS 32 /* letters of an augmentation; known ones have 7 at most */
#define STEPS_PER_BYTE 4 /* real programs take at most one step for each byte; each CIE is run only once */
#define STEPS_MIN 4096
#define MAX_PROGRAM (1u << 20) /* bytes; real programs have some thousand at most */

#define DW_EH_PE_ABSPTR 0x00
#define DW_EH_PE_ULEB128 0x01
#define DW_EH_PE_UDATA2 0x02
#define DW_EH_PE_UDATA4 0x03
#define DW_EH_PE_UDATA8 0x04
#define DW_EH_PE_SLEB128 0x09
#define DW_EH_PE_SDATA2 0x0a
#define DW_EH_PE_SDATA4 0x0b
#define DW_EH_PE_SDATA8 0x0c
#define DW_EH_PE_FORMAT 0x0f
#define DW_EH_PE_PCREL 0x10
#define DW_EH_PE_RELATION 0x70
#define DW_EH_PE_OMIT 0xff

const struct cfi_machine cfi_x86_64 = {.sp = 7, .fp = 6, .ra = 16, .ra_on_stack = true, .link = 5};
const struct cfi_machine cfi_aarch64 = {.sp = 31, .fp = 29, .ra = 30};

/* One CIE or FDE. */
struct entry {
	struct bytes body; /* the bytes after the id */
	size_t offset;
	bool is_cie;
	uint64_t cie; /* for an FDE: offset of its CIE; past the section's end if the entry is damaged */
};

/* ---- addresses ---- */

static uint64_t encoded_number(struct bytes *bytes, uint8_t format)
{
	switch (format) {
	case DW_EH_PE_ABSPTR:
	case DW_EH_PE_UDATA8:
	case DW_EH_PE_SDATA8:
		return bytes_number(bytes, 8);
	case DW_EH_PE_UDATA2:
		return bytes_number(bytes, 2);
	case DW_EH_PE_UDATA4:
		return bytes_number(bytes, 4);
	case DW_EH_PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)bytes_number(bytes, 2);
	case DW_EH_PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)bytes_number(bytes, 4);
	case DW_EH_PE_ULEB128:
		return bytes_uleb(bytes);
	case DW_EH_PE_SLEB128:
		return (uint64_t)bytes_sleb(bytes);
	}
	bytes->bad = true;
	return 0;
}

uint64_t cfi_pointer(const struct cfi *cfi, struct bytes *bytes, uint8_t encoding)
{
	uint64_t here = cfi->section.vaddr + (uint64_t)(bytes->at - (const uint8_t *)cfi->section.bytes);
	uint64_t number = encoded_number(bytes, encoding & DW_EH_PE_FORMAT);

	switch (encoding & DW_EH_PE_RELATION) {
	case DW_EH_PE_ABSPTR:
		return number;
	case DW_EH_PE_PCREL:
		return here + number;
	}
	bytes->bad = true; /* addresses relative to text, data or function do not occur in these sections */
	return 0;
}

/* ---- entries ---- */

/* In .eh_frame an FDE's id is the distance back from the id to the CIE; in .debug_frame it is the CIE's offset. */
static void read_id(const struct cfi *cfi, struct entry *entry, bool is_64_bit)
{
	size_t here = (size_t)(entry->body.at - (const uint8_t *)cfi->section.bytes);
	bool is_debug_frame = cfi->section.is_debug_frame;
	size_t width = is_debug_frame && is_64_bit ? 8 : 4;
	uint64_t id = bytes_number(&entry->body, width);

	entry->is_cie = id == (is_debug_frame ? UINT64_MAX >> (64 - 8 * width) : CIE_ID);
	entry->cie = is_debug_frame ? id : here - id;
}

/* False at the end: at an entry of length 0, or a damaged one. */
static bool entry_at(const struct cfi *cfi, uint64_t offset, struct entry *ret)
{
	const uint8_t *start = cfi->section.bytes;
	struct bytes bytes = {start + offset, start + cfi->section.len, false};
	uint64_t len = bytes_number(&bytes, 4);
	bool is_64_bit = len == EXTENDED_LENGTH;

	if (is_64_bit)
		len = bytes_number(&bytes, 8);
	if (bytes.bad || len < 4 || len > bytes_left(&bytes))
		return false;
	ret->offset = offset;
	ret->body = bytes_take(&bytes, len);
	read_id(cfi, ret, is_64_bit);
	return !ret->body.bad;
}

/* Reads letters without 'z', as assemblers write into .debug_frame. False for those that may have data. */
static bool read_plain_augmentation(struct cfi_cie *cie, const char *letters)
{
	cie->is_signal_frame = strchr(letters, 'S') != NULL;
	return strspn(letters, "SBG") == strlen(letters);
}

/*
 * Reads the letters after 'z' and the data of each, or letters without 'z'. False if the data is damaged, or if a
 * letter may change the layout in a way that we do not know.
 */
static bool read_augmentation(struct cfi_cie *cie, const char *letters, struct bytes *body)
{
	struct bytes data;

	if (letters[0] != 'z')
		return read_plain_augmentation(cie, letters);
	cie->has_augmentation_data = true;
	data = bytes_take(body, bytes_uleb(body));
	for (letters++; *letters; letters++) {
		if (*letters == 'R')
			cie->encoding = (uint8_t)bytes_number(&data, 1);
		else if (*letters == 'P') {
			uint8_t encoding = (uint8_t)bytes_number(&data, 1);

			if (encoding != DW_EH_PE_OMIT)
				encoded_number(&data, encoding & DW_EH_PE_FORMAT);
		} else if (*letters == 'L')
			bytes_number(&data, 1);
		else if (*letters == 'S')
			cie->is_signal_frame = true;
		else if (*letters != 'B' && *letters != 'G') /* arm64: B, signed with key B; G, memory is tagged */
			break; /* an unknown letter; it can be skipped, as the data's length is known */
	}
	return !data.bad && !body->bad;
}

/*
 * Since DWARF 4 a CIE has the width of addresses and of segment numbers. Only .debug_frame has CIEs of that version.
 * False for widths or versions that we do not support.
 */
static bool read_widths(const struct cfi *cfi, uint8_t version, struct bytes *body)
{
	if (version == 1 || version == 3)
		return true;
	return version == 4 && cfi->section.is_debug_frame && bytes_number(body, 1) == 8 && bytes_number(body, 1) == 0;
}

static int parse_cie(struct cfi *cfi, struct entry *entry, struct cfi_cie *cie)
{
	struct bytes *body = &entry->body;
	uint8_t version = (uint8_t)bytes_number(body, 1);
	const char *letters = (const char *)body->at;
	uint64_t ra;

	if (!memchr(letters, '\0', bytes_left(body) < MAX_LETTERS ? bytes_left(body) : MAX_LETTERS))
		return -EINVAL;
	body->at += strlen(letters) + 1;
	if (!read_widths(cfi, version, body))
		return -EINVAL;
	*cie = (struct cfi_cie){.offset = entry->offset};
	cie->code_align = bytes_uleb(body);
	cie->data_align = bytes_sleb(body);
	ra = version == 1 ? bytes_number(body, 1) : bytes_uleb(body);
	if (body->bad || ra != cfi->machine->ra || !read_augmentation(cie, letters, body))
		return -EINVAL;
	return cfi_run_initial(cfi, cie, *body);
}

/* Finds or reads the CIE at `offset`; returns its index. Backwards: there are few, and FDEs follow theirs. */
static int find_cie(struct cfi *cfi, uint64_t offset, uint32_t *ret)
{
	struct entry entry;
	struct cfi_cie cie;
	int err;

	for (size_t i = cfi->cies.len; i-- > 0 && cfi->budget;) {
		cfi->budget--;
		if (cfi->cies.items[i].offset == offset) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	if (cfi->cies.len >= MAX_CIES || !cfi->budget || offset >= cfi->section.len ||
	    !entry_at(cfi, offset, &entry) || !entry.is_cie)
		return -EINVAL;
	err = parse_cie(cfi, &entry, &cie);
	if (!err)
		err = vec_push(&cfi->cies, cie);
	if (!err)
		*ret = (uint32_t)cfi->cies.len - 1;
	return err;
}

static bool is_code(const struct cfi_section *section, uint64_t start, uint64_t len)
{
	return start >= section->code_start && start < section->code_end && len &&
	       len <= section->code_end - start;
}

/* Returns 0, also if the FDE is ignored, or -ENOMEM. */
static int add_fde(struct cfi *cfi, struct entry *entry)
{
	struct bytes *body = &entry->body;
	const struct cfi_cie *cie;
	struct cfi_fde fde;
	uint64_t len;
	int err;

	err = find_cie(cfi, entry->cie, &fde.cie);
	if (err)
		return err == -ENOMEM ? err : 0;
	cie = &cfi->cies.items[fde.cie];
	fde.start = cfi_pointer(cfi, body, cie->encoding);
	len = encoded_number(body, cie->encoding & DW_EH_PE_FORMAT);
	if (cie->has_augmentation_data)
		bytes_take(body, bytes_uleb(body));
	if (body->bad || bytes_left(body) > MAX_PROGRAM || !is_code(&cfi->section, fde.start, len))
		return 0;
	fde.end = fde.start + len;
	fde.program = *body;
	return vec_push(&cfi->fdes, fde);
}

static int compare_starts(const void *a, const void *b)
{
	const struct cfi_fde *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void sort_fdes(struct cfi *cfi)
{
	size_t kept = 0;

	if (cfi->fdes.len)
		qsort(cfi->fdes.items, cfi->fdes.len, sizeof(*cfi->fdes.items), compare_starts);
	for (size_t i = 0; i < cfi->fdes.len; i++)
		if (!kept || cfi->fdes.items[i].start >= cfi->fdes.items[kept - 1].end)
			cfi->fdes.items[kept++] = cfi->fdes.items[i];
	cfi->fdes.len = kept;
}

void cfi_begin(struct cfi *cfi, const struct cfi_machine *machine, const struct cfi_section *section)
{
	*cfi = (struct cfi){.machine = machine, .section = *section};
	cfi->budget = section->len * STEPS_PER_BYTE + STEPS_MIN;
}

int cfi_find(struct cfi *cfi, uint64_t until_ns)
{
	struct entry entry;
	uint32_t turns = 0;
	int err = 0;

	while (!err && cfi->at < cfi->section.len && entry_at(cfi, cfi->at, &entry)) {
		if (clock_is_up(&turns, until_ns))
			return -EAGAIN;
		cfi->at = (size_t)(entry.body.end - (const uint8_t *)cfi->section.bytes);
		if (!entry.is_cie)
			err = add_fde(cfi, &entry);
	}
	if (!err)
		sort_fdes(cfi);
	return err;
}

void cfi_release(struct cfi *cfi)
{
	if (!cfi)
		return;
	vec_release(&cfi->cies);
	vec_release(&cfi->fdes);
}
