/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/signals.h"

static char folder[] = "/tmp/duet-io-XXXXXX";

static int enter_folder(void **state)
{
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
	return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static int count_files(void)
{
	DIR *dir = opendir(".");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static void assert_content(const char *path, const char *expected)
{
	struct buf buf;

	buf_init(&buf);
	assert_int_equal(io_read_file(AT_FDCWD, path, 1000, &buf), 0);
	assert_string_equal(buf.data, expected);
	buf_release(&buf);
}

static void write_content(const char *path, const char *text)
{
	struct io_output out;

	assert_int_equal(io_output_open(&out, path, NULL), 0);
	fputs(text, out.file);
	assert_int_equal(io_output_commit(&out), 0);
}

static void test_appears_at_commit(void **state)
{
	struct io_output out;
	struct stat stat_buf;
	mode_t mask = umask(027);

	write_content("out", "old");
	assert_int_equal(stat("out", &stat_buf), 0);
	assert_int_equal(stat_buf.st_mode & 0777, 0640);
	assert_int_equal(io_output_open(&out, "out", NULL), 0);
	assert_int_equal(count_files(), 2);
	fputs("new", out.file);
	fflush(out.file);
	assert_content("out", "old");
	assert_int_equal(io_output_commit(&out), 0);
	assert_content("out", "new");
	assert_int_equal(count_files(), 1);
	io_output_discard(&out);
	io_output_discard(NULL);
	unlink("out");
	umask(mask);
}

static void test_discard_leaves_the_old_file(void **state)
{
	struct io_output out;

	write_content("out", "old");
	assert_int_equal(io_output_open(&out, "out", NULL), 0);
	fputs("new", out.file);
	io_output_discard(&out);
	assert_content("out", "old");
	assert_int_equal(count_files(), 1);
	unlink("out");
}

static void test_symlink_is_followed(void **state)
{
	struct stat stat_buf;

	write_content("target", "old");
	assert_int_equal(symlink("target", "link"), 0);
	write_content("link", "new");
	assert_content("target", "new");
	assert_int_equal(lstat("link", &stat_buf), 0);
	assert_true(S_ISLNK(stat_buf.st_mode));
	unlink("link");
	unlink("target");
}

/* The output must not go to the file that the first 255 bytes of the name give. */
static void test_name_that_is_too_long(void **state)
{
	char name[302], path[400];
	struct io_output out;

	memset(name, 'a', 300);
	name[300] = '\0';
	assert_int_equal(io_output_open(&out, name, NULL), -ENAMETOOLONG);
	snprintf(path, sizeof(path), "%s/out", name);
	assert_int_equal(mkdir(name + 45, 0755), 0); /* 255 bytes */
	assert_int_equal(io_output_open(&out, path, NULL), -ENAMETOOLONG);
	assert_int_equal(rmdir(name + 45), 0);
	assert_int_equal(count_files(), 0);
}

/* In a folder that other users may write, a link must not lead to another place. */
static void test_create_replaces_a_symlink(void **state)
{
	char target[64], link[64];
	struct io_output out;
	struct stat st;

	snprintf(target, sizeof(target), "duet-create-%d", getpid());
	snprintf(link, sizeof(link), "duet-create-link-%d", getpid());
	write_content(target, "old");
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(io_output_create(&out, AT_FDCWD, link, NULL), 0);
	fputs("new", out.file);
	assert_int_equal(io_output_commit(&out), 0);
	assert_content(target, "old");
	assert_content(link, "new");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	unlink(link);
	unlink(target);
}

static void test_long_names(void **state)
{
	char name[256] = {0};

	memset(name, 'n', 255);
	write_content(name, "x");
	assert_content(name, "x");
	unlink(name);
}

static void test_unwritable_is_known_at_open(void **state)
{
	struct io_output out = {0};

	assert_int_equal(io_output_open(&out, "/nonexistent/out", NULL), -ENOENT);
	assert_int_equal(io_output_open(&out, "/proc/out", NULL), -ENOENT);
	assert_int_equal(io_output_open(&out, ".", NULL), -EISDIR);
	assert_int_equal(io_output_open(&out, "sub/", NULL), -EISDIR);
	assert_int_equal(io_output_open(&out, "", NULL), -ENOENT);
	assert_null(out.file);
}

/* More than the stream's buffer, so that the failing write is an early one whose reason stdio forgets. */
static void test_full_disk_is_reported(void **state)
{
	struct io_output out;

	assert_int_equal(io_output_open(&out, "/dev/full", NULL), 0);
	assert_null(out.temporary);
	for (int i = 0; i < 100000; i++)
		fputs("0123456789", out.file);
	assert_int_equal(io_output_commit(&out), -ENOSPC);
	assert_int_equal(io_output_open(&out, "/dev/full", NULL), 0);
	fputs("short", out.file);
	assert_int_equal(io_output_commit(&out), -ENOSPC);
	write_content("/dev/null", "gone");
}

/* `duet -f /dev/stdout >> log` must append, not replace the file that the shell opened. */
static void test_stdout_is_never_replaced(void **state)
{
	int saved = dup(STDOUT_FILENO);
	int fd = open("log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	struct io_output dash, device;

	fflush(stdout);
	assert_int_equal(io_write_all(fd, "before ", 7), 0);
	dup2(fd, STDOUT_FILENO);
	assert_int_equal(io_output_open(&dash, "-", NULL), 0);
	fputs("dash ", dash.file);
	assert_int_equal(io_output_commit(&dash), 0);
	assert_int_equal(io_output_open(&device, "/dev/stdout", NULL), 0);
	assert_null(device.temporary);
	fputs("device", device.file);
	assert_int_equal(io_output_commit(&device), 0);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	assert_content("log", "before dash device");
	unlink("log");
}

static void test_read_is_bounded(void **state)
{
	struct buf buf;

	write_content("file", "12345");
	buf_init(&buf);
	assert_int_equal(io_read_file(AT_FDCWD, "file", 5, &buf), 0);
	assert_int_equal(io_read_file(AT_FDCWD, "file", 4, &buf), -EFBIG);
	assert_string_equal(buf.data, "123451234");
	assert_int_equal(io_read_file(AT_FDCWD, "nothing", 4, &buf), -ENOENT);
	assert_int_equal(io_read_file(AT_FDCWD, ".", 4, &buf), -EISDIR);
	buf_clear(&buf);
	assert_int_equal(io_read_file(AT_FDCWD, "/dev/zero", 100000, &buf), -EFBIG);
	assert_int_equal(buf.len, 100000);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(io_read_file(AT_FDCWD, "fifo", 4, &buf), 0); /* does not wait for a writer */
	buf_release(&buf);
	unlink("fifo");
	unlink("file");
}

/* ---- other users ---- */

#define STRANGER 65534

static void as_stranger(int (*act)(void))
{
	int status;

	if (fork() == 0)
		_exit(setgid(STRANGER) || setuid(STRANGER) || act());
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

static int set_traps(void)
{
	return symlink("../victim", "sticky/file") | symlink("../sub", "sticky/folder") | mkfifo("sticky/pipe", 0666) |
	       mknod("sticky/theirs", S_IFREG | 0666, 0);
}

static int enter_sticky(void **state)
{
	static const char *const names[] = {"victim", "sub/victim"};

	if (geteuid())
		return 0;
	if (mkdir("sub", 0755) || mkdir("sticky", 0755) || chmod("sticky", 01777) || chmod(".", 0755))
		return -1;
	for (int i = 0; i < 2; i++)
		close(open(names[i], O_WRONLY | O_CREAT, 0600));
	return symlink("../victim", "sticky/own");
}

static int leave_sticky(void **state)
{
	static const char *const names[] = {"sticky/file", "sticky/folder", "sticky/pipe",  "sticky/own",
					    "victim",	   "sub/victim",    "sticky/theirs"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	rmdir("sub");
	rmdir("sticky");
	return 0;
}

/* Independent of fs.protected_symlinks. Another user's pipe would get the recording, or block the write for ever. */
static void test_traps_of_another_user(void **state)
{
	struct io_output out;
	int dir;

	if (geteuid())
		skip();
	as_stranger(set_traps);
	dir = open("sticky", O_PATH | O_DIRECTORY);
	assert_int_equal(io_output_open(&out, "sticky/file", NULL), -EACCES);
	assert_int_equal(io_output_open(&out, "sticky/folder/victim", NULL), -EACCES);
	assert_int_equal(io_output_open(&out, "sub/../sticky/folder/new", NULL), -EACCES);
	assert_int_equal(io_output_open(&out, "sticky/pipe", NULL), -EACCES);
	assert_content("victim", "");
	assert_int_equal(io_open_own("sticky/file", O_WRONLY, 0600), -EACCES);
	assert_int_equal(io_open_own("sticky/pipe", O_WRONLY, 0600), -EACCES);
	assert_int_equal(io_open_own("sticky/theirs", O_WRONLY | O_APPEND, 0600), -EACCES);
	assert_int_equal(io_output_create(&out, dir, "file", NULL), 0); /* replaces the link */
	io_output_discard(&out);
	close(dir);
	write_content("sticky/own", "ours");
	assert_content("victim", "ours");
}

static void assert_access(const struct io_access *access, mode_t mode, gid_t group)
{
	struct io_output out;
	struct stat st;

	assert_int_equal(io_output_open(&out, "victim", access), 0);
	assert_int_equal(io_output_commit(&out), 0);
	assert_int_equal(stat("victim", &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_gid, group);
}

/* Returns true if the file is the same after it was written. */
static bool is_kept(const char *path)
{
	const struct io_access in_place = {.group = IO_NO_GROUP, .in_place = true};
	struct stat before, after;
	struct io_output out;

	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(io_output_open(&out, path, &in_place), 0);
	io_output_cut(&out);
	fputs("new", out.file);
	assert_int_equal(io_output_commit(&out), 0);
	assert_content(path, "new");
	assert_int_equal(stat(path, &after), 0);
	return before.st_ino == after.st_ino && before.st_mode == after.st_mode && before.st_nlink == after.st_nlink;
}

/* In a folder of others a second name may be their link, and a file theirs: it is replaced. */
static void test_files_of_ours_are_kept(void **state)
{
	const struct io_access in_place = {.group = IO_NO_GROUP, .in_place = true};
	struct io_output out;

	if (geteuid())
		skip();
	write_content("victim", "old content");
	assert_int_equal(io_output_open(&out, "victim", &in_place), 0);
	io_output_discard(&out);
	assert_content("victim", "old content");
	assert_true(is_kept("victim"));
	assert_int_equal(link("victim", "sub/victim2"), 0);
	assert_true(is_kept("sub/victim2"));
	as_stranger(set_traps);
	unlink("sticky/file");
	assert_int_equal(link("victim", "sticky/file"), 0);
	write_content("victim", "old content");
	assert_false(is_kept("sticky/file"));
	assert_content("victim", "old content");
	assert_false(is_kept("sticky/theirs"));
	unlink("sub/victim2");
}

static void test_access(void **state)
{
	const struct io_access alone = {.is_private = true, .group = IO_NO_GROUP};
	const struct io_access readers = {.is_private = true, .group = STRANGER};
	mode_t mask = umask(022);

	if (geteuid())
		skip();
	assert_access(NULL, 0644, getegid());
	assert_access(&alone, 0600, getegid());
	assert_access(&readers, 0640, STRANGER);
	umask(077);
	assert_access(&readers, 0640, STRANGER);
	umask(mask);
}

/* ---- signals and limits ---- */

/* A process that writes a file, has a child that ends first, and gets the signal. Returns how it ended. */
static int status_after(int signo)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct io_output out;

		close(STDERR_FILENO);
		signals_open();
		if (io_output_open(&out, "out", NULL) < 0)
			_exit(1);
		if (!fork()) {
			raise(signo);
			_exit(0);
		}
		wait(&status);
		if (count_files() != 1)
			_exit(2);
		raise(signo);
		_exit(3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void test_signals_leave_no_file(void **state)
{
	sigset_t ending;

	signals_ending(&ending);
	for (int signo = 1; signo < NSIG; signo++) {
		if (sigismember(&ending, signo) != 1 && signo != SIGPIPE)
			continue;
		assert_int_equal(WTERMSIG(status_after(signo)), signo);
		assert_int_equal(count_files(), 0);
	}
}

static void test_limit_of_a_file_is_an_error(void **state)
{
	const struct rlimit limit = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
	pid_t child = fork();
	int status;

	if (!child) {
		struct io_output out;

		signals_open();
		setrlimit(RLIMIT_FSIZE, &limit);
		if (io_output_open(&out, "out", NULL) < 0)
			_exit(1);
		for (int i = 0; i < 2000; i++)
			fputc('a', out.file);
		_exit(io_output_commit(&out) == -EFBIG ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(count_files(), 0);
}

static int status_of_stdout(int terminal, const char *text)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct io_output out;

		dup2(terminal, STDOUT_FILENO);
		if (io_output_open(&out, "-", NULL) < 0)
			_exit(1);
		fputs(text, out.file);
		_exit(-io_output_commit(&out));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

/* A recording in a format that is no text may have any bytes. */
static void test_a_terminal_gets_text_alone(void **state)
{
	IO_FD(master) = posix_openpt(O_RDWR | O_NOCTTY);
	char shown[64] = "";
	IO_FD(terminal) = -1;

	assert_true(master >= 0 && !grantpt(master) && !unlockpt(master));
	terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	assert_int_equal(status_of_stdout(terminal, "a\033]0;b\007"), EILSEQ);
	assert_int_equal(status_of_stdout(terminal, "one\tline\n"), 0);
	assert_true(read(master, shown, sizeof(shown) - 1) > 0);
	assert_null(strchr(shown, 'a'));
}

static int make_memory(const char *text, off_t size, bool is_sealed)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	if (size)
		assert_int_equal(ftruncate(fd, size), 0);
	if (is_sealed)
		assert_int_equal(io_seal(fd), 0);
	return fd;
}

/* What may change under its reader, has no end, or is larger than what its sender has paid for. */
static void test_only_sealed_memory_is_taken(void **state)
{
	const struct {
		int fd;
		uint64_t most;
		int64_t want;
	} rows[] = {
		{make_memory("text", 0, true), 4, 4},
		{make_memory("", 0, true), 4, 0},
		{make_memory("text", 0, false), 4, -EPERM},
		{make_memory("longer", 0, true), 4, -EFBIG},
		{make_memory("text", 1 << 20, true), 1 << 20, -EFBIG},
		{make_memory("text", 1ll << 40, true), UINT64_MAX, -EFBIG},
		{open("/dev/zero", O_RDONLY), 4, -EPERM},
		{open("/", O_RDONLY), UINT64_MAX, -EPERM},
		{open("/etc/passwd", O_RDONLY), UINT64_MAX, -EPERM},
		{-1, 4, -EPERM},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int fd = rows[i].fd;

		assert_int_equal(io_sealed_bytes(fd, rows[i].most), rows[i].want);
		assert_true(rows[i].want < 0 || write(fd, "x", 1) < 0);
		io_close(&fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_appears_at_commit),
		cmocka_unit_test(test_discard_leaves_the_old_file),
		cmocka_unit_test(test_symlink_is_followed),
		cmocka_unit_test(test_name_that_is_too_long),
		cmocka_unit_test(test_create_replaces_a_symlink),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_unwritable_is_known_at_open),
		cmocka_unit_test(test_full_disk_is_reported),
		cmocka_unit_test(test_stdout_is_never_replaced),
		cmocka_unit_test(test_read_is_bounded),
		cmocka_unit_test(test_signals_leave_no_file),
		cmocka_unit_test(test_limit_of_a_file_is_an_error),
		cmocka_unit_test(test_a_terminal_gets_text_alone),
		cmocka_unit_test(test_only_sealed_memory_is_taken),
		cmocka_unit_test_setup_teardown(test_traps_of_another_user, enter_sticky, leave_sticky),
		cmocka_unit_test_setup_teardown(test_files_of_ours_are_kept, enter_sticky, leave_sticky),
		cmocka_unit_test_setup_teardown(test_access, enter_sticky, leave_sticky),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
