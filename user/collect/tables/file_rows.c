/* SPDX-License-Identifier: MIT */
#include "collect/tables/file_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "sym/debug_file.h"
#include "sym/elf_places.h"

/* ---- in the parser ---- */

static int rows_work(const struct helper_task *task, struct helper_answer *answer)
{
	struct duet_context_source context = {0};
	struct elf_identity identity;
	struct elf_reader reader;
	struct unwind_file file;
	int err = elf_identity_read_fd(&identity, task->fd);

	if (!err)
		err = unwind_file_read(&file, task->fd);
	if (err)
		return err;
	if (!elf_reader_open(&reader, task->fd)) {
		(void)elf_places_context(&reader, &context);
		elf_reader_close(&reader);
	}
	parts_add(&answer->text, &identity, sizeof(identity));
	parts_add(&answer->text, &context, sizeof(context));
	unwind_file_pack(&answer->text, &file);
	unwind_file_release(&file);
	return 0;
}

#define RANGE "%" PRIx64 " %" PRIx64

static int debug_work(const struct helper_task *task, struct helper_answer *answer)
{
	uint64_t code_start, code_end;
	struct unwind_rows rows;
	int err;

	if (sscanf(task->path, RANGE, &code_start, &code_end) != 2)
		return -EINVAL;
	err = unwind_file_read_debug(&rows, task->fd, code_start, code_end);
	if (err)
		return err;
	unwind_rows_pack(&answer->text, &rows);
	unwind_rows_release(&rows);
	return 0;
}

/* ---- in the loader ---- */

static int begin(struct file_rows *rows, const struct charge *charge)
{
	int fd = target_file_read(&rows->target, charge, 0);
	const struct helper_task task = {.work = rows_work, .charge = charge, .fd = fd, .path = "",
					 .origin = fd < 0 ? 0 : target_file_origin(&rows->target)};
	int err = fd < 0 ? fd : parser_begin(&rows->parser, &task);

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

static int take_rows(struct file_rows *rows, struct elf_identity *ret_identity, const struct buf *bytes)
{
	struct parts parts = {.at = bytes->data, .left = bytes->len};

	parts_read(&parts, ret_identity, sizeof(*ret_identity));
	parts_read(&parts, &rows->context, sizeof(rows->context));
	unwind_file_unpack(&parts, &rows->file);
	if (!parts.err && rows->context.place >= DUET_CONTEXT_PLACES)
		parts.err = -EBADMSG;
	return parts.err ? parts.err : elf_identity_check(ret_identity);
}

static bool take_debug_file(void *context, const struct charge *charge, const struct target_file *debug)
{
	struct file_rows *rows = context;
	char range[40];

	snprintf(range, sizeof(range), RANGE, rows->file.code_start, rows->file.code_end);
	return !parser_begin(&rows->parser, &(struct helper_task){debug_work, charge, debug->fd, range, 0,
								  target_file_origin(debug)});
}

/* Few files have functions that only .debug_frame describes, but all code of such a file was built in that way. */
static int merge_debug_rows(struct file_rows *rows, const struct buf *bytes)
{
	struct parts parts = {.at = bytes->data, .left = bytes->len};
	struct unwind_rows *own = &rows->file.rows, more;

	unwind_rows_unpack(&parts, &more, rows->file.code_start);
	if (!parts.err && more.rows.len)
		parts.err = unwind_rows_merge(own, &more);
	unwind_rows_release(&more);
	return parts.err;
}

static int await_rows(struct file_rows *rows, const struct charge *charge, uint64_t until_ns)
{
	struct elf_identity identity;
	struct helper_answer answer;
	int err = rows->is_read ? 0 : parser_await(&rows->parser, until_ns, &answer);

	if (rows->is_read || err == -EAGAIN)
		return err;
	if (!err)
		err = take_rows(rows, &identity, &answer.text);
	helper_answer_release(&answer);
	rows->is_read = true;
	rows->has_debug = !err && debug_file_find(&identity, charge, &rows->target, rows->path, take_debug_file, rows);
	return err;
}

/* The rows of the file itself are useful without those of its debug file. */
static int await_debug_rows(struct file_rows *rows, uint64_t until_ns)
{
	struct helper_answer answer;
	int err = rows->has_debug ? parser_await(&rows->parser, until_ns, &answer) : 0;

	if (!rows->has_debug || err == -EAGAIN)
		return err;
	if (!err)
		(void)merge_debug_rows(rows, &answer.text);
	helper_answer_release(&answer);
	rows->has_debug = false;
	return 0;
}

int file_rows_step(struct file_rows *rows, const struct charge *charge, uint64_t until_ns)
{
	int err = await_rows(rows, charge, until_ns);

	return err ? err : await_debug_rows(rows, until_ns);
}

void file_rows_end(struct file_rows *rows, struct unwind_file *ret)
{
	parser_end(&rows->parser);
	if (ret) {
		log_debug("%zu unwind rows of %s in %.1f ms", rows->file.rows.rows.len, rows->path,
			  (double)(clock_monotonic_ns() - rows->started_ns) / 1e6);
		*ret = rows->file;
	} else {
		unwind_file_release(&rows->file);
	}
	target_file_release(&rows->target);
	free(rows->path);
	*rows = (struct file_rows){.target.path_fd = -1, .target.fd = -1};
}
