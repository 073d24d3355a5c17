/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "join/states.h"

#define MOST 16

/*
 * Returns what idle_in_pool() says of a stack, root first. "k:", "n:" and "j:" stand before functions of the kernel, of
 * native code and of libjvm; a method is CLASS#METHOD. The last is NULL.
 */
static bool is_idle(const char *state, const char *const *texts)
{
	struct profile profile;
	uint32_t frames[MOST];
	size_t count = 0;
	bool idle;

	assert_int_equal(profile_init(&profile), 0);
	for (; *texts; texts++) {
		const char *method = strchr(*texts, '#');
		struct frame frame = {.bci = -1};

		assert_true(count < MOST);
		frame.kind = **texts == 'k' ? FRAME_KERNEL : **texts == 'n' ? FRAME_NATIVE : FRAME_JVM;
		if (method)
			frame.kind = FRAME_COMPILED;
		frame.name = intern_str(&profile.strings, method ? method + 1 : *texts + 2);
		if (method)
			frame.class_name = intern_bytes(&profile.strings, *texts, (size_t)(method - *texts));
		frames[count++] = profile_frame(&profile, &frame);
	}
	idle = idle_in_pool(&profile, frames, count, state);
	profile_release(&profile);
	return idle;
}

#define IDLE(state, ...) is_idle(state, (const char *const[]){__VA_ARGS__, NULL})
#define PARK "java.util.concurrent.locks.LockSupport#park", "jdk.internal.misc.Unsafe#park", "j:Unsafe_Park", \
	     "j:Parker::park", "n:pthread_cond_wait", "k:futex_wait"

static void workers_wait_for_work(void **state)
{
	assert_true(IDLE("[futex]", "java.util.concurrent.ThreadPoolExecutor$Worker#run",
			 "java.util.concurrent.ThreadPoolExecutor#getTask",
			 "java.util.concurrent.LinkedBlockingQueue#take", PARK));
	assert_true(IDLE("[futex]", "java.util.TimerThread#mainLoop", "java.lang.Object#wait", "j:JVM_MonitorWait",
			 "j:ObjectMonitor::wait", "n:pthread_cond_timedwait", "k:futex_wait"));
	assert_true(IDLE("[epoll]", "workload.Main#loop", "sun.nio.ch.SelectorImpl#lockAndDoSelect",
			 "sun.nio.ch.EPoll#wait", "n:epoll_wait", "k:do_epoll_wait"));
}

/* The same pools are on the stack while a task waits. */
static void work_that_waits_is_not_idle(void **state)
{
	assert_false(IDLE("[futex]", "java.util.concurrent.ThreadPoolExecutor#getTask", "workload.Main#work", PARK));
	assert_false(IDLE("[futex]", "java.util.TimerThread#mainLoop", "workload.Main#run",
			  "java.util.concurrent.CountDownLatch#await", PARK));
	assert_false(IDLE("[futex]", "workload.Main#main", "java.util.concurrent.FutureTask#get", PARK));
	assert_false(IDLE("[futex]", "n:start_thread", "n:worker", "n:pthread_cond_wait", "k:futex_wait"));
	assert_false(IDLE("[futex]", "k:futex_wait"));
}

static void threads_of_io_uring_wait_for_work(void **state)
{
	assert_true(IDLE("[blocked]", "k:ret_from_fork_asm", "k:ret_from_fork", "k:io_wq_worker"));
	assert_true(IDLE("[blocked]", "k:ret_from_fork", "k:io_sq_thread"));
	assert_false(IDLE("[pipe]", "k:ret_from_fork", "k:io_wq_worker", "k:io_read", "k:anon_pipe_read"));
}

static void threads_of_the_jvm_wait_for_work(void **state)
{
	assert_true(IDLE("[futex]", "n:start_thread", "j:CompileBroker::compiler_thread_loop", "j:CompileQueue::get",
			 "j:Monitor::wait", "j:os::PlatformMonitor::wait", "n:pthread_cond_wait", "k:futex_wait"));
	assert_true(IDLE("[futex]", "j:WorkerThread::run", "j:PosixSemaphore::wait", "k:futex_wait"));
	assert_false(IDLE("[futex]", "j:WorkerThread::run", "j:TaskTerminator::offer_termination", "j:Monitor::wait",
			  "k:futex_wait"));
}

static void loops_wait_by_poll_only(void **state)
{
	assert_true(IDLE("[epoll]", "n:main", "n:uv_run", "n:uv__io_poll", "n:epoll_wait", "k:do_epoll_wait"));
	assert_false(IDLE("[futex]", "n:main", "n:uv__io_poll", "n:callback", "n:pthread_mutex_lock", "k:futex_wait"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_wait_for_work),
		cmocka_unit_test(work_that_waits_is_not_idle),
		cmocka_unit_test(threads_of_io_uring_wait_for_work),
		cmocka_unit_test(threads_of_the_jvm_wait_for_work),
		cmocka_unit_test(loops_wait_by_poll_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
