/* SPDX-License-Identifier: MIT */
/*
 * Two signals are delivered at one return to user mode: the inner handler finds the code that the outer one
 * interrupted.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sample/regs.h"

static struct regs outer, inner_raw, inner;
static volatile sig_atomic_t order, outer_at, inner_at;

static void on_outer(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info;
	outer = regs_get(regs_interrupted(context));
	outer_at = ++order;
}

static void on_inner(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info;
	inner_raw = regs_get(context);
	inner = regs_get(regs_interrupted(context));
	inner_at = ++order;
}

static void handle(int signo, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(signo, &action, NULL);
}

static void test_steps_over_a_fresh_handler(void **state)
{
	sigset_t both, old;

	handle(SIGUSR2, on_outer);
	handle(SIGRTMIN + 4, on_inner);
	sigemptyset(&both);
	sigaddset(&both, SIGUSR2);
	sigaddset(&both, SIGRTMIN + 4);
	sigprocmask(SIG_BLOCK, &both, &old);
	raise(SIGUSR2);
	raise(SIGRTMIN + 4);
	sigprocmask(SIG_SETMASK, &old, NULL); /* both now; the lower number is set up first, the other runs first */
	assert_int_equal(inner_at, 1);
	assert_int_equal(outer_at, 2);
	assert_true(inner_raw.pc == (uintptr_t)on_outer);
	assert_true(inner.pc == outer.pc);
	assert_true(inner.sp == outer.sp);
}

static void test_ordinary_context_is_kept(void **state)
{
	handle(SIGRTMIN + 4, on_inner);
	raise(SIGRTMIN + 4);
	assert_true(inner_raw.pc == inner.pc);
	assert_true(inner_raw.sp == inner.sp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_over_a_fresh_handler),
		cmocka_unit_test(test_ordinary_context_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
