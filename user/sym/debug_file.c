/* SPDX-License-Identifier: MIT */
#include "sym/debug_file.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/buf.h"
#include "sym/parsed_file.h"

#define DEBUG_ROOT "/usr/lib/debug"
#define MAX_CRC_BYTES (64 << 20) /* large files have build ids */

struct search {
	const struct elf_identity *file;
	debug_file_take take;
	void *context;
	const struct charge *charge;
	const struct target_file *target;
};

static bool has_crc(int fd, uint32_t expected)
{
	unsigned char chunk[16384];
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t len = 1;

	while (at < MAX_CRC_BYTES && (len = pread(fd, chunk, sizeof(chunk), at)) > 0) {
		crc = crc32(crc, chunk, (uInt)len);
		at += len;
	}
	return !len && crc == expected;
}

/* A build id is more reliable than a checksum and costs less, so the CRC is used only for files without one. */
static bool belongs(const struct elf_identity *file, const struct charge *charge, const struct target_file *target)
{
	struct elf_identity debug;

	if (parsed_identity(&debug, charge, target) < 0)
		return false;
	if (file->build_id_len && debug.build_id_len)
		return file->build_id_len == debug.build_id_len &&
		       !memcmp(file->build_id, debug.build_id, file->build_id_len);
	return file->debuglink[0] && has_crc(target->fd, file->debuglink_crc);
}

/*
 * Returns true if, in our own root, the file belongs to us or to root. A user's own file system may show any owner for
 * its files, but such files are read by copy only. The caller must check that.
 */
static bool is_ours(const struct target_file *debug, pid_t root)
{
	return root == getpid() && (debug->st.st_uid == 0 || debug->st.st_uid == geteuid()) &&
	       !(debug->st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Returns true if search->take() took the file. */
static bool try_path(const struct search *search, pid_t root, const char *path)
{
	struct target_file debug;
	bool taken, is_same;
	int fd = -1;

	if (target_file_find(&debug, search->charge, root, path))
		return false;
	is_same = target_file_same_origin(search->target, &debug);
	if (is_same || is_ours(&debug, root))
		fd = target_file_read(&debug, search->charge, 0);
	taken = fd >= 0 && (is_same || !target_file_is_copy(&debug)) && belongs(search->file, search->charge, &debug) &&
		search->take(search->context, search->charge, &debug);
	target_file_release(&debug);
	return taken;
}

static bool try_build_id(const struct search *search, pid_t root)
{
	BUF(path);

	if (search->file->build_id_len < 2)
		return false;
	buf_printf(&path, DEBUG_ROOT "/.build-id/%02x/", search->file->build_id[0]);
	for (size_t i = 1; i < search->file->build_id_len; i++)
		buf_printf(&path, "%02x", search->file->build_id[i]);
	buf_add_str(&path, ".debug");
	return !path.failed && try_path(search, root, path.data);
}

/* Searches where gdb does: beside the file, in .debug beside it, in the debug root. */
static bool try_debuglink(const struct search *search, pid_t root, const char *path)
{
	static const char *const formats[] = {"%.*s%s", "%.*s.debug/%s", DEBUG_ROOT "%.*s%s"};
	const char *slash = strrchr(path, '/');
	bool taken = false;
	BUF(buf);

	if (!search->file->debuglink[0] || !slash)
		return false;
	for (size_t i = 0; !taken && i < sizeof(formats) / sizeof(*formats); i++) {
		buf_clear(&buf);
		buf_printf(&buf, formats[i], (int)(slash + 1 - path), path, search->file->debuglink);
		taken = !buf.failed && try_path(search, root, buf.data);
	}
	return taken;
}

bool debug_file_find(const struct elf_identity *file, const struct charge *charge, const struct target_file *target,
		     const char *path, debug_file_take take, void *context)
{
	struct search search = {file, take, context, charge, target};
	pid_t roots[] = {target->pid, getpid()};

	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++)
		if (try_build_id(&search, roots[i]) || try_debuglink(&search, roots[i], path))
			return true;
	return false;
}

struct wanted_symbol {
	const char *name;
	bool is_function;
	uint64_t *ret_vaddr;
};

static bool take_symbol(void *context, const struct charge *charge, const struct target_file *debug)
{
	const struct wanted_symbol *wanted = context;

	return parsed_symbol(charge, debug, wanted->name, wanted->is_function, wanted->ret_vaddr, NULL) >= 0;
}

bool debug_file_symbol(const struct charge *charge, const struct target_file *target, const char *path,
		       const char *name, bool is_function, uint64_t *ret_vaddr)
{
	struct wanted_symbol wanted = {name, is_function, ret_vaddr};
	struct elf_identity identity;

	return !parsed_identity(&identity, charge, target) &&
	       debug_file_find(&identity, charge, target, path, take_symbol, &wanted);
}

static bool take_symbols(void *context, const struct charge *charge, const struct target_file *target)
{
	struct elf_file *file = context, debug;
	struct symbol_table own = file->symbols;
	bool taken;

	if (parsed_symbols(&debug, charge, target))
		return false;
	taken = debug.has_symtab;
	if (taken) {
		file->symbols = debug.symbols;
		file->has_symtab = true;
		debug.symbols = own;
	}
	elf_file_release(&debug);
	return taken;
}

void debug_file_apply(struct elf_file *file, const struct charge *charge, const struct target_file *target,
		      const char *path)
{
	(void)debug_file_find(&file->identity, charge, target, path, take_symbols, file);
}
