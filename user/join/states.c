/* SPDX-License-Identifier: MIT */
#include "join/states.h"

#include <string.h>

#include "base/text.h"
#include "duet_record.h"

#define TRACING_FRAMES 8 /* most frames of the tracing; Linux 6.18 has three */
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* Beginnings of the names of kernel functions. Linux 5.10 to 7.2 have them, some under only one of these names. */
static const struct {
	const char *state, *functions;
} states[] = {
	{NULL, "do_wait_intr"}, /* of eventfd and timerfd: the caller shows which */
	{"[futex]", "futex_ do_futex"},
	{"[epoll]", "ep_poll do_epoll_wait"},
	{"[poll]", "poll_schedule_timeout do_sys_poll do_select"},
	{"[sleep]", "do_nanosleep hrtimer_nanosleep alarm_timer_nsleep timerfd_"},
	{"[pipe]", "pipe_ anon_pipe_ fifo_"},
	{"[eventfd]", "eventfd_"},
	{"[signal]", "signalfd_ do_sigtimedwait sigsuspend __x64_sys_pause"},
	{"[file events]", "inotify_ fanotify_"},
	{"[io]", "fuse_ nfs_ nfs4_ io_cqring_wait io_schedule jbd2_log_wait_commit read_events request_wait_answer "
	 "rpc_wait_bit_killable submit_bio_wait wb_wait_for_completion inode_wait_for_writeback"},
	{"[file lock]", "flock_ locks_lock_inode_wait __break_lease fcntl_setlk"},
	{"[message queue]", "do_msgrcv do_msgsnd do_mq_"},
	{"[semaphore]", "do_semtimedop __do_semtimedop"},
	{"[socket]", "sk_wait_data sk_stream_wait inet_csk_accept inet_csk_wait_for_connect inet_wait_for_connect "
	 "inet_stream_connect unix_stream_ unix_wait_for_peer sock_alloc_send_pskb __skb_wait_for_more_packets "
	 "tcp_ vsock_"},
	{"[child]", "do_wait __do_wait kernel_wait4 kernel_clone"}, /* vfork(2) clones */
	{"[stopped]", "do_signal_stop ptrace_stop do_freezer_trap __refrigerator"}, /* the last: of cgroup v1 */
	{"[terminal]", "n_tty_"},
	{"[kernel lock]", "__mutex_lock __down rwsem_ percpu_rwsem_wait"},
	{"[page fault]", "handle_userfault"},
};

/*
 * Beginnings of the names of functions of the scheduler, which do not show the cause of a wait. The kernel leaves them
 * out of the stacks of threads that sleep, but not of a thread's own stack.
 */
static const char scheduler[] = "__schedule schedule preempt_schedule do_nanosleep";

/* Returns the name of a kernel function, or NULL if the frame is not one. */
static const char *kernel_function(const struct profile *profile, uint32_t frame)
{
	const struct frame *row = frame < profile->frames.len ? &profile->frames.items[frame] : NULL;

	return row && row->kind == FRAME_KERNEL ? intern_text(&profile->strings, row->name) : NULL;
}

/* Returns the number of frames without those of the tracing, which __schedule() has called. */
static size_t trim_tracing(const struct profile *profile, const uint32_t *frames, size_t count)
{
	size_t least = count > TRACING_FRAMES ? count - TRACING_FRAMES : 0;

	for (size_t end = count; end > least; end--) {
		const char *function = kernel_function(profile, frames[end - 1]);

		if (!function)
			break;
		if (!strcmp(function, "__schedule"))
			return end;
	}
	return count;
}

size_t state_trim(const struct profile *profile, const uint32_t *frames, size_t count)
{
	const char *function;

	count = trim_tracing(profile, frames, count);
	while (count && (function = kernel_function(profile, frames[count - 1])) &&
	       text_begins_with(function, scheduler))
		count--;
	return count;
}

/* Returns the wait that a function shows, or NULL. */
static const char *state_in(const char *function)
{
	for (size_t i = 0; i < COUNT(states); i++)
		if (text_begins_with(function, states[i].functions))
			return states[i].state;
	return NULL;
}

/* Returns what the thread waits for, by the function nearest to the leaf that shows it, or NULL. */
static const char *state_in_kernel(const struct profile *profile, const uint32_t *frames, size_t count)
{
	const char *state = NULL, *function;

	while (!state && count-- > 0 && (function = kernel_function(profile, frames[count])))
		state = state_in(function);
	return state;
}

const char *state_of(const struct profile *profile, const uint32_t *frames, size_t count, uint16_t flags)
{
	const char *state = state_in_kernel(profile, frames, count);
	bool is_io = state && !strcmp(state, "[io]");

	if (flags & DUET_SAMPLE_FAULT && (!state || is_io))
		return "[page fault]"; /* perhaps of a file; then the thread waits for a device, too */
	if (state)
		return state;
	return flags & DUET_SAMPLE_IO ? "[io]" : "[blocked]";
}

/* Methods in which a thread waits for its next work. */
static const struct {
	const char *class_name, *method;
} idle_methods[] = {
	{"java.util.concurrent.ThreadPoolExecutor", "getTask"},
	{"java.util.concurrent.ForkJoinPool", "awaitWork"},
	{"java.util.TimerThread", "mainLoop"},
	{"java.lang.ref.Reference", "waitForReferencePendingList"},
	{"java.lang.ref.ReferenceQueue", "remove"},
	{"java.net.PlainSocketImpl", "socketAccept"},
	{"java.net.ServerSocket", "implAccept"},
	{"sun.nio.ch.EPollPort$EventHandlerTask", "poll"},
	{"sun.nio.ch.NioSocketImpl", "accept"},
	{"sun.nio.ch.Poller", "pollLoop"},
	{"sun.nio.ch.SelectorImpl", "lockAndDoSelect"},
	{"sun.nio.ch.ServerSocketChannelImpl", "accept"},
	{"io.netty.channel.epoll.EpollEventLoop", "epollWait"},
	{"io.netty.channel.epoll.Native", "epollWait"},
	{"org.apache.tomcat.util.threads.ThreadPoolExecutor", "getTask"},
	{"org.eclipse.jetty.util.thread.QueuedThreadPool", "idleJobPoll"},
};

