/* SPDX-License-Identifier: MIT */
#include "sym/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"

#define MAX_FUNCTION_BYTES 65536 /* limits the last function before a gap */
#define MAX_LINE 1024
#define READ_BYTES 65536
/* bytes; not fewer: on x86-64 the first addresses, of per-CPU data, are 0 even if the kernel hides nothing */
#define MAX_HEAD 65536

/* The letters are those of nm: small for local symbols, but both w and W for weak ones. */
static enum symbol_linkage symbol_linkage(char type)
{
	if (type == 'w' || type == 'W')
		return SYMBOL_WEAK;
	return type == 'T' ? SYMBOL_GLOBAL : SYMBOL_LOCAL;
}

/*
 * Adds the function in a line "address type name\t[module]". Changes the line: moves the module to just after the name.
 * Returns 0, also if the line has no function, or -errno.
 */
static int parse_line(struct symbol_table *table, char *line)
{
	char *rest, *name;
	uint64_t address = strtoull(line, &rest, 16);
	const char *module;
	size_t name_len, module_len;

	if (rest == line || rest[0] != ' ' || !rest[1] || !strchr("tTwW", rest[1]) || rest[2] != ' ')
		return 0;
	name = rest + 3;
	name_len = strcspn(name, "\t\n");
	if (!name_len || !address)
		return 0;
	module = name + name_len + strspn(name + name_len, "\t[\n");
	module_len = strcspn(module, "]\n");
	memmove(name + name_len + 1, module, module_len);
	name[name_len] = '\0';
	return symbol_table_add(table, address, 0, MAX_FUNCTION_BYTES, symbol_linkage(rest[1]), name,
				name_len + 1 + module_len);
}

static int read_table(struct symbol_table *table, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[MAX_LINE];
	int err = 0;

	if (!file)
		return -errno;
	setvbuf(file, NULL, _IOFBF, READ_BYTES); /* the file has 1024 bytes in a block, and several MB in all */
	while (!err && fgets(line, sizeof(line), file))
		err = parse_line(table, line);
	fclose(file);
	symbol_table_sort(table, SYMBOL_USUAL);
	return err || table->rows.len ? err : -EPERM;
}

int kallsyms_refresh(struct kallsyms *kallsyms, const char *path, uint64_t now_ns)
{
	struct symbol_table table = {0};
	int err;

	if (kallsyms->read_ns && now_ns - kallsyms->read_ns < KALLSYMS_MIN_AGE_NS)
		return 0;
	kallsyms->read_ns = now_ns;
	err = read_table(&table, path);
	symbol_table_release(err ? &table : &kallsyms->table);
	if (err)
		return err;
	kallsyms->table = table;
	return 1;
}

const char *kallsyms_find(const struct kallsyms *kallsyms, uint64_t address, const char **ret_module,
			  uint64_t *ret_start)
{
	const char *name = symbol_table_find(&kallsyms->table, address, ret_start);
	const char *module;

	if (!name)
		return NULL;
	module = name + strlen(name) + 1;
	*ret_module = module[0] ? module : "kernel";
	return name;
}

static bool any_address(const char *lines)
{
	while (*lines && !strtoull(lines, NULL, 16)) {
		lines += strcspn(lines, "\n");
		lines += *lines == '\n';
	}
	return *lines;
}

bool kallsyms_search(const char *path, const char *name, char *ret, size_t room)
{
	FILE *file = fopen(path, "re");
	size_t len = strlen(name), found_len = 0, bytes = 0;
	const char *found;
	bool is_found = false;
	char *line = NULL;

	while (file && !is_found && getline(&line, &bytes, file) > 0) {
		found = strchr(line, ' '); /* "ffffffff81000000 T name\t[module]" */
		found = found ? strchr(found + 1, ' ') : NULL;
		found_len = found ? strcspn(++found, "\t\n") : 0;
		is_found = found && found_len >= len && !strncmp(found, name, len) &&
			   (found_len == len || found[len] == '.');
		if (is_found)
			snprintf(ret, room, "%.*s", (int)found_len, found);
	}
	free(line);
	if (file)
		fclose(file);
	return is_found;
}

bool kallsyms_hidden(const char *path, struct buf *why)
{
	BUF(text);

	(void)io_read_file(AT_FDCWD, path, MAX_HEAD, &text); /* ends in -EFBIG, but the head is enough */
	if (any_address(text.data))
		return false;
	buf_clear(&text);
	/* The value 1 hides them from processes without CAP_SYSLOG. So does 0 if perf_event_paranoid is above 1. */
	if (io_read_file(AT_FDCWD, "/proc/sys/kernel/kptr_restrict", 16, &text) == 0 && atoi(text.data) > 1)
		buf_printf(why, "kernel.kptr_restrict is %d, which hides them from everybody: set it to 1",
			   atoi(text.data));
	else
		buf_add_str(why, "they are for CAP_SYSLOG only: run as root, or with that capability");
	return true;
}
