/* SPDX-License-Identifier: MIT */
#include "windows/window_index.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "windows/window_files.h"
#include "windows/window_list.h"

#define MARK "<!-- duet: windows -->\n" /* the first line */
#define WINDOWS_MAX 10080 /* a week of minutes; older ones are not listed */

static const char head[] =
	MARK "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
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
	char start[sizeof(MARK) - 1];
	int fd = openat(dir, WINDOW_INDEX, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	bool is_ours;

	if (fd < 0)
		return errno != ENOENT;
	is_ours = read(fd, start, sizeof(start)) == sizeof(start) && !memcmp(start, MARK, sizeof(start));
	close(fd);
	return !is_ours;
}

static void put(FILE *out, const char *text)
{
	struct buf line, html;

	buf_init(&line);
	buf_init(&html);
	text_add_line(&line, text);
	text_add_html(&html, line.data);
	fputs(html.data, out);
	buf_release(&html);
	buf_release(&line);
}

static void put_head(FILE *out, const char *folder)
{
	struct utsname host;

	fputs(head, out);
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

static int write_list(const struct window_files *files, const struct window_list *list)
{
	struct io_output output;
	struct buf path;
	int err;

	buf_init(&path);
	buf_printf(&path, "%s/" WINDOW_INDEX, files->folder);
	err = path.failed ? -ENOMEM : io_output_create(&output, path.data, &files->access);
	buf_release(&path);
	if (err < 0)
		return err;
	put_head(output.file, files->folder);
	put_windows(output.file, list);
	return io_output_end(&output, 0);
}

int window_index_write(const struct window_files *files)
{
	struct window_list list = {0};
	int dir = window_folder_open(files->folder, O_RDONLY), err;

	if (dir < 0)
		return dir;
	err = is_foreign(dir) ? 0 : window_list_read(dir, &list);
	if (!err && list.len)
		err = write_list(files, &list);
	close(dir);
	vec_release(&list);
	return err;
}
