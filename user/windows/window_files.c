/* SPDX-License-Identifier: MIT */
#include "windows/window_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/vec.h"
#include "event/event.h"
#include "writers/shared/grouping.h"
#include "writers/writer.h"

#define STAMP "dddd-dd-ddTddcddcdd" /* d: a digit, c: "-", or ":" in .col files and in those of older versions */
#define STAMP_BYTES (sizeof(STAMP) - 1)
#define FILES_MAX (1u << 20)
#define AHEAD_NS NS_PER_SEC /* a file system's own clock may be ahead by less */

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

static uint64_t end_of(const char *key)
{
	struct tm tm = {0};

	if (!strptime(key, WINDOW_PREFIX "%Y-%m-%dT%H-%M-%S", &tm) || tm.tm_year < 70)
		return 0;
	return (uint64_t)timegm(&tm) * NS_PER_SEC;
}

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

/* Opens the folder for writing: nobody else may rename, remove or replace what is in it. */
static int own_folder_open(const char *folder)
{
	int fd = window_folder_open(folder, O_RDONLY);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && (st.st_uid == geteuid() || !st.st_uid) &&
		       (st.st_mode & S_ISVTX ||
			(!(st.st_mode & S_IWOTH) && (!(st.st_mode & S_IWGRP) || st.st_gid == getegid())))))
		return fd;
	close(fd);
	return -WINDOW_OF_OTHERS;
}

const char *window_files_error(int err)
{
	return err == -WINDOW_OF_OTHERS ? "another user owns it, or may replace files in it" : strerror(-err);
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
	strcpy(file.key, name);
	file.key[WINDOW_FIRST_COLON] = file.key[WINDOW_FIRST_COLON + 3] = '-';
	file.end_ns = end_of(file.key);
	file.bytes = (uint64_t)st.st_blocks * 512; /* the space that removing it frees */
	file.changed_ns = clock_ns_of(&st.st_mtim);
	file.is_own = st.st_uid == geteuid();
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

#define WINDOW_INDEX "index.html"
#define SAME_SECOND_MAX 99 /* most windows with one stamp: they ended in the same second, or the clock was set back */
#define NAME_BYTES WINDOW_NAME_BYTES
#define OPEN_NS (10 * NS_PER_SEC) /* longest wait for the folder's file system */
#define UNFINISHED_NS (600 * NS_PER_SEC) /* no writer takes this long for a window */

static void window_name(char *name, uint64_t end_realtime_ns, unsigned number)
{
	time_t seconds = (time_t)(end_realtime_ns / NS_PER_SEC);
	char stamp[32] = "";
	struct tm utc;

	if (gmtime_r(&seconds, &utc))
		strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H-%M-%S", &utc);
	if (number > 1)
		snprintf(name, NAME_BYTES, WINDOW_PREFIX "%s_%u", stamp, number);
	else
		snprintf(name, NAME_BYTES, WINDOW_PREFIX "%s", stamp);
}

/* gProfiler's scripts look for its names; elsewhere a colon is in the way of scp, tar and other systems. */
static const char *name_for(char *ours, const struct writer *writer, const char *name)
{
	snprintf(ours, NAME_BYTES, "%s", name);
	if (!strcmp(writer->name, "col"))
		ours[WINDOW_FIRST_COLON] = ours[WINDOW_FIRST_COLON + 3] = ':';
	return ours;
}

/* `event` is what event_part() makes. */
static void link_name(char *name, const struct writer *writer, const char *event)
{
	size_t len;
	const char *extension = writer_extension(writer, &len);

	snprintf(name, NAME_BYTES, "last_%s%s.%.*s", !strcmp(writer->name, "flamegraph") ? "flamegraph" : "profile",
		 event, (int)len, extension);
}

/* Formats the event's part of a file name, before the extension: "" for the first event, ".page-faults" for another. */
static void event_part(char *part, const struct profile *profile, const struct writer_options *style)
{
	BUF(name);

	part[0] = '\0';
	if (!style->event)
		return;
	writer_event_part(writer_event(profile, style), &name);
	snprintf(part, NAME_BYTES / 2, ".%s", name.data);
}

/* True for ".profile_….col.duet-0123ab", as base/io.c names a file that is not complete yet. */
static bool is_unfinished(const char *name)
{
	const char *end = strstr(name, ".duet-");
	char window[NAME_BYTES];

	if (name[0] != '.' || !end || end - name > NAME_BYTES)
		return false;
	snprintf(window, sizeof(window), "%.*s", (int)(end - name - 1), name + 1);
	return window_list_named(window) || !strcmp(window, WINDOW_INDEX);
}

/* ---- rotation ---- */

/* In a folder like /tmp, others may have given their files such names. */
static void keep_own(struct window_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->len; i++)
		if (list->items[i].is_own)
			list->items[kept++] = list->items[i];
	list->len = kept;
}

