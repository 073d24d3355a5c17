/* SPDX-License-Identifier: MIT */
#include "collect/sleepers/foreign.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define PAGE 4096u /* the smallest page size of any supported kernel */
/*
 * Bytes of each stack that are read at once: 20 to 40 frames, which is what waiting threads of a JVM have. Once stacks
 * of a process have been walked, it is what the deepest of them has needed.
 */
#define STACK_BYTES 3072u
#define STACK_BYTES_LEAST 256u
#define STACK_BYTES_STEP 128u
#define PART_BYTES (64u << 10) /* of all stacks that are read at once: what one message of the helper holds */
#define READS_MAX 4096u /* most pages of one process: 16 MB */
#define ADDRESS_CHARS 17 /* characters of an address in a task, with the blank */
_Static_assert(FOREIGN_STACKS * ADDRESS_CHARS < PATH_MAX, "a task is as long as a path");

/* The bytes that could be read come first, then zeros. */
struct piece {
	uint64_t bytes;
	unsigned char data[];
};

/* ---- in the helper ---- */

/* Pieces of memory to be read, in the order of the answer. */
struct pieces {
	uint64_t addresses[FOREIGN_STACKS];
	size_t count;
	size_t bytes; /* of each */
	char *room;
};

static size_t parse_addresses(const char *list, uint64_t *addresses)
{
	size_t count = 0;
	char *next;

	for (const char *at = list; count < FOREIGN_STACKS; at = next) {
		addresses[count] = strtoull(at, &next, 16);
		if (next == at)
			break;
		count++;
	}
	return count;
}

static struct piece *piece_in(const struct pieces *pieces, size_t index)
{
	return (void *)(pieces->room + index * (sizeof(struct piece) + pieces->bytes));
}

/*
 * Reads pieces from this one on with one system call, which ends at the first page that cannot be read. Returns the
 * index of the first piece that it has not come to.
 */
static size_t read_from(pid_t pid, const struct pieces *pieces, size_t first)
{
	struct iovec local[FOREIGN_STACKS], remote[2 * FOREIGN_STACKS]; /* a piece is in one or two pages */
	size_t next, got;
	ssize_t result;

	for (size_t i = first; i < pieces->count; i++) {
		uint64_t address = pieces->addresses[i];
		size_t in_page = PAGE - address % PAGE < pieces->bytes ? PAGE - address % PAGE : pieces->bytes;
		struct iovec *parts = &remote[2 * (i - first)];

		local[i - first] = (struct iovec){piece_in(pieces, i)->data, pieces->bytes};
		parts[0] = (struct iovec){(void *)(uintptr_t)address, in_page};
		parts[1] = (struct iovec){(void *)(uintptr_t)(address + in_page), pieces->bytes - in_page};
	}
	next = pieces->count - first;
	result = process_vm_readv(pid, local, next, remote, 2 * next, 0);
	got = result > 0 ? (size_t)result : 0;
	for (next = first; next < pieces->count; got -= pieces->bytes) {
		struct piece *piece = piece_in(pieces, next++);

		piece->bytes = got < pieces->bytes ? got : pieces->bytes;
		if (piece->bytes < pieces->bytes)
			break;
	}
	return next;
}

/* `path` lists addresses, each of a piece of `number` bytes, at most PAGE. */
static int read_pieces(const struct helper_task *task, struct helper_answer *answer)
{
	struct pieces pieces = {.bytes = task->number <= PAGE ? task->number : PAGE};
	size_t size;

	pieces.count = parse_addresses(task->path, pieces.addresses);
	size = pieces.count * (sizeof(struct piece) + pieces.bytes);
	if (!buf_reserve(&answer->text, size))
		return -ENOMEM;
	pieces.room = answer->text.data;
	memset(pieces.room, 0, size);
	answer->text.len = size;
	for (size_t next = 0; next < pieces.count;)
		next = read_from(task->pid, &pieces, next);
	return 0;
}

/* ---- in the loader ---- */

static int ask(const struct foreign *foreign, const uint64_t *addresses, size_t count, size_t bytes,
	       struct helper_answer *answer)
{
	char list[FOREIGN_STACKS * ADDRESS_CHARS + 1];
	const struct helper_task task = {
		.work = read_pieces, .pid = foreign->pid, .fd = -1, .path = list, .number = bytes};
	int err;

