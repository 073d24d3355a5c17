/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "proc/helper.h"
#include "sym/target_file.h"

static char folder[] = "/tmp/duet-target-XXXXXX";
static pid_t target;

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

/* Starts a process whose root is the folder "root", with files that a hostile container might prepare. */
static int start_target(void **state)
{
	int ready[2];
	char byte;

	if (geteuid())
		return 0;
	if (!mkdtemp(folder) || chdir(folder) < 0 || mkdir("root", 0700) < 0 || pipe(ready) < 0)
		return -1;
	write_file("secret", "outside");
	write_file("root/secret", "inside");
	if (symlink("/secret", "root/absolute") < 0 || symlink("../../../secret", "root/upwards") < 0 ||
	    symlink("/dev/null", "root/nowhere") < 0 || mkfifo("root/fifo", 0600) < 0)
		return -1;
	target = fork();
	if (!target) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot("root") == 0 && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	return read(ready[0], &byte, 1) == 1 ? 0 : -1;
}

static int end_target(void **state)
{
	if (geteuid())
		return 0;
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	unlink("root/secret");
	unlink("root/absolute");
	unlink("root/upwards");
	unlink("root/nowhere");
	unlink("root/fifo");
	unlink("secret");
	return rmdir("root") == 0 && chdir("/") == 0 ? rmdir(folder) : -1;
}

static void assert_reads(const char *path, const char *expected)
{
	char text[16] = "";
	int fd = target_file_open(CHARGE_OWN(target), target, path);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(expected));
	assert_string_equal(text, expected);
	close(fd);
}

static void test_links_stay_inside(void **state)
{
	if (geteuid())
		skip(); /* chroot() */
	assert_reads("/secret", "inside");
	assert_reads("/absolute", "inside");
	assert_reads("/upwards", "inside");
	assert_reads("/../../../../../../secret", "inside");
	assert_int_equal(target_file_open(CHARGE_OWN(target), target, "/nowhere"), -ENOENT);
}

static void test_only_regular_files(void **state)
{
	assert_int_equal(target_file_open(CHARGE_OWN(getpid()), getpid(), "/dev/null"), -EINVAL);
	assert_int_equal(target_file_open(CHARGE_OWN(getpid()), getpid(), "/tmp"), -EINVAL);
	assert_int_equal(target_file_open(CHARGE_OWN(getpid()), getpid(), ""), -ENOENT);
	assert_int_equal(target_file_open(CHARGE_OWN(getpid()), 0x7ffffff, "/etc/passwd"), -ENOENT);
	if (!geteuid())
		assert_int_equal(target_file_open(CHARGE_OWN(target), target, "/fifo"), -EINVAL);
}

/*
 * Files that the kernel makes up when they are read: /proc/kmsg gives each message to one reader, sysfs reaches
 * devices.
 */
static void test_only_stored_files(void **state)
{
	assert_int_equal(target_file_open(CHARGE_OWN(getpid()), getpid(), "/proc/version"), -EINVAL);
	assert_int_equal(target_file_open(CHARGE_OWN(getpid()), getpid(), "/sys/kernel/notes"), -EINVAL);
}

/* The owner of the lease is notified, but the read does not wait for them. */
static void test_leases_hold_up_nobody(void **state)
{
	int fd;

	if (geteuid())
		skip();
	fd = open("root/secret", O_RDONLY);
	signal(SIGIO, SIG_IGN);
	alarm(10);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	assert_int_equal(target_file_open(CHARGE_OWN(target), target, "/secret"), -EAGAIN);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
	alarm(0);
	assert_reads("/secret", "inside");
	close(fd);
}

static bool is_copied(pid_t pid, const char *path)
{
	int fd = target_file_open(CHARGE_OWN(pid), pid, path);
	bool is_copy = fcntl(fd, F_GET_SEALS) >= 0; /* a memfd */

	assert_true(fd >= 0);
	close(fd);
	return is_copy;
}