/* Returns true for files of the newest window, in any format. */
static bool is_newest(const struct window_file *file, const char *newest)
{
	size_t len = strlen(newest);

	return !strncmp(file->key, newest, len) && file->key[len] == '.';
}

static bool is_over(const struct window_files *limits, const struct window_file *file, uint64_t count, uint64_t bytes)
{
	return (limits->keep_age_ns && file->changed_ns + limits->keep_age_ns < clock_realtime_ns()) ||
	       (limits->keep_files && count > limits->keep_files) || (limits->keep_bytes && bytes > limits->keep_bytes);
}

/* Removes files over the limits from folder and list, oldest first, but none of the window `newest`. 0 or -errno. */
static int rotate(const struct window_files *limits, int dir, struct window_list *list, const char *newest)
{
	uint64_t count = list->len, bytes = 0;
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < list->len; i++)
		bytes += list->items[i].bytes;
	for (size_t i = 0; i < list->len; i++) {
		const struct window_file file = list->items[i];
		bool stays = is_newest(&file, newest) || !is_over(limits, &file, count, bytes);
		bool is_gone = !stays && (!unlinkat(dir, file.name, 0) || errno == ENOENT);

		if (!stays && !is_gone)
			err = -errno;
		if (!is_gone)
			list->items[kept++] = file;
		count -= !stays;
		bytes -= stays ? 0 : file.bytes;
	}
	list->len = kept;
	return err;
}

/* ---- index.html ---- */

#define INDEX_MARK "<!-- duet: windows -->\n" /* the first line */
#define WINDOWS_MAX 10080 /* a week of minutes; older ones are not listed */

static const char index_head[] = INDEX_MARK
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"color-scheme\" content=\"light dark\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<meta http-equiv=\"refresh\" content=\"60\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	"<style>\nbody { font: 14px/20px system-ui, sans-serif; margin: 12px; }\nh1 { font-size: 18px; }\n"
	"td, th { text-align: left; padding: 1px 16px 1px 0; }\ntd:last-child { text-align: right; }\n"
	"th { padding-top: 12px; }\ncode { overflow-wrap: anywhere; }\n</style>\n";

/* False for what is not there, and for what has another first line. */
static bool is_foreign(int dir)
{
	char start[sizeof(INDEX_MARK) - 1];
	IO_FD(fd) = openat(dir, WINDOW_INDEX, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return errno != ENOENT;
	return read(fd, start, sizeof(start)) != sizeof(start) || memcmp(start, INDEX_MARK, sizeof(start));
}

static void put(FILE *out, const char *text)
{
	BUF(line);
	BUF(html);

	text_add_line(&line, text);
	text_add_html(&html, line.data);
	fputs(html.data, out);
}

static void put_head(FILE *out, const char *folder)
{
	struct utsname host;

	fputs(index_head, out);
	fputs("<title>Windows of ", out);
	put(out, uname(&host) ? "this host" : host.nodename);
	fputs("</title>\n</head>\n<body>\n<h1>Windows of ", out);
	put(out, uname(&host) ? "this host" : host.nodename);
	fputs("</h1>\n<p>Times are UTC. One page of several windows in the format duet:<br>\n"
	      "<code>duet convert --from 14:05 --to 14:20 ",
	      out);
	put(out, folder);
	fputs(" out.html</code></p>\n<table>\n", out);
}

/* The length of the part of the key that all files of a window share. */
static size_t window_len(const struct window_file *file)
{
	return strcspn(file->key, ".");
}

static bool is_same(const struct window_file *a, const struct window_file *b)
{
	size_t len = window_len(a);

	return len == window_len(b) && !memcmp(a->key, b->key, len);
}

/* The names end with the event and the format. "./", because what stands before a colon could be taken for a scheme. */
static uint64_t put_files(FILE *out, const struct window_file *files, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++) {
		fputs("<a href=\"./", out);
		put(out, files[i].name);
		fputs("\">", out);
		put(out, files[i].name + window_len(&files[i]) + 1);
		fputs("</a> ", out);
		bytes += files[i].bytes;
	}
	return bytes;
}

