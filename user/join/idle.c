/* SPDX-License-Identifier: MIT */
#include "join/idle.h"

#include <string.h>

/* Methods in which a thread waits for its next work. */
static const struct {
	const char *class_name, *method;
} methods[] = {
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
static const char *const waiting_classes[] = {
	"java.lang.Object", "java.lang.ref.", "java.util.concurrent.", "jdk.internal.misc.", "sun.misc.Unsafe",
	"sun.nio.ch.",	    "io.netty.channel.epoll.",
};

/* The same of libjvm: functions of its own threads (JDK 8 to 27). */
static const char *const jvm_functions[] = {
	"AttachListener::dequeue",   "CompileQueue::get",     "ConcurrentGCThread::",
	"G1ConcurrentMarkThread::run_service", "G1ConcurrentRefineThread::", "G1PrimaryConcurrentRefineThread::",
	"G1ServiceThread::",	     "GangWorker::loop",      "LinuxAttachListener::dequeue",
	"MonitorDeflationThread::",  "NMethodSweeper::sweeper_loop", "NotificationThread::",
	"PosixAttachListener::dequeue", "ServiceThread::",    "ShenandoahControlThread::",
	"VMThread::loop",	     "VMThread::wait_for_operation", "WatcherThread::sleep",
	"WorkerThread::run",	     "ZDirector::",	      "os::signal_wait",
};

/* Functions of libjvm that only wait on behalf of their caller. */
static const char *const waiting_functions[] = {
	"JVM_MonitorWait",   "JVM_WaitForReferencePendingList", "Monitor::",   "ObjectMonitor::wait",
	"ObjectSynchronizer::wait", "Parker::park",		"Platform",    "PosixSemaphore::",
	"Semaphore::wait",   "Unsafe_Park",			"os::Platform", "os::signal_wait",
};

/* Functions of event loops, in which a thread waits by epoll or poll. */
static const char *const loops[] = {
	"aeProcessEvents", "ev_run", "event_base_loop", "g_main_context_iterate", "main_loop_wait",
	"ngx_epoll_process_events", "uv__io_poll",
};

/* Functions in which threads wait that the kernel has made for a process, for io_uring. */
static const char *const kernel_loops[] = {"io_sq_thread", "io_wq_worker"};

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static bool begins(const char *text, const char *const *beginnings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(text, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

enum verdict { LOOK_FURTHER, IS_IDLE, IS_AT_WORK };

static enum verdict judge_java(const char *class_name, const char *method)
{
	for (size_t i = 0; i < COUNT(methods); i++)
		if (!strcmp(method, methods[i].method) && !strcmp(class_name, methods[i].class_name))
			return IS_IDLE;
	return begins(class_name, waiting_classes, COUNT(waiting_classes)) ? LOOK_FURTHER : IS_AT_WORK;
}

static enum verdict judge_jvm(const char *function)
{
	if (begins(function, jvm_functions, COUNT(jvm_functions)))
		return IS_IDLE;
	return begins(function, waiting_functions, COUNT(waiting_functions)) ? LOOK_FURTHER : IS_AT_WORK;
}

static enum verdict judge_kernel(const struct profile *profile, uint32_t leaf)
{
	const struct frame *frame = &profile->frames.items[leaf];
	const char *name = intern_text(&profile->strings, frame->name);

	return frame->kind == FRAME_KERNEL && begins(name, kernel_loops, COUNT(kernel_loops)) ? IS_IDLE : LOOK_FURTHER;
}

static enum verdict judge(const struct profile *profile, uint32_t index, bool polls)
{
	const struct frame *frame = &profile->frames.items[index];
	const char *name = intern_text(&profile->strings, frame->name);

	if (frame_kind_is_java(frame->kind))
		return judge_java(intern_text(&profile->strings, frame->class_name), name);
	if (frame->kind == FRAME_JVM)
		return judge_jvm(name);
	return polls && begins(name, loops, COUNT(loops)) ? IS_IDLE : LOOK_FURTHER;
}

bool idle_in_pool(const struct profile *profile, const uint32_t *frames, size_t count, const char *state)
{
	bool polls = !strcmp(state, "[epoll]") || !strcmp(state, "[poll]");
	enum verdict verdict = count ? judge_kernel(profile, frames[count - 1]) : LOOK_FURTHER;

	while (verdict == LOOK_FURTHER && count)
		verdict = judge(profile, frames[--count], polls);
	return verdict == IS_IDLE;
}
