/* SPDX-License-Identifier: MIT */
#include "windows/window_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/out_path.h"
#include "event/event.h"
#include "out/grouping.h"

#define PREFIX "profile_"
#define STAMP "dddd-dd-ddTdd:dd:dd" /* d: a digit */
#define STAMP_BYTES (sizeof(STAMP) - 1)
#define SAME_SECOND_MAX 99 /* most windows with one stamp: they ended in the same second, or the clock was set back */
#define NAME_BYTES 128
#define OPEN_NS (10 * NS_PER_SEC) /* longest wait for the folder's file system */
#define UNFINISHED_NS (600 * NS_PER_SEC) /* no writer takes this long for a window */

/* ---- the folder ---- */

/* Opens the folder by the rules of base/out_path.h: another user's link does not lead us elsewhere. */
static int open_by_rules(const char *folder, int flags)
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

/* Returns NULL with errno set on failure. */
static DIR *open_entries(const char *folder)
{
	int fd = open_by_rules(folder, O_RDONLY);

	if (fd >= 0)
		return fdopendir(fd);
	errno = -fd;
	return NULL;
}

/* ---- names ---- */

static void window_name(char *name, uint64_t end_realtime_ns, unsigned number)
{
	time_t seconds = (time_t)(end_realtime_ns / NS_PER_SEC);
	char stamp[32] = "";
	struct tm utc;

	if (gmtime_r(&seconds, &utc))
		strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	if (number > 1)
		snprintf(name, NAME_BYTES, PREFIX "%s_%u", stamp, number);
	else
		snprintf(name, NAME_BYTES, PREFIX "%s", stamp);
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
	struct buf name;

	part[0] = '\0';
	if (!style->event)
		return;
	buf_init(&name);
	writer_event_part(writer_event(profile, style), &name);
	snprintf(part, NAME_BYTES / 2, ".%s", name.data);
	buf_release(&name);
}

