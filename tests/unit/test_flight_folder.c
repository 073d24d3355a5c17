/* SPDX-License-Identifier: MIT */
/* The folder for the files of a JVM's flight recorder, whose user does what he likes with it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "jvms/flight_recording.h"
#include "proc/process.h"

#define NOBODY 65534

static pid_t process;
static uint64_t start_ticks;
static struct flight_folder folder;
static char file[128], settings[128];
static int to;

static uid_t its_user(void)
{
	return geteuid() == 0 ? NOBODY : geteuid();
}

/* A process of another user if this one is root's. */
static int set_up(void **state)
{
	process = fork();
	if (!process) {
		if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
			_exit(1);
		for (;;)
			pause();
	}
	usleep(50000); /* it changes its user */
	to = memfd_create("to", MFD_CLOEXEC);
	assert_int_equal(process_read_start_ticks(process, &start_ticks), 0);
	assert_int_equal(flight_folder_open(&folder, process, start_ticks, "<settings/>"), 0);
	snprintf(file, sizeof(file), "%s/" FLIGHT_FILE, folder.path);
	snprintf(settings, sizeof(settings), "%s/" FLIGHT_SETTINGS, folder.path);
	return 0;
}

static int tear_down(void **state)
{
	char path[sizeof(folder.path)];

	snprintf(path, sizeof(path), "%s", folder.path);
	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
	flight_folder_release(&folder);
	close(to);
	return access(path, F_OK) == 0;
}

static void write_file(const char *text, uid_t owner)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0644);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchown(fd, owner, (gid_t)-1), 0);
	close(fd);
}

static void has_text(const char *want)
{
	char text[64] = "";

	assert_int_equal(pread(to, text, sizeof(text) - 1, 0), strlen(want));
	assert_string_equal(text, want);
}

static void taken_and_emptied(void **state)
{
	struct stat st;

	assert_int_equal(stat(folder.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(st.st_uid, its_user());
	assert_int_equal(stat(settings, &st), 0);
	assert_int_equal(st.st_uid, its_user());
	assert_int_equal(flight_folder_take(&folder, to), -ENODATA);
	write_file("", its_user());
	assert_int_equal(flight_folder_take(&folder, to), -ENODATA);
	write_file("first", its_user());
	assert_int_equal(flight_folder_take(&folder, to), 0);
	has_text("first");
	write_file("second", its_user()); /* appended, as the JVM does */
	kill(process, SIGKILL);
	usleep(50000);
	assert_int_equal(flight_folder_take(&folder, to), 0);
	has_text("firstsecond");
}

/* A link, a pipe and a file of somebody else are not read. */
static void nothing_else_is_read(void **state)
{
	assert_int_equal(symlink("/etc/hostname", file), 0);
	assert_true(flight_folder_take(&folder, to) < 0);
	unlink(file);
	assert_int_equal(mkfifo(file, 0666), 0);
	assert_int_equal(chown(file, its_user(), (gid_t)-1), 0);
	assert_true(flight_folder_take(&folder, to) < 0);
	unlink(file);
	write_file("with a hole", its_user());
	assert_int_equal(truncate(file, 1ll << 40), 0);
	assert_int_equal(flight_folder_take(&folder, to), -EFBIG);
	unlink(file);
	if (geteuid() == 0) {
		write_file("another's", 0);
		assert_true(flight_folder_take(&folder, to) < 0);
	}
	has_text("");
}

/* As its user may: a child that was killed has left it. */
static void remove_folder(void)
{
	assert_int_equal(unlink(file), 0);
	assert_int_equal(unlink(settings), 0);
	assert_int_equal(rmdir(folder.path), 0);
}

static uint64_t taken_in_ns(int want)
{
	uint64_t begun_ns = clock_monotonic_ns();

	assert_int_equal(flight_folder_take(&folder, to), want);
	return clock_monotonic_ns() - begun_ns;
}

/* Nobody waits for a child that its user has stopped longer than for any answer, or than a second after a signal. */
static void nobody_waits_for_a_stopped_child(void **state)
{
	sigset_t term;

	write_file("first", its_user());
	kill(folder.child.pid, SIGSTOP);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	kill(getpid(), SIGTERM);
	assert_true(taken_in_ns(-EINTR) < 2 * NS_PER_SEC);
	assert_int_equal(sigwaitinfo(&term, NULL), SIGTERM);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	remove_folder();
}

static void progress_is_watched(void **state)
{
	write_file("first", its_user());
	kill(folder.child.pid, SIGSTOP);
	assert_true(taken_in_ns(-ETIMEDOUT) < 3 * USER_CHILD_MS * NS_PER_MS);
	remove_folder();
}

/* In pieces, each of which is waited for. */
static void large_files_are_taken(void **state)
{
	static char text[3 << 20];
	int fd = open(file, O_WRONLY | O_CREAT, 0644);

	memset(text, 'x', sizeof(text));
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	assert_int_equal(write(fd, "end", 3), 3);
	assert_int_equal(fchown(fd, its_user(), (gid_t)-1), 0);
	close(fd);
	assert_int_equal(flight_folder_take(&folder, to), 0);
	assert_int_equal(lseek(to, 0, SEEK_END), sizeof(text) + 3);
	assert_int_equal(pread(to, text, 4, sizeof(text) - 1), 4);
	assert_memory_equal(text, "xend", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(taken_and_emptied, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_else_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_waits_for_a_stopped_child, set_up, tear_down),
		cmocka_unit_test_setup_teardown(progress_is_watched, set_up, tear_down),
		cmocka_unit_test_setup_teardown(large_files_are_taken, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