/*
 * Starts a process with an overlay on "overlay", which root has mounted, or with in_user_namespace the process itself.
 */
static pid_t start_in_overlay(bool in_user_namespace)
{
	int ready[2];
	char options[64];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(options, sizeof(options), "lowerdir=%s/root:/etc", folder);
		if (!unshare(CLONE_NEWNS | (in_user_namespace ? CLONE_NEWUSER : 0)) &&
		    !mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		    !mount("overlay", folder, "overlay", 0, options) && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], options, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(ready[0]);
	return pid;
}

/* A scanner that answers nothing holds up each read of the file, though the kernel alone has it. */
static void test_scanners_hold_up_nobody(void **state)
{
	struct target_file file;
	int scanner;

	if (geteuid())
		skip();
	helper_start(); /* before the scanner, of which it would keep a descriptor */
	scanner = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
	if (scanner < 0 || fanotify_mark(scanner, FAN_MARK_ADD, FAN_ACCESS_PERM, AT_FDCWD, "root/secret") < 0) {
		helper_end();
		skip();
	}
	assert_int_equal(target_file_find(&file, CHARGE_OWN(target), target, "/secret"), 0);
	assert_int_equal(target_file_read(&file, CHARGE_OWN(file.pid), 0), -ETIMEDOUT);
	close(scanner);
	target_file_release(&file);
	helper_end();
	assert_reads("/secret", "inside");
}

/* A file that grows, on a file system whose users can delay reads: bytes that were read are not read again. */
static void test_copies(void **state)
{
	struct target_file file;
	char path[64], text[16] = "";
	pid_t pid = geteuid() ? 0 : start_in_overlay(true);

	if (!pid)
		skip(); /* no such namespaces */
	snprintf(path, sizeof(path), "%s/secret", folder); /* "inside" */
	assert_int_equal(target_file_find(&file, CHARGE_OWN(pid), pid, path), 0);
	assert_true(target_file_read(&file, CHARGE_OWN(file.pid), 0) >= 0);
	assert_true(fcntl(file.fd, F_GET_SEALS) >= 0); /* a memfd */
	assert_int_equal(pread(file.fd, text, sizeof(text), 0), 6);
	assert_string_equal(text, "inside");
	target_file_release(&file);
	assert_int_equal(target_file_find(&file, CHARGE_OWN(pid), pid, path), 0);
	assert_true(target_file_read(&file, CHARGE_OWN(file.pid), 2) >= 0);
	assert_int_equal(pread(file.fd, text, sizeof(text), 0), 6);
	assert_memory_equal(text, "\0\0side", 6);
	target_file_release(&file);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Containers have overlays, and files too large to be copied. */
static void test_overlays_of_root_alone_are_read(void **state)
{
	char path[64];

	if (geteuid())
		skip();
	snprintf(path, sizeof(path), "%s/secret", folder);
	for (int i = 0; i < 2; i++) {
		pid_t pid = start_in_overlay(i == 1);

		if (!pid)
			skip(); /* no such namespaces */
		assert_int_equal(is_copied(pid, path), i == 1);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static void test_another_file_at_the_path(void **state)
{
	struct process gone = {.pid = getpid(), .exited = true};
	struct target_file file;
	struct mapping mapping = {.path = (char *)"/proc/self/exe", .inode = 1};

	assert_true(target_file_find_mapping(&file, CHARGE_OWN(gone.living), &gone, &mapping) < 0);
	gone.exited = false;
	assert_true(target_file_find_mapping(&file, CHARGE_OWN(gone.living), &gone, &mapping) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links_stay_inside),
		cmocka_unit_test(test_only_regular_files),
		cmocka_unit_test(test_only_stored_files),
		cmocka_unit_test(test_leases_hold_up_nobody),
		cmocka_unit_test(test_scanners_hold_up_nobody),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_overlays_of_root_alone_are_read),
		cmocka_unit_test(test_another_file_at_the_path),
	};

	return cmocka_run_group_tests(tests, start_target, end_target);
}