/* Returns the end of the event's part of a name; `text` itself if there is none. */
static const char *skip_event(const char *text)
{
	const char *dot = *text == '.' ? strchr(text + 1, '.') : NULL;
	char name[NAME_BYTES];

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
		if (STAMP[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != STAMP[i])
			return false;
	return true;
}

bool window_files_named(const char *name)
{
	if (strncmp(name, PREFIX, strlen(PREFIX)) || !is_stamp(name + strlen(PREFIX)))
		return false;
	name += strlen(PREFIX) + STAMP_BYTES;
	if (*name == '_' && name[1] >= '1' && name[1] <= '9')
		name += 1 + strspn(name + 1, "0123456789");
	name = skip_event(name);
	return *name == '.' && is_extension(name + 1);
}

/*
 * Returns true for a name such as ".profile_….col.duet-0123ab", which base/io.c gives to a file that is not complete
 * yet.
 */
static bool is_unfinished(const char *name)
{
	const char *end = strstr(name, ".duet-");
	char window[NAME_BYTES];

	if (name[0] != '.' || !end || end - name > NAME_BYTES)
		return false;
	snprintf(window, sizeof(window), "%.*s", (int)(end - name - 1), name + 1);
	return window_files_named(window);
}

/* ---- rotation ---- */

#define AHEAD_NS NS_PER_SEC /* a file system's own clock may be ahead by less */

struct window_file {
	char name[NAME_BYTES];
	uint64_t bytes;
	uint64_t changed_ns; /* CLOCK_REALTIME */
	bool is_ahead; /* changed later than now: before the clock was set back */
};

struct listing {
	struct vec(struct window_file) files;
};

/* Compares by time, with which the names begin; "_10" sorts after "_9". Those that are ahead are the oldest. */
static int compare_files(const void *a, const void *b)
{
	const struct window_file *x = a, *y = b;

	return x->is_ahead != y->is_ahead ? y->is_ahead - x->is_ahead : strverscmp(x->name, y->name);
}

static int list_file(int dir, const char *name, struct listing *listing)
{
	struct window_file file = {0};
	struct stat st;

	if (strlen(name) >= sizeof(file.name) || !window_files_named(name) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	strcpy(file.name, name);
	file.bytes = (uint64_t)st.st_blocks * 512; /* the space that removing it frees */
	file.changed_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	file.is_ahead = file.changed_ns > clock_realtime_ns() + AHEAD_NS;
	return vec_push(&listing->files, file);
}

static int list_files(DIR *dir, struct listing *listing)
{
	struct dirent *entry;
	int err = 0;

	while (!err && (entry = readdir(dir)))
		err = list_file(dirfd(dir), entry->d_name, listing);
	if (listing->files.len)
		qsort(listing->files.items, listing->files.len, sizeof(*listing->files.items), compare_files);
	return err;
}

/* Returns true for files of the newest window, in any format. */
static bool is_newest(const char *name, const char *newest)
{
	size_t len = strlen(newest);

	return !strncmp(name, newest, len) && name[len] == '.';
}

static int remove_over(const struct window_files *limits, int dir, const struct listing *listing, const char *newest)
{
	uint64_t now_ns = clock_realtime_ns(), count = listing->files.len, bytes = 0;
	int err = 0;

	for (size_t i = 0; i < listing->files.len; i++)
		bytes += listing->files.items[i].bytes;
	for (size_t i = 0; i < listing->files.len; i++) {
		const struct window_file *file = &listing->files.items[i];
		bool is_old = limits->keep_age_ns && file->changed_ns + limits->keep_age_ns < now_ns;

		if (is_newest(file->name, newest) || !(is_old || (limits->keep_files && count > limits->keep_files) ||
						       (limits->keep_bytes && bytes > limits->keep_bytes)))
			continue;
		if (unlinkat(dir, file->name, 0) < 0 && errno != ENOENT)
			err = -errno;
		count--;
		bytes -= file->bytes;
	}
	return err;
}

/* Removes files over the limits, oldest first, except those of the window named `newest`. Returns 0 or -errno. */
static int rotate(const struct window_files *files, const char *newest)
{
	struct listing listing = {0};
	DIR *dir;
	int err;

	if (!files->keep_files && !files->keep_age_ns && !files->keep_bytes)
		return 0;
	dir = open_entries(files->folder);
	if (!dir)
		return -errno;
	err = list_files(dir, &listing);
	if (!err)
		err = remove_over(files, dirfd(dir), &listing, newest);
	closedir(dir);
	vec_release(&listing.files);
	return err;
}

/* ---- one window ---- */

/*
 * Moves the link to `target`. Fails with -EEXIST if something other than a link has its name: a foreign file is never
 * replaced.
 */
static int move_link(const struct window_files *files, const struct writer *writer, const char *event,
		     const char *target)
{
	char link[NAME_BYTES], temporary[NAME_BYTES + 32];
	int dir = open_by_rules(files->folder, O_PATH);
	struct stat st;
	int err = 0;

	if (dir < 0)
		return dir;
	link_name(link, writer, event);
	snprintf(temporary, sizeof(temporary), ".%s.duet-%d", link, (int)getpid());
	if (!fstatat(dir, link, &st, AT_SYMLINK_NOFOLLOW) && !S_ISLNK(st.st_mode))
		err = -EEXIST;
	else if (symlinkat(target, dir, temporary) < 0)
		err = -errno;
	else if (renameat(dir, temporary, dir, link) < 0)
		err = -errno;
	if (err && err != -EEXIST)
		unlinkat(dir, temporary, 0);
	close(dir);
	return err;
}

static int write_format(const struct window_files *files, const struct profile *profile,
			const struct writer_options *style, const struct writer *writer, const char *name)
{
	struct io_output output;
	size_t extension_len;
	const char *extension = writer_extension(writer, &extension_len);
	struct buf path;
	size_t folder_len = strlen(files->folder) + 1;
	char event[NAME_BYTES];
	int err;

	event_part(event, profile, style);
	buf_init(&path);
	buf_printf(&path, "%s/%s%s.%.*s", files->folder, name, event, (int)extension_len, extension);
	err = path.failed ? -ENOMEM : io_output_create(&output, path.data, &files->access);
	if (err < 0)
		goto out;
	err = io_output_end(&output, grouping_write(writer, profile, style, output.file));
	if (!err)
		err = move_link(files, writer, event, path.data + folder_len);
out:
	buf_release(&path);
	return err;
}

/* Writes one file, or one for each event. Returns 0 or the first error. */
static int write_events(const struct window_files *files, const struct profile *profile,
			const struct writer_options *style, const struct writer *writer, const char *name)
{
	size_t count = writer->has_all_events || !profile->events.len ? 1 : profile->events.len;
	struct writer_options ours = *style;
	int err = 0, result;

	for (size_t i = 0; i < count; i++) {
		ours.event = (uint32_t)i;
		result = write_format(files, profile, &ours, writer, name);
		err = err ? err : result;
	}
	return err;
}

/* Returns true if no format has a file of this name: older windows are never overwritten, whatever the clock does. */
static bool is_free(const struct window_files *files, const char *name)
{
	bool is_free = true;
	struct buf path;
	struct stat st;
	size_t len;

	buf_init(&path);
	for (size_t i = 0; is_free && writers[i]; i++) {
		const char *extension = writer_extension(writers[i], &len);

		buf_clear(&path);
		buf_printf(&path, "%s/%s.%.*s", files->folder, name, (int)len, extension);
		is_free = lstat(path.data, &st) < 0;
	}
	buf_release(&path);
	return is_free;
}

int window_files_write(const struct window_files *files, const struct profile *profile,
		       const struct writer_options *style, const struct writer *const *formats, size_t count,
		       uint64_t end_realtime_ns)
{
	char name[NAME_BYTES];
	unsigned number = 1;
	int err = 0, result;

	window_name(name, end_realtime_ns, number);
	while (!is_free(files, name) && number < SAME_SECOND_MAX)
		window_name(name, end_realtime_ns, ++number);
	for (size_t i = 0; i < count; i++) {
		result = write_events(files, profile, style, formats[i], name);
		err = err ? err : result;
	}
	result = rotate(files, name);
	return err ? err : result;
}

/* Removes files that a killed writer has left. Younger ones may still be in progress. */
static void remove_unfinished(const struct window_files *files)
{
	uint64_t now_ns = clock_realtime_ns();
	DIR *dir = open_entries(files->folder);
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir)))
		if (is_unfinished(entry->d_name) && !fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode) && (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + UNFINISHED_NS < now_ns)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

