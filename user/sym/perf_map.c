/* SPDX-License-Identifier: MIT */
#include "sym/perf_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "proc/helper.h"
#include "sym/target_file.h"

#define MAX_LINE_BYTES (64u << 10)

/* Adds a line "start size name". Both numbers are hexadecimal; the name extends to the end of the line. */
static int parse_line(struct perf_map *map, char *line)
{
	char *size_text, *name;
	uint64_t start = strtoull(line, &size_text, 16);
	uint64_t size = strtoull(size_text, &name, 16);

	if (size_text == line || name == size_text || *name != ' ' || !name[1] || !size)
		return 0;
	name++;
	return symbol_table_add(&map->table, start, size, 0, SYMBOL_GLOBAL, name, /* a JVM may have written it */
				text_join_surrogates(name, strlen(name)));
}

/* A last line without a newline may be incomplete, so it is left for the next time. */
static int parse_lines(struct perf_map *map, char *text, size_t len)
{
	char *end;
	int err;

	for (; (end = memchr(text, '\n', len)); text = end + 1) {
		*end = '\0';
		err = parse_line(map, text);
		if (err < 0)
			return err;
		map->parsed_bytes += (uint64_t)(end + 1 - text);
		len -= (size_t)(end + 1 - text);
	}
	return len > MAX_LINE_BYTES ? -EFBIG : 0;
}

int perf_map_read(struct perf_map *map, int fd)
{
	struct stat st;
	ssize_t len;
	char *text;
	int err;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > PERF_MAP_MAX_BYTES)
		return -EFBIG;
	if ((uint64_t)st.st_size < map->parsed_bytes) {
		symbol_table_release(&map->table);
		*map = (struct perf_map){.read_ns = map->read_ns};
	}
	if ((uint64_t)st.st_size == map->parsed_bytes || map->is_full)
		return 0;
	text = malloc((size_t)st.st_size - map->parsed_bytes + 1);
	if (!text)
		return -ENOMEM;
	len = pread(fd, text, (size_t)st.st_size - map->parsed_bytes, (off_t)map->parsed_bytes);
	text[len > 0 ? len : 0] = '\0';
	err = len < 0 ? -errno : parse_lines(map, text, (size_t)len);
	map->is_full = err < 0;
	symbol_table_sort(&map->table, SYMBOL_NEWEST);
	free(text);
	return err;
}

static int parse_work(const struct helper_task *task, struct helper_answer *answer)
{
	struct perf_map map = {.parsed_bytes = task->number};
	uint64_t is_full;

	(void)perf_map_read(&map, task->fd); /* after an error, what could be read is in the table */
	is_full = map.is_full;
	parts_add(&answer->text, &map.parsed_bytes, sizeof(map.parsed_bytes));
	parts_add(&answer->text, &is_full, sizeof(is_full));
	symbol_table_pack(&answer->text, &map.table);
	symbol_table_release(&map.table);
	return 0;
}

/* Adds the names that a parser finds from the byte `from` on. If it fails, no more is read, as of a damaged file. */
static void parse(struct perf_map *map, const struct charge *charge, const struct target_file *file, off_t from)
{
	const struct helper_task task = {
		parse_work, charge, file->fd, "", (uint64_t)from, target_file_origin(file)};
	struct helper_answer answer;
	struct parts parts = {.err = parser_run(&task, &answer)};
	struct symbol_table more;
	uint64_t parsed, is_full;

	parts.at = answer.text.data;
	parts.left = answer.text.len;
	parts_read(&parts, &parsed, sizeof(parsed));
	parts_read(&parts, &is_full, sizeof(is_full));
	symbol_table_unpack(&parts, &more);
	helper_answer_release(&answer);
	if (!parts.err)
		parts.err = symbol_table_add_all(&map->table, &more);
	symbol_table_release(&more);
	symbol_table_sort(&map->table, SYMBOL_NEWEST);
	map->is_full = parts.err || is_full;
	map->parsed_bytes = parts.err ? map->parsed_bytes : parsed;
}

static void read_again(struct perf_map *map, const struct charge *charge, const struct process *process)
{
	struct target_file file;
	char path[64];
	off_t from;
	uid_t owner;
	int fd = -1;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", process->ns_pid);
	if (target_file_find(&file, charge, process->pid, path))
		return;
	/* Anyone can write to /tmp. Only files of the process's user, root and ours may name its code. */
	owner = file.st.st_uid;
	if (file.st.st_size < (off_t)map->parsed_bytes) { /* it has become shorter */
		symbol_table_release(&map->table);
		*map = (struct perf_map){.read_ns = map->read_ns};
	}
	from = (off_t)map->parsed_bytes;
	if (!map->is_full && file.st.st_size != from && (!owner || owner == process->uid || owner == geteuid()))
		fd = target_file_read(&file, charge, from);
	if (fd >= 0)
		parse(map, charge, &file, from);
	target_file_release(&file);
}

static void refresh(struct perf_map *map, const struct process *process)
{
	uint64_t now = clock_monotonic_ns();
	struct charge charge;

	if (process->exited || (map->read_ns && now - map->read_ns < NS_PER_SEC) || !charge_begin(&charge, process))
		return;
	map->read_ns = now;
	read_again(map, &charge, process);
	(void)charge_end(&charge);
}

const char *perf_map_find(struct perf_map *map, const struct process *process, uint64_t address)
{
	const char *name = symbol_table_find(&map->table, address, NULL);

	if (name)
		return name;
	refresh(map, process);
	return symbol_table_find(&map->table, address, NULL);
}
