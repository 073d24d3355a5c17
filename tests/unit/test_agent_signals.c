/* SPDX-License-Identifier: MIT */
/* Which signals look free to the agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>

#include <cmocka.h>

#include "engine/signals.c"

static const char *why;

void sample_handler(int signo, siginfo_t *info, void *context)
{
}

static pthread_barrier_t begun, done;

static void *wait_with(void *mask)
{
	pthread_sigmask(SIG_BLOCK, mask, NULL);
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&done);
	return NULL;
}

static int take_beside(sigset_t *mask)
{
	pthread_t thread;
	int signo;

	pthread_barrier_init(&begun, NULL, 2);
	pthread_barrier_init(&done, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, wait_with, mask), 0);
	pthread_barrier_wait(&begun);
	signo = signals_take_realtime(0, &why);
	pthread_barrier_wait(&done);
	pthread_join(thread, NULL);
	signal(signo, SIG_DFL);
	realtime_signal = 0;
	return signo;
}

static void test_signal_that_is_waited_for(void **state)
{
	int first = SIGRTMIN + FIRST_OFFSET;
	sigset_t mask;

	sigemptyset(&mask);
	assert_int_equal(take_beside(&mask), first);
	sigaddset(&mask, first);
	sigaddset(&mask, first + 1);
	assert_int_equal(take_beside(&mask), first + 2);
}

/* Helper threads of libraries, and ours, block all signals. If they counted, no signal would be free. */
static void test_thread_that_blocks_all(void **state)
{
	sigset_t mask;

	sigfillset(&mask);
	assert_int_equal(take_beside(&mask), SIGRTMIN + FIRST_OFFSET);
}

static void test_one_of_the_last_stay(void **state)
{
	int signo = signals_take_realtime(0, &why);
	sigset_t mask;

	assert_true(signo > 0);
	assert_int_equal(signals_take_realtime(0, &why), signo);
	signal(signo, SIG_DFL);
	sigemptyset(&mask);
	assert_int_equal(take_beside(&mask), signo);
}

static void *prof_handler(void)
{
	struct sigaction action;

	assert_int_equal(sigaction(SIGPROF, NULL, &action), 0);
	return action.sa_handler;
}

/* A signal that is pending when we leave is dropped, and SIGPROF can be taken again. */
static void test_prof_is_left(void **state)
{
	sigset_t prof, pending;

	sigemptyset(&prof);
	sigaddset(&prof, SIGPROF);
	assert_int_equal(signals_take(SIGPROF), SIGPROF);
	assert_true(signals_have(SIGPROF));
	pthread_sigmask(SIG_BLOCK, &prof, NULL);
	raise(SIGPROF);
	signals_leave(SIGPROF);
	assert_false(signals_have(SIGPROF));
	assert_ptr_equal(prof_handler(), SIG_IGN);
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGPROF));
	pthread_sigmask(SIG_UNBLOCK, &prof, NULL);
	assert_int_equal(signals_take(SIGPROF), SIGPROF);
	signal(SIGPROF, SIG_DFL);
}

static void others(int signo)
{
}

static void test_prof_of_another_stays(void **state)
{
	assert_int_equal(signals_take(SIGPROF), SIGPROF);
	signal(SIGPROF, others);
	assert_false(signals_have(SIGPROF));
	signals_leave(SIGPROF);
	assert_ptr_equal(prof_handler(), others);
	assert_int_equal(signals_take(SIGPROF), -EBUSY);
	signal(SIGPROF, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signal_that_is_waited_for),
		cmocka_unit_test(test_thread_that_blocks_all),
		cmocka_unit_test(test_one_of_the_last_stay),
		cmocka_unit_test(test_prof_is_left),
		cmocka_unit_test(test_prof_of_another_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
