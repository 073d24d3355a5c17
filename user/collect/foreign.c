/* SPDX-License-Identifier: MIT */
#include "collect/foreign.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define PAGE 4096u /* the smallest page size of any supported kernel */
/* bytes of each stack that are read at once: 20 to 40 frames, which is what waiting threads of a JVM have */
#define STACK_BYTES 3072u
#define READS_MAX 4096u /* most pages of one process: 16 MB */
#define ADDRESS_CHARS 17 /* characters of an address in a task, with the blank */
_Static_assert(FOREIGN_STACKS * ADDRESS_CHARS < PATH_MAX, "a task is as long as a path");

/* The bytes that could be read come first, then zeros. */
struct piece {
	uint64_t bytes;
	unsigned char data[];
};

/* Reads up to the first page that cannot be read. */
static size_t read_piece(pid_t pid, unsigned char *to, uint64_t address, size_t bytes)
{
	size_t first = PAGE - address % PAGE;
	struct iovec local = {to, bytes};
	struct iovec remote[] = {{(void *)(uintptr_t)address, first < bytes ? first : bytes},
				 {(void *)(uintptr_t)(address + first), first < bytes ? bytes - first : 0}};
	ssize_t got = process_vm_readv(pid, &local, 1, remote, first < bytes ? 2 : 1, 0);

	return got > 0 ? (size_t)got : 0;
}

/* Runs in the helper: `path` lists addresses, each of a piece of `number` bytes, at most PAGE. */
static int read_pieces(const struct helper_task *task, struct helper_answer *answer)
{
	size_t bytes = task->number <= PAGE ? task->number : PAGE;
	unsigned char room[sizeof(struct piece) + PAGE];
	struct piece *piece = (void *)room;
	const char *at = task->path;
	char *next;

	for (uint64_t address = strtoull(at, &next, 16); next != at; address = strtoull(at, &next, 16)) {
		memset(room, 0, sizeof(*piece) + bytes);
		piece->bytes = read_piece(task->pid, piece->data, address, bytes);
		buf_add(&answer->text, room, sizeof(*piece) + bytes);
		at = next;
	}
	return answer->text.failed ? -ENOMEM : 0;
}

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
	foreign->reads_left = READS_MAX;
}

void foreign_close(struct foreign *foreign)
{
	foreign_open(foreign, 0);
}

void foreign_read_stacks(struct foreign *foreign, const uint64_t *addresses, size_t count)
{
	forget_stacks(foreign);
	if (!count || count > FOREIGN_STACKS || !foreign->reads_left)
		return;
	if (ask(foreign, addresses, count, STACK_BYTES, &foreign->answer)) {
		helper_answer_release(&foreign->answer);
		foreign->reads_left = 0; /* the process has ended, or may not be read */
		return;
	}
	memcpy(foreign->stacks, addresses, count * sizeof(*addresses));
	foreign->stack_count = count;
}

static const struct piece *piece_at(const struct buf *text, size_t index, size_t bytes)
{
	return (const void *)(text->data + index * (sizeof(struct piece) + bytes));
}

static bool read_stack(const struct foreign *foreign, void *to, size_t bytes, uint64_t address)
{
	const struct piece *piece;
	uint64_t offset;

	if (foreign->stack >= foreign->stack_count)
		return false;
	piece = piece_at(&foreign->answer.text, foreign->stack, STACK_BYTES);
	offset = address - foreign->stacks[foreign->stack];
	if (piece->bytes > STACK_BYTES || offset > piece->bytes || piece->bytes - offset < bytes)
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