static void put_window(FILE *out, const struct window_file *files, size_t count, bool is_new_day)
{
	const char *stamp = files->key + strlen(WINDOW_PREFIX);
	uint64_t bytes;

	if (is_new_day)
		fprintf(out, "<tr><th colspan=\"3\">%.10s</th></tr>\n", stamp);
	fprintf(out, "<tr><td>until %.2s:%.2s:%.2s</td><td>", stamp + 11, stamp + 14, stamp + 17);
	bytes = put_files(out, files, count);
	fprintf(out, "</td><td>%" PRIu64 " kB</td></tr>\n", (bytes + 1023) / 1024);
}

static void put_windows(FILE *out, const struct window_list *list)
{
	const size_t day = strlen(WINDOW_PREFIX) + strlen("dddd-dd-dd");
	const char *before = "";
	size_t windows = 0;

	for (size_t end = list->len, start; end && windows < WINDOWS_MAX; end = start, windows++) {
		const struct window_file *files;

		for (start = end - 1; start && is_same(&list->items[start - 1], &list->items[end - 1]); start--)
			;
		files = &list->items[start];
		put_window(out, files, end - start, strncmp(before, files->key, day) != 0);
		before = files->key;
	}
	fputs("</table>\n", out);
	if (windows == WINDOWS_MAX)
		fputs("<p>Older windows are not listed.</p>\n", out);
	fputs("</body>\n</html>\n", out);
}

static int write_list(const struct window_files *files, int dir, const struct window_list *list)
{
	struct io_output output;
	int err = io_output_create(&output, dir, WINDOW_INDEX, &files->access);

	if (err < 0)
		return err;
	put_head(output.file, files->folder);
	put_windows(output.file, list);
	return io_output_end(&output, 0);
}

/* Removes old files, and writes the index anew, unless it is not duet's. Returns 0 or the first -errno. */
static int tidy(const struct window_files *files, int dir, const char *newest)
{
	struct window_list list = {0};
	int err, result = 0;

	err = window_list_read(dir, &list);
	if (!err) {
		keep_own(&list);
		err = rotate(files, dir, &list, newest);
		if (list.len && !is_foreign(dir))
			result = write_list(files, dir, &list);
	}
	vec_release(&list);
	return err ? err : result;
}

/* Moves the link to `target`. -EEXIST if something else has its name: a foreign file is never replaced. */
static int move_link(int dir, const struct writer *writer, const char *event, const char *target)
{
	char link[NAME_BYTES], temporary[NAME_BYTES + 32];
	struct stat st;
	int err;

	link_name(link, writer, event);
	snprintf(temporary, sizeof(temporary), ".%s.duet-%d", link, (int)getpid());
	if (!fstatat(dir, link, &st, AT_SYMLINK_NOFOLLOW) && !S_ISLNK(st.st_mode))
		return -EEXIST;
	if (!symlinkat(target, dir, temporary) && !renameat(dir, temporary, dir, link))
		return 0;
	err = -errno;
	unlinkat(dir, temporary, 0);
	return err;
}

static int write_format(const struct window_files *files, int dir, const struct profile *profile,
			const struct writer_options *style, const struct writer *writer, const char *name)
{
	struct io_output output;
	size_t extension_len;
	const char *extension = writer_extension(writer, &extension_len);
	char event[NAME_BYTES], ours[NAME_BYTES];
	BUF(file);
	int err;

	event_part(event, profile, style);
	buf_printf(&file, "%s%s.%.*s", name_for(ours, writer, name), event, (int)extension_len, extension);
	err = file.failed ? -ENOMEM : io_output_create(&output, dir, file.data, &files->access);
	if (!err)
		err = io_output_end(&output, grouping_write(writer, profile, style, output.file));
	return err ? err : move_link(dir, writer, event, file.data);
}

