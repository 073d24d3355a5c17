/* SPDX-License-Identifier: MIT */
#include "windows/window_list.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/out_path.h"
#include "base/vec.h"
#include "event/event.h"
#include "writers/writer.h"

#define STAMP "dddd-dd-ddTddcddcdd" /* d: a digit, c: "-", or ":" in .col files and in those of older versions */
#define STAMP_BYTES (sizeof(STAMP) - 1)
#define FILES_MAX (1u << 20)
#define AHEAD_NS NS_PER_SEC /* a file system's own clock may be ahead by less */

/* ---- names ---- */

/* Returns the end of the event's part of a name; `text` itself if there is none. */
static const char *skip_event(const char *text)
{
	const char *dot = *text == '.' ? strchr(text + 1, '.') : NULL;
	char name[WINDOW_NAME_BYTES];

	if (!dot)
		return text;
	snprintf(name, sizeof(name), "%.*s", (int)(dot - text - 1), text + 1);
	return event_is_file_part(name) ? dot : text;
}

static bool is_extension(const char *text)
{
	for (size_t i = 0; writers[i]; i++) {
		size_t len;
		const char *extension = writer_extension(writers[i], &len);

		if (!strncmp(text, extension, len) && !text[len])
			return true;
	}
	return false;
}

static bool is_stamp(const char *text)
{
	for (size_t i = 0; i < STAMP_BYTES; i++)
		if (STAMP[i] == 'd'   ? !isdigit((unsigned char)text[i])
		    : STAMP[i] == 'c' ? text[i] != ':' && text[i] != '-'
				      : text[i] != STAMP[i])
			return false;
	return true;
}

bool window_list_named(const char *name)
{
	if (strncmp(name, WINDOW_PREFIX, strlen(WINDOW_PREFIX)) || !is_stamp(name + strlen(WINDOW_PREFIX)))
		return false;
	name += strlen(WINDOW_PREFIX) + STAMP_BYTES;
	if (*name == '_' && name[1] >= '1' && name[1] <= '9')
		name += 1 + strspn(name + 1, "0123456789");
	name = skip_event(name);
	return *name == '.' && is_extension(name + 1);
}

static void make_key(struct window_file *file)
{
	strcpy(file->key, file->name);
	file->key[WINDOW_FIRST_COLON] = file->key[WINDOW_FIRST_COLON + 3] = '-';
}

static uint64_t end_of(const char *key)
{
	struct tm tm = {0};

	if (!strptime(key, WINDOW_PREFIX "%Y-%m-%dT%H-%M-%S", &tm) || tm.tm_year < 70)
		return 0;
	return (uint64_t)timegm(&tm) * NS_PER_SEC;
}

/* ---- the folder ---- */

int window_folder_open(const char *folder, int flags)
{
	struct out_path at;
	int fd, err = out_path_open(&at, folder, true);

	if (err < 0)
		return err;
	fd = at.found < 0 ? -1 : openat(at.found, ".", flags | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = at.found < 0 ? -ENOENT : -errno;
	out_path_release(&at);
	return fd;
}

/* Compares by time, with which the keys begin; "_10" sorts after "_9". Those that are ahead are the oldest. */
static int compare_files(const void *a, const void *b)
{
	const struct window_file *x = a, *y = b;

	return x->is_ahead != y->is_ahead ? y->is_ahead - x->is_ahead : strverscmp(x->key, y->key);
}

static int add_file(int dir, const char *name, struct window_list *list)
{
	struct window_file file = {0};
	struct stat st;

	if (strlen(name) >= sizeof(file.name) || !window_list_named(name) || list->len >= FILES_MAX ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	strcpy(file.name, name);
	make_key(&file);
	file.end_ns = end_of(file.key);
	file.bytes = (uint64_t)st.st_blocks * 512; /* the space that removing it frees */
	file.changed_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	file.is_ahead = file.changed_ns > clock_realtime_ns() + AHEAD_NS;
	return vec_push(list, file);
}

int window_list_read(int dir, struct window_list *list)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!entries)
		return -errno;
	while (!err && (entry = readdir(entries)))
		err = add_file(dir, entry->d_name, list);
	closedir(entries);
	if (list->len)
		qsort(list->items, list->len, sizeof(*list->items), compare_files);
	return err;
}
