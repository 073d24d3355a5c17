/* SPDX-License-Identifier: MIT */
#include "collect/tables/file_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "sym/debug_file.h"
#include "sym/elf_places.h"

static void find_context(struct file_rows *rows, int fd)
{
	struct elf_reader reader;

	if (elf_reader_open(&reader, fd) < 0)
		return;
	(void)elf_places_context(&reader, &rows->context);
	elf_reader_close(&reader);
}

static int begin(struct file_rows *rows, const struct charge *charge)
{
	int fd = target_file_read(&rows->target, charge, 0), err = fd < 0 ? fd : unwind_file_begin(&rows->reading, fd);

	if (!err)
		find_context(rows, fd);
	return err == -EAGAIN ? -EBUSY : err; /* another process has a lease on the file */
}

int file_rows_begin(struct file_rows *rows, const struct charge *charge, struct target_file *target, const char *path)
{
	int err;

	*rows = (struct file_rows){.target = *target, .path = strdup(path), .started_ns = clock_monotonic_ns()};
	err = rows->path ? begin(rows, charge) : -ENOMEM;
	if (err)
		file_rows_end(rows, NULL);
	return err;
}

static bool take_debug_frame(void *context, int fd)
{
	return !unwind_file_add_debug(context, fd);
}

/*
 * Continues with .debug_frame of the separate debug file. Few files have functions that only this section describes,
 * but all code of such a file was built in that way. Returns false if there is no such file.
 */
static bool add_debug_file(struct file_rows *rows, const struct charge *charge)
{
	struct elf_identity identity;

	rows->has_debug = true;
	return !elf_identity_read_fd(&identity, rows->target.fd) &&
	       debug_file_find(&identity, charge, &rows->target, rows->path, take_debug_frame, rows->reading);
}

int file_rows_step(struct file_rows *rows, const struct charge *charge, uint64_t until_ns)
{
	int err = unwind_file_step(rows->reading, until_ns);

	if (!err && !rows->has_debug && add_debug_file(rows, charge))
		err = unwind_file_step(rows->reading, until_ns);
	return err;
}

void file_rows_end(struct file_rows *rows, struct unwind_file *ret)
{
	unwind_file_end(rows->reading, ret);
	if (ret)
		log_debug("%zu unwind rows of %s in %.1f ms", ret->rows.rows.len, rows->path,
			  (double)(clock_monotonic_ns() - rows->started_ns) / 1e6);
	target_file_release(&rows->target);
	free(rows->path);
	*rows = (struct file_rows){.target.path_fd = -1, .target.fd = -1};
}