/* Writes one file, or one for each event. Returns 0 or the first error. */
static int write_events(const struct window_files *files, int dir, const struct profile *profile,
			const struct writer_options *style, const struct writer *writer, const char *name)
{
	size_t count = writer->has_all_events || !profile->events.len ? 1 : profile->events.len;
	struct writer_options ours = *style;
	int err = 0, result;

	for (size_t i = 0; i < count; i++) {
		ours.event = (uint32_t)i;
		result = write_format(files, dir, profile, &ours, writer, name);
		err = err ? err : result;
	}
	return err;
}

/* Returns true if no format has a file of this name: older windows are never overwritten, whatever the clock does. */
static bool is_free(int dir, const char *name)
{
	bool is_free = true;
	char ours[NAME_BYTES];
	BUF(file);
	struct stat st;
	size_t len;

	for (size_t i = 0; is_free && writers[i]; i++) {
		const char *extension = writer_extension(writers[i], &len);

		buf_clear(&file);
		buf_printf(&file, "%s.%.*s", name_for(ours, writers[i], name), (int)len, extension);
		is_free = fstatat(dir, file.data, &st, AT_SYMLINK_NOFOLLOW) < 0;
	}
	return is_free;
}

int window_files_write(const struct window_files *files, const struct profile *profile,
		       const struct writer_options *style, const struct session_output *outputs, size_t count,
		       uint64_t end_realtime_ns)
{
	IO_FD(dir) = own_folder_open(files->folder);
	char name[NAME_BYTES];
	unsigned number = 1;
	int err = 0, result;

	if (dir < 0)
		return dir;
	window_name(name, end_realtime_ns, number);
	while (!is_free(dir, name) && number < SAME_SECOND_MAX)
		window_name(name, end_realtime_ns, ++number);
	for (size_t i = 0; i < count; i++) {
		result = write_events(files, dir, profile, style, outputs[i].writer, name);
		err = err ? err : result;
	}
	result = tidy(files, dir, name);
	return err ? err : result;
}

/* Removes files that a killed writer has left. Younger ones may still be in progress. */
static void remove_unfinished(int folder)
{
	uint64_t now_ns = clock_realtime_ns();
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir)))
		if (is_unfinished(entry->d_name) && !fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode) && st.st_uid == geteuid() && clock_ns_of(&st.st_mtim) + UNFINISHED_NS < now_ns)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

/* Lets the readers' group into the folder, if we own it. */
static int let_group_in(int dir, gid_t group)
{
	struct stat st;

	if (fstat(dir, &st) == 0 && st.st_uid == geteuid() &&
	    (fchown(dir, (uid_t)-1, group) < 0 || fchmod(dir, (st.st_mode & 07777) | 0050) < 0))
		return -errno;
	return 0;
}

static int make_folder(const char *folder, mode_t mode)
{
	struct out_path at;
	int err = out_path_open(&at, folder, true);

	if (err < 0)
		return err;
	if (at.found < 0 && mkdirat(at.dir, at.name, mode) < 0 && errno != EEXIST)
		err = -errno;
	out_path_release(&at);
	return err;
}

static int try_folder(const struct window_files *files)
{
	const struct io_access *access = &files->access;
	int err = make_folder(files->folder, access->is_private ? 0750 : 0755);
	IO_FD(dir) = err ? err : own_folder_open(files->folder);
	struct io_output output;

	if (dir < 0)
		return dir;
	if (access->is_private && access->group != IO_NO_GROUP)
		err = let_group_in(dir, access->group);
	if (!err)
		err = io_output_create(&output, dir, "writable", access); /* only its temporary file is created */
	if (err < 0)
		return err;
	io_output_discard(&output);
	remove_unfinished(dir);
	return 0;
}

/* A child tries the folder: whoever serves its file system may hold it up for ever. */
int window_files_open(const struct window_files *files)
{
	uint64_t until_ns = clock_monotonic_ns() + OPEN_NS;
	pid_t child = fork(), ended;
	int status;

	if (!child)
		_exit(-try_folder(files) & 0xff);
	if (child < 0)
		return -errno;
	while (!(ended = waitpid(child, &status, WNOHANG)) && clock_monotonic_ns() < signals_limit(until_ns))
		clock_sleep(NS_PER_MS);
	if (ended == child)
		return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
	kill(child, SIGKILL); /* it may not end */
	return -ETIMEDOUT;
}