	for (size_t i = 0; i < count; i++)
		snprintf(list + i * ADDRESS_CHARS, ADDRESS_CHARS + 1, "%16llx ", (unsigned long long)addresses[i]);
	list[count * ADDRESS_CHARS] = '\0';
	err = helper_run(&task, answer);
	if (!err && answer->text.len != count * (sizeof(struct piece) + bytes))
		err = -EPROTO;
	return err;
}

static void forget_pages(struct foreign *foreign)
{
	uint64_t key, value;
	size_t cursor = 0;

	while (map_next(&foreign->pages, &cursor, &key, &value))
		free((void *)(uintptr_t)value);
	map_release(&foreign->pages);
}

static void forget_stacks(struct foreign *foreign)
{
	if (foreign->stack_count)
		helper_answer_release(&foreign->answer);
	foreign->stack_count = foreign->stack = 0;
}

void foreign_open(struct foreign *foreign, pid_t pid)
{
	forget_pages(foreign);
	forget_stacks(foreign);
	foreign->pid = pid;
	foreign->deepest = 0;
	foreign->reads_left = READS_MAX;
}

void foreign_close(struct foreign *foreign)
{
	foreign_open(foreign, 0);
}

static size_t bytes_of_stacks(const struct foreign *foreign)
{
	size_t bytes = foreign->deepest ? foreign->deepest : STACK_BYTES;

	bytes = (bytes + STACK_BYTES_STEP - 1) / STACK_BYTES_STEP * STACK_BYTES_STEP;
	return bytes < STACK_BYTES_LEAST ? STACK_BYTES_LEAST : bytes;
}

size_t foreign_read_stacks(struct foreign *foreign, const uint64_t *addresses, size_t count)
{
	size_t bytes = bytes_of_stacks(foreign), most = PART_BYTES / (bytes + sizeof(struct piece));

	forget_stacks(foreign);
	if (most > FOREIGN_STACKS)
		most = FOREIGN_STACKS;
	if (count > most)
		count = most;
	if (!foreign->reads_left)
		return count;
	if (ask(foreign, addresses, count, bytes, &foreign->answer)) {
		helper_answer_release(&foreign->answer);
		foreign->reads_left = 0; /* the process has ended, or may not be read */
		return count;
	}
	memcpy(foreign->stacks, addresses, count * sizeof(*addresses));
	foreign->stack_count = count;
	foreign->stack_bytes = bytes;
	return count;
}

static const struct piece *piece_at(const struct buf *text, size_t index, size_t bytes)
{
	return (const void *)(text->data + index * (sizeof(struct piece) + bytes));
}

static bool read_stack(struct foreign *foreign, void *to, size_t bytes, uint64_t address)
{
	const struct piece *piece;
	uint64_t offset;

	if (foreign->stack >= foreign->stack_count)
		return false;
	piece = piece_at(&foreign->answer.text, foreign->stack, foreign->stack_bytes);
	offset = address - foreign->stacks[foreign->stack];
	if (offset < STACK_BYTES && offset + bytes <= STACK_BYTES && offset + bytes > foreign->deepest)
		foreign->deepest = offset + bytes;
	if (piece->bytes > foreign->stack_bytes || offset > piece->bytes || piece->bytes - offset < bytes)
		return false;
	memcpy(to, piece->data + offset, bytes);
	return true;
}

/* Returns a page's bytes, or NULL. */
static struct piece *fetch_page(struct foreign *foreign, uint64_t page)
{
	uint64_t address = page * PAGE;
	struct helper_answer answer;
	struct piece *copy = NULL;

	if (!foreign->reads_left)
		return NULL;
	foreign->reads_left--;
	if (ask(foreign, &address, 1, PAGE, &answer))
		foreign->reads_left = 0;
	else
		copy = buf_duplicate(answer.text.data, answer.text.len);
	helper_answer_release(&answer);
	if (copy && map_put_ptr(&foreign->pages, page, copy) < 0) {
		free(copy);
		return NULL;
	}
	return copy;
}

int foreign_read(struct foreign *foreign, void *to, size_t bytes, uint64_t address)
{
	unsigned char *next = to;

	if (read_stack(foreign, to, bytes, address))
		return 0;
	while (bytes) {
		uint64_t page = address / PAGE, offset = address % PAGE;
		size_t part = bytes < PAGE - offset ? bytes : PAGE - offset;
		const struct piece *piece = map_get_ptr(&foreign->pages, page);

		if (!piece)
			piece = fetch_page(foreign, page);
		if (!piece || piece->bytes > PAGE || offset + part > piece->bytes)
			return -1;
		memcpy(next, piece->data + offset, part);
		next += part;
		address += part;
		bytes -= part;
	}
	return 0;
}
