/* SPDX-License-Identifier: MIT */
/* Reports in files of another process, whose user stops the child that writes them. */
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
#include "proc/process.h"
#include "recorder/report_file.h"

#define NOBODY 65534
#define MUCH_MS 60000

static char folder[] = "/tmp/duet-foreign-XXXXXX";
static char path[64];
static pid_t process;
static uint64_t start_ticks;
static int report;

/* A process of another user if this one is root's. */
static int set_up(void **state)
{
	if (!mkdtemp(folder) || chmod(folder, 0777) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/out", folder);
	report = memfd_create("report", MFD_CLOEXEC);
	if (pwrite(report, "report", 6, 0) != 6)
		return -1;
	process = fork();
	if (!process) {
		if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
			_exit(1);
		for (;;)
			pause();
	}
	usleep(50000); /* it changes its user */
	return process_read_start_ticks(process, &start_ticks);
}

static int tear_down(void **state)
{
	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
	close(report);
	unlink(path);
	return rmdir(folder);
}

static void has_owner_and_text(void)
{
	char text[16] = "";
	int fd = open(path, O_RDONLY);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 6);
	assert_memory_equal(text, "report", 6);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, geteuid() == 0 ? NOBODY : geteuid());
	close(fd);
}

static void written_as_its_user(void **state)
{
	struct foreign_file file;

	for (int i = 0; i < 2; i++) { /* the second time the file exists */
		assert_int_equal(foreign_file_create(&file, process, start_ticks, path), 0);
		assert_int_equal(foreign_file_write(&file, report), 0);
		foreign_file_release(&file);
		has_owner_and_text();
	}
	foreign_file_release(&file);
}

/* Links, pipes, devices and files that the kernel makes up are refused. */
static void regular_files_only(void **state)
{
	struct foreign_file file;

	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(foreign_file_create(&file, process, start_ticks, path), -EACCES);
	unlink(path);
	assert_int_equal(mkfifo(path, 0666), 0);
	chmod(path, 0666);
	assert_int_equal(foreign_file_create(&file, process, start_ticks, path), -EACCES);
	unlink(path);
	assert_int_equal(foreign_file_create(&file, process, start_ticks, "/dev/null"), -EACCES);
	assert_int_equal(foreign_file_create(&file, process, start_ticks, "/proc/sys/kernel/core_pattern"), -EACCES);
	assert_int_equal(foreign_file_create(&file, process, start_ticks, "/none/x"), -ENOENT);
	if (geteuid() == 0)
		assert_int_equal(foreign_file_create(&file, process, start_ticks, "/etc/duet-test"), -EACCES);
}

static void another_process(void **state)
{
	struct foreign_file file;

	assert_int_equal(foreign_file_create(&file, process, start_ticks + 1, path), -ESRCH);
	assert_int_equal(access(path, F_OK), -1);
}

/* A child that is stopped is not ended by its alarm. */
static void child_is_stopped(void **state)
{
	uint64_t begun_ns = clock_monotonic_ns();
	struct foreign_file file;
	pid_t child;

	assert_int_equal(foreign_file_create(&file, process, start_ticks, path), 0);
	child = file.child.pid;
	kill(child, SIGSTOP);
	assert_int_equal(foreign_file_write(&file, report), -ETIMEDOUT);
	foreign_file_release(&file);
	assert_true(clock_monotonic_ns() - begun_ns < MUCH_MS * NS_PER_MS);
	assert_int_equal(waitpid(child, NULL, WNOHANG), -1); /* it was collected */
}

static void child_is_killed(void **state)
{
	struct foreign_file file;

	assert_int_equal(foreign_file_create(&file, process, start_ticks, path), 0);
	kill(file.child.pid, SIGKILL);
	usleep(20000);
	assert_true(foreign_file_write(&file, report) < 0);
	foreign_file_release(&file);
}

/* Files of ours are written by a child as well, with our rights. Without a report, nothing is left. */
static void own_files(void **state)
{
	struct report_file file;
	struct buf why = BUF_NONE;

	unlink(path);
	assert_int_equal(report_file_open(&file, getpid(), start_ticks, path, 0, &why), 0);
	report_file_discard(&file);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(report_file_open(&file, getpid(), start_ticks, path, REPORT_FILE_PRIVATE, &why), 0);
	assert_int_equal(report_file_write(&file, report, &why), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* only `process` is left */
	assert_int_equal(why.len, 0);
	assert_int_equal(access(path, R_OK), 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_as_its_user), cmocka_unit_test(regular_files_only),
		cmocka_unit_test(another_process),     cmocka_unit_test(child_is_stopped),
		cmocka_unit_test(child_is_killed),     cmocka_unit_test(own_files),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