/* Beginnings of the names of classes that only wait on behalf of their caller. */
static const char waiting_classes[] =
	"java.lang.Object java.lang.ref. java.util.concurrent. jdk.internal.misc. sun.misc.Unsafe sun.nio.ch. "
	"io.netty.channel.epoll.";

/* The same of libjvm: functions of its own threads (JDK 8 to 27), and others that wait on behalf of their caller. */
static const char jvm_functions[] =
	"AttachListener::dequeue CompileQueue::get ConcurrentGCThread:: G1ConcurrentMarkThread::run_service "
	"G1ConcurrentRefineThread:: G1PrimaryConcurrentRefineThread:: G1ServiceThread:: GangWorker::loop "
	"LinuxAttachListener::dequeue MonitorDeflationThread:: NMethodSweeper::sweeper_loop NotificationThread:: "
	"PosixAttachListener::dequeue ServiceThread:: ShenandoahControlThread:: VMThread::loop "
	"VMThread::wait_for_operation WatcherThread::sleep WorkerThread::run ZDirector:: os::signal_wait";

static const char waiting_functions[] =
	"JVM_MonitorWait JVM_WaitForReferencePendingList Monitor:: ObjectMonitor::wait ObjectSynchronizer::wait "
	"Parker::park Platform PosixSemaphore:: Semaphore::wait Unsafe_Park os::Platform";

/* Functions of event loops, in which a thread waits by epoll or poll. */
static const char loops[] =
	"aeProcessEvents ev_run event_base_loop g_main_context_iterate main_loop_wait ngx_epoll_process_events "
	"uv__io_poll";

/* Functions in which threads wait that the kernel has made for a process, for io_uring. */
static const char kernel_loops[] = "io_sq_thread io_wq_worker";

enum verdict { LOOK_FURTHER, IS_IDLE, IS_AT_WORK };

static enum verdict judge_java(const char *class_name, const char *method)
{
	for (size_t i = 0; i < COUNT(idle_methods); i++)
		if (!strcmp(method, idle_methods[i].method) && !strcmp(class_name, idle_methods[i].class_name))
			return IS_IDLE;
	return text_begins_with(class_name, waiting_classes) ? LOOK_FURTHER : IS_AT_WORK;
}

static enum verdict judge(const struct profile *profile, uint32_t index, bool polls)
{
	const struct frame *frame = &profile->frames.items[index];
	const char *name = intern_text(&profile->strings, frame->name);

	if (frame_kind_is_java(frame->kind))
		return judge_java(intern_text(&profile->strings, frame->class_name), name);
	if (frame->kind == FRAME_JVM && text_begins_with(name, jvm_functions))
		return IS_IDLE;
	if (frame->kind == FRAME_JVM)
		return text_begins_with(name, waiting_functions) ? LOOK_FURTHER : IS_AT_WORK;
	return polls && text_begins_with(name, loops) ? IS_IDLE : LOOK_FURTHER;
}

bool idle_in_pool(const struct profile *profile, const uint32_t *frames, size_t count, const char *state)
{
	bool polls = !strcmp(state, "[epoll]") || !strcmp(state, "[poll]");
	const char *leaf = count ? kernel_function(profile, frames[count - 1]) : NULL;
	enum verdict verdict = leaf && text_begins_with(leaf, kernel_loops) ? IS_IDLE : LOOK_FURTHER;

	while (verdict == LOOK_FURTHER && count)
		verdict = judge(profile, frames[--count], polls);
	return verdict == IS_IDLE;
}

size_t state_skip_waking(const struct profile *profile, const uint32_t *frames, size_t count)
{
	for (size_t i = 0; i < count && i < TRACING_FRAMES; i++) {
		const char *function = kernel_function(profile, frames[i]);

		if (!function)
			break;
		if (!strcmp(function, "try_to_wake_up"))
			return i + 1;
	}
	return 0;
}

/* Beginnings of the names of kernel functions that serve interrupts, of Linux 5.10 to 7.2. */
static const struct {
	enum interrupt kind;
	const char *functions;
} interrupts[] = {
	{INTERRUPT_TIMER, "__hrtimer_run_queues hrtimer_interrupt hrtimer_run_softirq call_timer_fn __run_timer "
	 "run_timer_"},
	{INTERRUPT_SOFT, "handle_softirqs __do_softirq do_softirq __softirqentry"},
	{INTERRUPT_DEVICE, "__handle_irq_event_percpu handle_irq_event"},
	{INTERRUPT_OTHER, "sysvec_ __sysvec_ asm_sysvec_ common_interrupt __common_interrupt asm_common_interrupt "
	 "call_on_irq_stack do_interrupt_handler irq_work_run flush_smp_call_function_queue "
	 "__flush_smp_call_function_queue"},
};

enum interrupt state_interrupt(const struct profile *profile, const uint32_t *frames, size_t *count)
{
	for (size_t at = 0; at < *count; at++) {
		const char *function = kernel_function(profile, frames[at]);

		for (size_t i = 0; function && i < COUNT(interrupts); i++)
			if (text_begins_with(function, interrupts[i].functions)) {
				*count = at;
				return interrupts[i].kind;
			}
	}
	return INTERRUPT_NONE;
}
