/* SPDX-License-Identifier: MIT */
/* Copies up to the first page that cannot be read, also where a container's filter refuses process_vm_readv(). */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "safe_copy.c"

#define FILLED 0x5a

/* Two readable pages, followed by one that is not. */
static unsigned char *map_two_pages(void)
{
	unsigned char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	memset(pages, FILLED, 2 * PAGE);
	return mprotect(pages + 2 * PAGE, PAGE, PROT_NONE) ? NULL : pages;
}

static bool copies(const unsigned char *from, size_t bytes, size_t expected)
{
	static unsigned char to[4 * PAGE];

	memset(to, 0, sizeof(to));
	if (safe_copy(to, (uintptr_t)from, bytes) != expected)
		return false;
	for (size_t i = 0; i < sizeof(to); i++)
		if (to[i] != (i < expected ? FILLED : 0))
			return false;
	return true;
}

static bool copies_what_is_there(void)
{
	const unsigned char *pages = map_two_pages();

	return pages && copies(pages, 2 * PAGE, 2 * PAGE) && copies(pages + 3, 5, 5) &&
	       copies(pages + PAGE - 3, 6, 6) && copies(pages + 2 * PAGE - 3, 100, 3) &&
	       copies(pages + 1, 3 * PAGE - 1, 2 * PAGE - 1) && copies(pages + 2 * PAGE, 8, 0) && copies(NULL, 8, 0) &&
	       copies(pages, 0, 0);
}

static void test_copies(void **state)
{
	assert_true(copies_what_is_there());
}

static void test_refuses_what_is_too_long(void **state)
{
	unsigned char byte = FILLED;

	assert_true(copies(&byte, SAFE_COPY_MAX + 1, 0));
	assert_true(copies((const unsigned char *)UINTPTR_MAX - 3, 8, 0));
}

static int refuse_process_vm_readv(int error)
{
	struct sock_filter instructions[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = instructions};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* In a child, because a filter cannot be removed. */
static void expect_copies_refused_with(int error)
{
	pid_t child = fork();
	int status = -1;

	if (!child)
		_exit(refuse_process_vm_readv(error) ? 2 : !copies_what_is_there());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(status, 0);
}

static void test_copies_when_refused(void **state)
{
	expect_copies_refused_with(EPERM);
	expect_copies_refused_with(ENOSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies_when_refused),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_refuses_what_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
