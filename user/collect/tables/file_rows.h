/* SPDX-License-Identifier: MIT */
/* The rows of a target's file and of its debug file, made by a parser while the loader does other work. */
#pragma once

#include "duet_context.h"
#include "proc/helper.h"
#include "sym/target_file.h"
#include "unwind/unwind_file.h"

struct file_rows {
	struct target_file target; /* owned */
	char *path; /* owned: the file's path in the process */
	struct parser parser; /* at work on the file, then on its debug file */
	struct unwind_file file;
	struct duet_context_source context; /* as elf_places_context() sets it; NOWHERE: the file has none */
	bool is_read; /* the file is */
	bool has_debug; /* its debug file is being read */
	uint64_t started_ns;
};

/* Takes over `target`, also after an error. Returns 0 or -errno, never -EAGAIN; call file_rows_end() after a 0. */
int file_rows_begin(struct file_rows *rows, const struct charge *charge, struct target_file *target, const char *path);
/* Waits until until_ns. Returns 0 when all rows are made, -EAGAIN before that, or another -errno. */
int file_rows_step(struct file_rows *rows, const struct charge *charge, uint64_t until_ns);
/* Releases everything. If the last step returned 0, `ret` gets the file; with `ret` NULL the file is released. */
void file_rows_end(struct file_rows *rows, struct unwind_file *ret);
