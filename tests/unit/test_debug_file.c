/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sym/debug_file.h"

static char folder[] = "/tmp/duet-debug-XXXXXX";

static int enter_folder(void **state)
{
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
	unlink("app");
	unlink("app.debug");
	return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

int main(void);

/* Returns false if this host has no objcopy. */
static bool make_files(void)
{
	char command[256];

	if (system("objcopy --version >/dev/null 2>&1"))
		return false;
	snprintf(command, sizeof(command),
		 "objcopy --only-keep-debug /proc/%d/exe app.debug && "
		 "objcopy --strip-all --add-gnu-debuglink=app.debug /proc/%d/exe app",
		 getpid(), getpid());
	assert_int_equal(system(command), 0);
	return true;
}

static bool is_taken(uid_t owner, uid_t debug_owner, mode_t debug_mode)
{
	struct target_file target;
	struct elf_file file;
	char path[64];
	bool is_taken;

	assert_int_equal(chown("app", owner, 0), 0);
	assert_int_equal(chown("app.debug", debug_owner, 0), 0);
	assert_int_equal(chmod("app.debug", debug_mode), 0);
	snprintf(path, sizeof(path), "%s/app", folder);
	assert_int_equal(target_file_find(&target, CHARGE_OWN(getpid()), getpid(), path), 0);
	assert_int_equal(elf_file_read(&file, target_file_read(&target, CHARGE_OWN(getpid()), 0)), 0);
	debug_file_apply(&file, CHARGE_OWN(getpid()), &target, path);
	is_taken = file.has_symtab;
	elf_file_release(&file);
	target_file_release(&target);
	return is_taken;
}

/* `app` is this program without its symbols. */
static void test_symbol_of_debug_file(void **state)
{
	struct target_file target;
	uint64_t vaddr = 0;
	char path[64];

	if (!make_files())
		skip();
	snprintf(path, sizeof(path), "%s/app", folder);
	assert_int_equal(target_file_find(&target, CHARGE_OWN(getpid()), getpid(), path), 0);
	assert_true(target_file_read(&target, CHARGE_OWN(getpid()), 0) >= 0);
	assert_true(debug_file_symbol(CHARGE_OWN(getpid()), &target, path, "main", true, &vaddr));
	assert_int_equal((vaddr ^ (uintptr_t)main) % 4096, 0);
	assert_false(debug_file_symbol(CHARGE_OWN(getpid()), &target, path, "no_such_function", true, &vaddr));
	assert_false(debug_file_symbol(CHARGE_OWN(getpid()), &target, "/elsewhere/app", "main", true, &vaddr));
	target_file_release(&target);
}

/* The names are used for all users who run the program, so only its owner and root may provide them. */
static void test_debug_file_of_another_user(void **state)
{
	if (geteuid() || !make_files())
		skip();
	assert_true(is_taken(0, 0, 0644));
	assert_true(is_taken(65534, 65534, 0644));
	assert_true(is_taken(65534, 0, 0644));
	assert_false(is_taken(0, 65534, 0644));
	assert_false(is_taken(54321, 65534, 0644));
	assert_false(is_taken(65534, 0, 0666));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbol_of_debug_file),
		cmocka_unit_test(test_debug_file_of_another_user),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