/* Lets the readers' group into the folder, if we own it. */
static int let_group_in(const char *folder, gid_t group)
{
	int err = 0, fd = open_by_rules(folder, O_RDONLY);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	    (fchown(fd, (uid_t)-1, group) < 0 || fchmod(fd, (st.st_mode & 07777) | 0050) < 0))
		err = -errno;
	close(fd);
	return err;
}

static int open_folder(const struct window_files *files)
{
	const struct io_access *access = &files->access;

	if (mkdir(files->folder, access->is_private ? 0750 : 0755) < 0 && errno != EEXIST)
		return -errno;
	return access->is_private && access->group != IO_NO_GROUP ? let_group_in(files->folder, access->group) : 0;
}

static int try_folder(const struct window_files *files)
{
	struct io_output output;
	struct buf path;
	int err = open_folder(files);

	if (err < 0)
		return err;
	buf_init(&path);
	buf_printf(&path, "%s/writable", files->folder); /* only its temporary file is created */
	err = path.failed ? -ENOMEM : io_output_create(&output, path.data, &files->access);
	buf_release(&path);
	if (err < 0)
		return err;
	io_output_discard(&output);
	remove_unfinished(files);
	return 0;
}

/* A child tries the folder: whoever serves its file system may hold it up for ever. */
int window_files_open(const struct window_files *files)
{
	const struct timespec step = {.tv_nsec = NS_PER_MS};
	uint64_t until_ns = clock_monotonic_ns() + OPEN_NS;
	pid_t child = fork(), ended;
	int status;

	if (!child)
		_exit(-try_folder(files) & 0xff);
	if (child < 0)
		return -errno;
	while (!(ended = waitpid(child, &status, WNOHANG)) && clock_monotonic_ns() < until_ns)
		nanosleep(&step, NULL);
	if (ended == child)
		return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
	kill(child, SIGKILL); /* it may not end */
	return -ETIMEDOUT;
}
