/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "windows/window_files.h"

#define NOON (1763640000ull * 1000 * MS) /* 2025-11-20T12:00:00 UTC */
#define WINDOW "profile_2025-11-20T12:00:0" /* .col */
#define DASHED "profile_2025-11-20T12-00-0" /* other formats */

static char folder[128];
static struct profile profile;

static int setup(void **state)
{
	strcpy(folder, "/tmp/duet-windows-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void make(const char *name)
{
	FILE *file = fopen(at(name), "w");

	assert_non_null(file);
	fputs("mine", file);
	fclose(file);
}

static bool is_there(const char *name)
{
	struct stat st;

	return lstat(at(name), &st) == 0;
}

static size_t count_files(void)
{
	DIR *dir = opendir(folder);
	size_t count = 0;

	for (struct dirent *entry; (entry = readdir(dir));)
		count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(dir);
	return count;
}

/* Windows of second `from` to `to`, in two formats; 0 or the last -errno. */
static int write_windows(struct window_files *files, int from, int to)
{
	const struct session_output outputs[] = {{NULL, writer_by_name("col")}, {NULL, writer_by_name("flamegraph")}};
	struct writer_options options;
	int err = 0;

	files->folder = folder;
	writer_options_default(&options);
	for (int i = from; i <= to; i++)
		err = window_files_write(files, &profile, &options, outputs, 2, NOON + (uint64_t)i * NS_PER_SEC);
	return err;
}

static void names_are_recognised(void **state)
{
	static const char *const ours[] = {
		WINDOW "1.col",	  WINDOW "1.html", WINDOW "1.collapsed", WINDOW "1.txt",
		WINDOW "1_2.col", DASHED "1.col",  DASHED "1_2.duet",
	};
	static const char *const others[] = {
		"last_profile.col",
		WINDOW "1",
		WINDOW "1.",
		WINDOW "1.cola",
		WINDOW "1.svg",
		WINDOW "1.col.gz",
		WINDOW "1_.col",
		WINDOW "1_0.col",
		WINDOW "1_2",
		"profile_.col",
		"profile_2025-11-20T12:00.col",
		"xprofile_2025-11-20T12:00:01.col",
		"profile_2025-11-20 12:00:01.col",
		"profile_",
		"",
		".col",
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		assert_true(window_list_named(ours[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(window_list_named(others[i]));
}

static void links_point_to_the_newest(void **state)
{
	struct window_files files = {0};
	char target[64] = "";

	assert_int_equal(write_windows(&files, 1, 3), 0);
	assert_int_equal(count_files(), 9);
	assert_true(readlink(at("last_profile.col"), target, sizeof(target) - 1) > 0);
	assert_string_equal(target, WINDOW "3.col");
	memset(target, 0, sizeof(target));
	assert_true(readlink(at("last_flamegraph.html"), target, sizeof(target) - 1) > 0);
	assert_string_equal(target, DASHED "3.html");
}

/* Two windows in a second, or a clock that was set back. */
static void older_windows_are_never_replaced(void **state)
{
	struct window_files files = {0};

	make(DASHED "1.txt");
	assert_int_equal(write_windows(&files, 1, 1), 0);
	assert_int_equal(write_windows(&files, 1, 1), 0);
	assert_true(is_there(WINDOW "1_2.col") && is_there(DASHED "1_2.html") && is_there(WINDOW "1_3.col"));
	assert_false(is_there(WINDOW "1.col"));
}

static void the_oldest_go_when_there_are_too_many(void **state)
{
	struct window_files files = {.keep_files = 4};

	assert_int_equal(write_windows(&files, 1, 5), 0);
	assert_int_equal(count_files(), 4 + 3);
	assert_true(is_there(WINDOW "4.col") && is_there(DASHED "5.html"));
	files.keep_files = 1; /* the newest window is whole, whatever the limit */
	assert_int_equal(write_windows(&files, 6, 6), 0);
	assert_int_equal(count_files(), 2 + 3);
	assert_true(is_there(WINDOW "6.col") && is_there(DASHED "6.html"));
}

/* The clock was set back by an hour after two windows, so their names are later than those of the next ones. */
static void windows_from_before_the_clock_was_set_back_are_the_oldest(void **state)
{
	struct window_files files = {.keep_files = 4};
	struct timespec times[2] = {{.tv_sec = time(NULL) + 3600}, {.tv_sec = time(NULL) + 3600}};
	static const char *const before[] = {WINDOW "8.col", DASHED "8.html", WINDOW "9.col", DASHED "9.html"};

	assert_int_equal(write_windows(&files, 8, 9), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(utimensat(AT_FDCWD, at(before[i]), times, 0), 0);
	assert_int_equal(write_windows(&files, 1, 1), 0);
	assert_true(is_there(WINDOW "1.col") && is_there(DASHED "9.html"));
	assert_false(is_there(WINDOW "8.col"));
	assert_int_equal(write_windows(&files, 2, 2), 0);
	assert_true(is_there(WINDOW "1.col") && is_there(DASHED "2.html"));
	assert_false(is_there(WINDOW "9.col") || is_there(DASHED "9.html"));
}

static void the_oldest_go_when_they_are_too_large(void **state)
{
	struct window_files files = {0};
	struct stat st;

	assert_int_equal(write_windows(&files, 1, 1), 0);
	assert_int_equal(stat(at(DASHED "1.html"), &st), 0);
	files.keep_bytes = (uint64_t)st.st_blocks * 512 * 5 / 2; /* two windows and a bit */
	assert_int_equal(write_windows(&files, 2, 5), 0);
	assert_false(is_there(DASHED "1.html") || is_there(DASHED "3.html"));
	assert_true(is_there(WINDOW "5.col") && is_there(DASHED "5.html") && is_there(DASHED "4.html"));
}

static void the_old_go(void **state)
{
	struct window_files files = {.keep_age_ns = 3600 * NS_PER_SEC};
	struct timespec times[2] = {{.tv_sec = time(NULL) - 3700}, {.tv_sec = time(NULL) - 3700}};

	assert_int_equal(write_windows(&files, 1, 2), 0);
	assert_int_equal(utimensat(AT_FDCWD, at(WINDOW "2.col"), times, 0), 0);
	assert_int_equal(write_windows(&files, 3, 3), 0);
	assert_false(is_there(WINDOW "2.col"));
	assert_true(is_there(WINDOW "1.col") && is_there(DASHED "2.html"));
}

/* Files with other names, files with similar names, and targets of links are not removed. */
static void what_is_not_ours_stays(void **state)
{
	struct window_files files = {.keep_files = 1, .keep_bytes = 1, .keep_age_ns = 1};

	make("profile_mine.col");
	make("profile_2025-11-20T11:00:00.svg");
	make("notes");
	make("precious");
	assert_int_equal(symlink("precious", at("profile_2025-11-20T11:00:00.col")), 0);
	assert_int_equal(mkdir(at("profile_2025-11-20T11:00:01.col"), 0755), 0);
	assert_int_equal(write_windows(&files, 1, 3), 0);
	assert_true(is_there("profile_mine.col") && is_there("profile_2025-11-20T11:00:00.svg") && is_there("notes"));
	assert_true(is_there("profile_2025-11-20T11:00:00.col") && is_there("precious"));
	assert_true(is_there("profile_2025-11-20T11:00:01.col"));
	assert_false(is_there(WINDOW "2.col"));
}

static void a_foreign_file_in_a_links_place_stays(void **state)
{
	struct window_files files = {0};
	struct stat st;

	make("last_profile.col");
	assert_int_equal(write_windows(&files, 1, 1), -EEXIST);
	assert_int_equal(lstat(at("last_profile.col"), &st), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 4);
	assert_true(is_there(WINDOW "1.col") && is_there(DASHED "1.html") && is_there("last_flamegraph.html"));
}

/* ---- index.html ---- */

static void read_index(struct buf *text)
{
	buf_init(text);
	assert_int_equal(io_read_file(AT_FDCWD, at("index.html"), 1 << 20, text), 0);
}

static void the_index_has_each_window(void **state)
{
	struct window_files files = {.keep_files = 4};
	const char *newer, *older;
	struct buf text;

	assert_int_equal(write_windows(&files, 1, 3), 0);
	read_index(&text);
	newer = strstr(text.data, "<td>until 12:00:03</td><td><a href=\"./" WINDOW "3.col\">col</a> "
				  "<a href=\"./" DASHED "3.html\">html</a> </td>");
	older = strstr(text.data, "./" DASHED "2.html");
	assert_true(newer && older && newer < older);
	assert_null(strstr(text.data, DASHED "1.html")); /* it has gone */
	newer = strstr(text.data, "2025-11-20</th>");
	assert_non_null(newer);
	assert_null(strstr(newer + strlen("2025-11-20</th>"), "</th>"));
	buf_release(&text);
}

/* The folder's name is the only text that is not made of letters that duet chose. */
static void the_index_is_escaped(void **state)
{
	char odd[128];
	struct window_files files = {0};
	struct buf text;

	strcpy(odd, at("<script>\"&\x1b"));
	assert_int_equal(mkdir(odd, 0755), 0);
	make("<script>\"&\x1b/" DASHED "1.<i>.html");
	strcpy(folder, odd);
	assert_int_equal(write_windows(&files, 1, 1), 0);
	read_index(&text);
	*strrchr(folder, '/') = '\0';
	assert_null(strstr(text.data, "<script>"));
	assert_null(strstr(text.data, "<i>"));
	assert_non_null(strstr(text.data, "&lt;script&gt;&quot;&amp;?"));
	buf_release(&text);
}

static void a_foreign_index_stays(void **state)
{
	struct window_files files = {0};
	struct buf text;

	make("index.html");
	assert_int_equal(write_windows(&files, 1, 1), 0);
	read_index(&text);
	assert_string_equal(text.data, "mine");
	buf_release(&text);
	assert_int_equal(unlink(at("index.html")), 0);
	make("target");
	assert_int_equal(symlink("target", at("index.html")), 0);
	assert_int_equal(write_windows(&files, 2, 2), 0);
	read_index(&text);
	assert_string_equal(text.data, "mine");
	buf_release(&text);
}

static void a_vanished_folder_is_an_error(void **state)
{
	struct window_files files = {.keep_files = 1};

	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(write_windows(&files, 1, 1), -ENOENT);
	assert_int_equal(window_files_open(&files), 0); /* at the start it is made */
	assert_int_equal(write_windows(&files, 1, 1), 0);
}

static void unfinished_files_of_the_past_go(void **state)
{
	static const char *const others[] = {".profile_2025-11-20T12:00:01.col.duet-00000b",
					     ".profile_x.col.duet-00000c", "profile.duet-1", ".duet-1"};
	struct timespec times[2] = {{.tv_sec = time(NULL) - 3700}, {.tv_sec = time(NULL) - 3700}};
	struct window_files files = {.folder = folder};

	make("." WINDOW "1.col.duet-00000a");
	assert_int_equal(utimensat(AT_FDCWD, at("." WINDOW "1.col.duet-00000a"), times, 0), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		make(others[i]);
		if (i) /* the first file may belong to a writer that is at work */
			assert_int_equal(utimensat(AT_FDCWD, at(others[i]), times, 0), 0);
	}
	assert_int_equal(window_files_open(&files), 0);
	assert_false(is_there("." WINDOW "1.col.duet-00000a"));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_true(is_there(others[i]));
}

/* Another user's link in a folder without the sticky bit that all may write to, where the kernel would follow it. */
static void a_link_of_another_user_is_a_trap(void **state)
{
	struct window_files files = {.access = {.is_private = true, .group = 54321}};
	char trap[128];
	struct stat st;

	if (geteuid())
		skip();
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(mkdir(at("roots"), 0700), 0);
	strcpy(trap, at("trap"));
	assert_int_equal(symlink("roots", trap), 0);
	assert_int_equal(lchown(trap, 65534, 65534), 0);
	files.folder = trap;
	assert_int_equal(window_files_open(&files), -EACCES);
	assert_int_equal(stat(at("roots"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_gid, getegid());
}

/* Whoever owns the folder, or may write to it, may replace what is in it. In one like /tmp his files stay. */
static void folders_of_others_are_refused(void **state)
{
	struct window_files files = {.folder = folder, .keep_files = 1};

	if (geteuid())
		skip();
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(window_files_open(&files), -WINDOW_OF_OTHERS);
	assert_int_equal(write_windows(&files, 1, 1), -WINDOW_OF_OTHERS);
	assert_int_equal(chmod(folder, 0775) | chown(folder, 0, 54321), 0);
	assert_int_equal(window_files_open(&files), -WINDOW_OF_OTHERS);
	assert_int_equal(chmod(folder, 0755) | chown(folder, 65534, 0), 0);
	assert_int_equal(window_files_open(&files), -WINDOW_OF_OTHERS);
	assert_int_equal(chown(folder, 0, 0) | chmod(folder, 01777), 0);
	assert_int_equal(window_files_open(&files), 0);
	make(WINDOW "1.col");
	assert_int_equal(chown(at(WINDOW "1.col"), 65534, 65534), 0);
	assert_int_equal(write_windows(&files, 2, 2), 0);
	assert_true(is_there(WINDOW "1.col"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_are_recognised, setup, teardown),
		cmocka_unit_test_setup_teardown(links_point_to_the_newest, setup, teardown),
		cmocka_unit_test_setup_teardown(older_windows_are_never_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_go_when_there_are_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(windows_from_before_the_clock_was_set_back_are_the_oldest, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_oldest_go_when_they_are_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(the_old_go, setup, teardown),
		cmocka_unit_test_setup_teardown(the_index_has_each_window, setup, teardown),
		cmocka_unit_test_setup_teardown(the_index_is_escaped, setup, teardown),
		cmocka_unit_test_setup_teardown(a_foreign_index_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_ours_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_foreign_file_in_a_links_place_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(unfinished_files_of_the_past_go, setup, teardown),
		cmocka_unit_test_setup_teardown(a_vanished_folder_is_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(a_link_of_another_user_is_a_trap, setup, teardown),
		cmocka_unit_test_setup_teardown(folders_of_others_are_refused, setup, teardown),
	};

	if (profile_init(&profile) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
