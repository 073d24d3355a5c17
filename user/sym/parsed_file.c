/* SPDX-License-Identifier: MIT */
#include "sym/parsed_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "proc/helper.h"

#define NEAREST_BYTES 256 /* of a name that is suggested */
#define OTHERS_BYTES 65536 /* of some names of probes */

static int parse(const struct charge *charge, const struct target_file *file,
		 int (*work)(const struct helper_task *task, struct helper_answer *answer), const char *name,
		 uint64_t number, struct helper_answer *answer)
{
	return parser_run(&(struct helper_task){work, charge, file->fd, name, number, target_file_origin(file)},
			  answer);
}

static int symbols_work(const struct helper_task *task, struct helper_answer *answer)
{
	struct elf_file file;
	int err = elf_file_read(&file, task->fd);

	if (err)
		return err;
	if (!file.has_symtab)
		mini_debug_apply(&file, task->fd);
	elf_file_pack(&answer->text, &file);
	elf_file_release(&file);
	return 0;
}

int parsed_symbols(struct elf_file *ret, const struct charge *charge, const struct target_file *file)
{
	struct helper_answer answer;
	int err = parse(charge, file, symbols_work, "", 0, &answer);

	if (!err)
		err = elf_file_unpack(ret, &answer.text);
	helper_answer_release(&answer);
	return err;
}

static int identity_work(const struct helper_task *task, struct helper_answer *answer)
{
	struct elf_identity identity;
	int err = elf_identity_read_fd(&identity, task->fd);

	if (!err)
		parts_add(&answer->text, &identity, sizeof(identity));
	return err;
}

int parsed_identity(struct elf_identity *ret, const struct charge *charge, const struct target_file *file)
{
	struct helper_answer answer;
	int err = parse(charge, file, identity_work, "", 0, &answer);
	struct parts parts = {.at = answer.text.data, .left = answer.text.len, .err = err};

	parts_read(&parts, ret, sizeof(*ret));
	helper_answer_release(&answer);
	return parts.err ? parts.err : elf_identity_check(ret);
}

static int segments_work(const struct helper_task *task, struct helper_answer *answer)
{
	struct elf_segments segments = {0};
	struct elf_reader reader;
	GElf_Phdr ignored;
	int err = elf_reader_open(&reader, task->fd);

	if (err)
		return err;
	err = elf_reader_segments(&reader, &segments, &ignored);
	parts_add_vec(&answer->text, &segments);
	vec_release(&segments);
	elf_reader_close(&reader);
	return err;
}

int parsed_segments(struct elf_segments *ret, const struct charge *charge, const struct target_file *file)
{
	struct helper_answer answer;
	int err = parse(charge, file, segments_work, "", 0, &answer);
	struct parts parts = {.at = answer.text.data, .left = answer.text.len, .err = err};

	parts_read_vec(&parts, ret, ELF_READER_MAX_SEGMENTS);
	helper_answer_release(&answer);
	return parts.err;
}

/* ---- places ---- */

#define IS_FUNCTION 1
#define WANTS_NEAREST 2

/* Takes the next line, as a string. Returns what follows it, or NULL. */
static char *cut_line(char *text)
{
	char *end = strchr(text, '\n');

	if (end)
		*end++ = '\0';
	return end;
}

static int symbol_work(const struct helper_task *task, struct helper_answer *answer)
{
	char names[PATH_MAX], *name = names, *rest;
	struct elf_reader reader;
	uint64_t vaddr = 0;
	BUF(nearest);
	int err = elf_reader_open(&reader, task->fd), found = -ENOENT;

	if (err)
		return err;
	snprintf(names, sizeof(names), "%s", task->path);
	for (int i = 0; name && found < 0; i++, name = rest) {
		rest = cut_line(name);
		if (!elf_places_symbol(&reader, name, task->number & IS_FUNCTION, &vaddr,
				       task->number & WANTS_NEAREST ? &nearest : NULL))
			found = i;
	}
	elf_reader_close(&reader);
	parts_add(&answer->text, &found, sizeof(found));
	parts_add(&answer->text, &vaddr, sizeof(vaddr));
	parts_add(&answer->text, nearest.data, nearest.len);
	return 0;
}

int parsed_symbol(const struct charge *charge, const struct target_file *file, const char *names, bool is_function,
		  uint64_t *ret_vaddr, struct buf *nearest)
{
	struct helper_answer answer;
	struct buf similar;
	uint64_t vaddr;
	int found, err = parse(charge, file, symbol_work, names, is_function | (nearest ? WANTS_NEAREST : 0), &answer);
	struct parts parts = {.at = answer.text.data, .left = answer.text.len, .err = err};

	parts_read(&parts, &found, sizeof(found));
	parts_read(&parts, &vaddr, sizeof(vaddr));
	parts_read_text(&parts, &similar, NEAREST_BYTES);
	helper_answer_release(&answer);
	if (!parts.err && found >= 0)
		*ret_vaddr = vaddr;
	else if (!parts.err && nearest)
		text_add_line(nearest, similar.data);
	buf_release(&similar);
	return parts.err ? parts.err : found >= 0 ? found : -ENOENT;
}

static int probes_work(const struct helper_task *task, struct helper_answer *answer)
{
	char provider[PATH_MAX], *name;
	struct elf_probes probes = {0};
	struct elf_reader reader;
	BUF(others);
	int err = elf_reader_open(&reader, task->fd);

	if (err)
		return err;
	snprintf(provider, sizeof(provider), "%s", task->path);
	name = cut_line(provider);
	err = elf_places_probes(&reader, provider, name ? name : "", &probes, &others);
	elf_reader_close(&reader);
	parts_add_vec(&answer->text, &probes.list);
	parts_add(&answer->text, others.data, others.len);
	vec_release(&probes.list);
	return err < 0 ? err : 0;
}

int parsed_probes(const struct charge *charge, const struct target_file *file, const char *provider, const char *name,
		  struct elf_probes *ret, struct buf *others)
{
	struct helper_answer answer;
	struct parts parts;
	struct buf some;
	BUF(names);

	buf_printf(&names, "%s\n%s", provider, name);
	parts.err = parse(charge, file, probes_work, names.data, 0, &answer);
	parts.at = answer.text.data;
	parts.left = answer.text.len;
	parts_read_vec(&parts, &ret->list, ELF_PLACES_MAX_PROBES);
	parts_read_text(&parts, &some, OTHERS_BYTES);
	helper_answer_release(&answer);
	text_add_line(others, some.data);
	buf_release(&some);
	return parts.err ? parts.err : (int)ret->list.len;
}
