/* SPDX-License-Identifier: MIT */
/* Folders of the agent that killed attaches have left; files below a root that are not read. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach/place.h"
#include "base/root.h"

#define FOLDER ".duet-"

static char folder[] = "/tmp/duet-place-XXXXXX";
static int root = -1;

static int enter_folder(void **state)
{
	root = mkdtemp(folder) ? open(folder, O_PATH | O_DIRECTORY) : -1;
	return root < 0 ? -1 : 0;
}

static int leave_folder(void **state)
{
	close(root);
	return rmdir(folder);
}

/* A folder for the agent, and its name. */
static int make_folder(char name[PLACE_NAME_MAX])
{
	const struct attach_target target = {.pid = getpid(), .ns_pid = 7, .uid = geteuid(), .gid = getegid()};
	const struct visit visit = {.target = &target};

	return place_folder(&visit, root, geteuid(), name);
}

static void remove_folder(int fd, const char *name)
{
	close(fd);
	unlinkat(root, name, AT_REMOVEDIR);
}

/* What the kernel makes up when it is read, and another user's. */
static void test_root_read_foreign(void **state)
{
	int top = open("/", O_PATH | O_DIRECTORY);
	struct buf text;

	buf_init(&text);
	assert_int_equal(root_read(top, "proc/version", (uid_t)-1, 100, &text), -EINVAL);
	assert_int_equal(root_read(top, "etc/passwd", 54321, 100, &text), -EPERM);
	assert_int_equal(root_read(top, "etc/passwd", 0, 100, &text), 0);
	buf_release(&text);
	close(top);
}

static time_t later_s;

/* For leftovers, which must be older than a file can be made. */
time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec + later_s;
	return now.tv_sec + later_s;
}

static void leave_behind(const char *name, const char *file, uid_t owner)
{
	char path[128];

	assert_int_equal(mkdirat(root, name, 0755), 0);
	snprintf(path, sizeof(path), "%s/%s", name, file);
	close(openat(root, path, O_WRONLY | O_CREAT, 0644));
	if (owner != getuid())
		assert_int_equal(fchownat(root, name, owner, (gid_t)-1, 0), 0);
}

static bool is_there(const char *name, const char *file)
{
	char path[128];
	bool found = faccessat(root, name, F_OK, 0) == 0;

	snprintf(path, sizeof(path), "%s/%s", name, file);
	unlinkat(root, path, 0);
	unlinkat(root, name, AT_REMOVEDIR);
	return found;
}

/*
 * A child that its user killed could not remove its folder. The next child of that user does, and removes no other
 * folder.
 */
static void test_folder_left_behind(void **state)
{
	char ours[PLACE_NAME_MAX], full[PLACE_NAME_MAX], other[PLACE_NAME_MAX], name[PLACE_NAME_MAX];
	int fd;

	snprintf(ours, sizeof(ours), FOLDER "%u-0123456789abcdef-7", getuid());
	snprintf(full, sizeof(full), FOLDER "%u-0123456789abcdef-8", getuid());
	snprintf(other, sizeof(other), FOLDER "%u-0123456789abcdef-9", getuid());
	leave_behind(ours, PLACE_LIBRARY, getuid());
	leave_behind(full, "of another program", getuid());
	leave_behind(other, PLACE_LIBRARY, getuid() ? getuid() : 65534);
	fd = make_folder(name);
	assert_true(fd >= 0);
	remove_folder(fd, name);
	assert_int_equal(faccessat(root, ours, F_OK, 0), 0); /* it may be in use */
	later_s = 3600;
	fd = make_folder(name);
	later_s = 0;
	assert_true(fd >= 0);
	remove_folder(fd, name);
	assert_false(is_there(ours, PLACE_LIBRARY));
	assert_true(is_there(full, "of another program"));
	assert_int_equal(is_there(other, PLACE_LIBRARY), getuid() == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_root_read_foreign),
		cmocka_unit_test(test_folder_left_behind),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
