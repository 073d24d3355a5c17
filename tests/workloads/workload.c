/* SPDX-License-Identifier: MIT */
/*
 * The native half of SystemCalls.java, system calls made without the JVM's own retry loops around them, that of
 * SecondProfiler.java, the least that a profiler does which lives on SIGPROF, that of Interleave.java, which calls
 * back into Java, that of Throws.java, which exceptions pass, that of ProfilerCalls.java, that of Changed.java,
 * which asks for bytecode, and those of NativeCalls.java and WaitingCalls.java.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <jni.h>
#include <jvmti.h>

enum { POLL, EPOLL, SLEEP, CALLS, COUNT };

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

static int interrupted(int result)
{
	return result < 0 && errno == EINTR;
}

static void one_round(int epoll, jlong counts[COUNT])
{
	struct timespec nap = {.tv_nsec = 200000};
	struct epoll_event event;

	/* Timeout 0 keeps the thread on the CPU inside the call, where samples hit; 1 ms makes it wait now and then. */
	for (int i = 0; i < 20000; i++) {
		counts[POLL] += interrupted(poll(NULL, 0, i % 5000 == 0));
		counts[EPOLL] += interrupted(epoll_wait(epoll, &event, 1, i % 5000 == 2500));
		counts[CALLS] += 2;
	}
	counts[SLEEP] += interrupted(nanosleep(&nap, NULL));
	counts[CALLS]++;
}

JNIEXPORT jlongArray JNICALL Java_workload_SystemCalls_interrupted(JNIEnv *env, jclass klass, jlong milliseconds);
JNIEXPORT jlongArray JNICALL Java_workload_SystemCalls_interrupted(JNIEnv *env, jclass klass, jlong milliseconds)
{
	uint64_t end = now_ms() + milliseconds;
	jlong counts[COUNT] = {0};
	jlongArray array = (*env)->NewLongArray(env, COUNT);
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	while (now_ms() < end)
		one_round(epoll, counts);
	close(epoll);
	if (array)
		(*env)->SetLongArrayRegion(env, array, 0, COUNT, counts);
	return array;
}

/* ---- WaitingCalls.java ---- */

#define KIND_MSGRCV 17
#define KIND_PAUSE 18
#define SIGNAL_OF_OURS SIGURG /* the JVM does not use it, and by default it does nothing */

/* struct futex_waitv and its number, which older headers lack */
struct futex_to_wait {
	uint64_t value, address;
	uint32_t flags, reserved;
};
#define FUTEX_PRIVATE_32 (2 | 128)
#define NUMBER_FUTEX_WAITV 449

struct waiting {
	int epoll, timer, semaphore, ring, queue;
	int silent[2], full[2]; /* sockets: nothing comes from the first, and the third takes nothing more */
	int listener;
	int busy[4]; /* a listener that nobody can connect to any more, and those that have */
	aio_context_t aio;
	uint32_t word;
	/* a thread that ends the waits that have no timeout */
	pthread_t waker, waiter;
	int kind;
	volatile int is_over;
};

/* The sockets' waits end after 1 ms, or a few where the kernel's jiffies are longer. */
static void open_sockets(struct waiting *waiting)
{
	const struct timeval ms = {.tv_usec = 1000};
	const struct sockaddr_un any = {.sun_family = AF_UNIX};
	static const char bytes[4096];

	waiting->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bind(waiting->listener, (const struct sockaddr *)&any, sizeof(any.sun_family));
	listen(waiting->listener, 1);
	setsockopt(waiting->listener, SOL_SOCKET, SO_RCVTIMEO, &ms, sizeof(ms));
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, waiting->silent);
	setsockopt(waiting->silent[0], SOL_SOCKET, SO_RCVTIMEO, &ms, sizeof(ms));
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, waiting->full);
	setsockopt(waiting->full[0], SOL_SOCKET, SO_SNDTIMEO, &ms, sizeof(ms));
	while (send(waiting->full[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		continue;
}

static void open_busy_listener(struct waiting *waiting)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(at);

	waiting->busy[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bind(waiting->busy[0], (const struct sockaddr *)&at, sizeof(at.sun_family));
	listen(waiting->busy[0], 1);
	getsockname(waiting->busy[0], (struct sockaddr *)&at, &bytes);
	for (int i = 1; i < 4; i++) {
		waiting->busy[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(waiting->busy[i], (const struct sockaddr *)&at, bytes);
	}
}

static volatile int signals_of_ours;

static void on_signal_of_ours(int signo)
{
	signals_of_ours++;
}

/* Ends a wait about each millisecond. */
static void *wake(void *context)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	struct waiting *waiting = context;
	const struct {
		long type;
		char text[8];
	} message = {.type = 1};

	while (!waiting->is_over) {
		nanosleep(&ms, NULL);
		if (waiting->kind == KIND_PAUSE)
			pthread_kill(waiting->waiter, SIGNAL_OF_OURS);
		else
			msgsnd(waiting->queue, &message, sizeof(message.text), IPC_NOWAIT);
	}
	return NULL;
}

static int has_waker(int kind)
{
	return kind == KIND_MSGRCV || kind == KIND_PAUSE;
}

static void start_waker(struct waiting *waiting, int kind)
{
	const struct sigaction action = {.sa_handler = on_signal_of_ours};

	waiting->kind = kind;
	waiting->waiter = pthread_self();
	if (kind == KIND_PAUSE)
		sigaction(SIGNAL_OF_OURS, &action, NULL);
	if (has_waker(kind))
		pthread_create(&waiting->waker, NULL, wake, waiting);
}

static void end_waker(struct waiting *waiting, int kind)
{
	waiting->is_over = 1;
	if (has_waker(kind))
		pthread_join(waiting->waker, NULL);
}

static void open_waiting(struct waiting *waiting)
{
	struct io_uring_params params = {0};

	waiting->epoll = epoll_create1(EPOLL_CLOEXEC);
	waiting->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	waiting->semaphore = semget(IPC_PRIVATE, 1, 0600);
	waiting->ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	waiting->queue = msgget(IPC_PRIVATE, 0600);
	syscall(SYS_io_setup, 1, &waiting->aio);
	open_sockets(waiting);
	open_busy_listener(waiting);
}

static void close_waiting(struct waiting *waiting)
{
	const int all[] = {waiting->epoll,     waiting->timer,	 waiting->listener, waiting->silent[0],
			   waiting->silent[1], waiting->full[0], waiting->full[1],  waiting->ring,
			   waiting->busy[0],   waiting->busy[1], waiting->busy[2],  waiting->busy[3]};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] >= 0)
			close(all[i]);
	semctl(waiting->semaphore, 0, IPC_RMID);
	msgctl(waiting->queue, IPC_RMID, NULL);
	syscall(SYS_io_destroy, waiting->aio);
}

static int wait_for_socket(int kind, struct waiting *waiting)
{
	static const char bytes[4096];
	char byte;

	switch (kind) {
	case 6:
		return (int)recv(waiting->silent[0], &byte, 1, 0);
	case 7:
		return (int)read(waiting->silent[0], &byte, 1);
	case 8:
		return (int)send(waiting->full[0], bytes, sizeof(bytes), MSG_NOSIGNAL);
	default:
		return accept(waiting->listener, NULL, NULL);
	}
}

static int wait_for_ring(const struct waiting *waiting, const struct timespec *ms)
{
	struct __kernel_timespec time = {.tv_nsec = ms->tv_nsec};
	const struct io_uring_getevents_arg wait = {.ts = (uintptr_t)&time};

	if (waiting->ring < 0)
		return nanosleep(ms, NULL); /* the kernel or the container refuses rings */
	return (int)syscall(SYS_io_uring_enter, waiting->ring, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
			    &wait, sizeof(wait));
}

static int wait_for_others(int kind, struct waiting *waiting, const struct timespec *ms)
{
	struct sembuf take = {.sem_op = -1};
	struct epoll_event event;
	struct io_event done;
	sigset_t user;

	switch (kind) {
	case 10:
		return semtimedop(waiting->semaphore, &take, 1, ms);
	case 11:
		sigemptyset(&user);
		sigaddset(&user, SIGRTMAX);
		return sigtimedwait(&user, NULL, ms);
	case 12:
		return (int)syscall(SYS_io_getevents, waiting->aio, 1, 1, &done, ms);
	case 13:
		return (int)syscall(SYS_epoll_pwait2, waiting->epoll, &event, 1, ms, NULL, 0);
	default:
		return wait_for_ring(waiting, ms);
	}
}

static int wait_for_futexes(struct waiting *waiting)
{
	const struct futex_to_wait one = {.address = (uintptr_t)&waiting->word, .flags = FUTEX_PRIVATE_32};
	struct timespec late, ms = {.tv_nsec = 1000000};
	int result;

	clock_gettime(CLOCK_MONOTONIC, &late);
	late.tv_sec += late.tv_nsec + ms.tv_nsec >= 1000000000;
	late.tv_nsec = (late.tv_nsec + ms.tv_nsec) % 1000000000;
	result = (int)syscall(NUMBER_FUTEX_WAITV, &one, 1, 0, &late, CLOCK_MONOTONIC);
	return result < 0 && errno == ENOSYS ? nanosleep(&ms, NULL) : result; /* before Linux 5.16 */
}

/* Connects to the busy listener, which gives up after 1 ms. */
static int wait_to_connect(const struct waiting *waiting)
{
	const struct timeval ms = {.tv_usec = 1000};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), result, err;

	getsockname(waiting->busy[0], (struct sockaddr *)&at, &bytes);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &ms, sizeof(ms));
	result = connect(fd, (const struct sockaddr *)&at, bytes);
	err = errno;
	close(fd);
	errno = err;
	return result;
}

/* A signal always ends pause(): one of ours must have. */
static int wait_for_signal(void)
{
	int before = signals_of_ours;

	pause();
	errno = EINTR;
	return signals_of_ours == before ? -1 : 0;
}

static int wait_for_the_rest(int kind, struct waiting *waiting)
{
	struct {
		long type;
		char text[8];
	} message;

	switch (kind) {
	case 15:
		return wait_for_futexes(waiting);
	case 16:
		return wait_to_connect(waiting);
	case KIND_MSGRCV:
		return (int)msgrcv(waiting->queue, &message, sizeof(message.text), 0, 0);
	default:
		return wait_for_signal();
	}
}

/* Waits 1 ms. */
static int wait_in(int kind, struct waiting *waiting)
{
	struct timespec ms = {.tv_nsec = 1000000};
	struct timeval us = {.tv_usec = 1000};
	const struct itimerspec once = {.it_value = ms};
	struct epoll_event event;
	uint64_t count;

	switch (kind) {
	case 0:
		return poll(NULL, 0, 1);
	case 1:
		return select(0, NULL, NULL, NULL, &us);
	case 2:
		return epoll_wait(waiting->epoll, &event, 1, 1);
	case 3:
		return nanosleep(&ms, NULL);
	case 4:
		return (int)syscall(SYS_futex, &waiting->word, FUTEX_WAIT_PRIVATE, 0, &ms, NULL, 0);
	case 5:
		timerfd_settime(waiting->timer, 0, &once, NULL);
		return (int)read(waiting->timer, &count, sizeof(count));
	default:
		if (kind >= 15)
			return wait_for_the_rest(kind, waiting);
		return kind < 10 ? wait_for_socket(kind, waiting) : wait_for_others(kind, waiting, &ms);
	}
}

JNIEXPORT jlong JNICALL Java_workload_WaitingCalls_waits(JNIEnv *env, jclass klass, jint kind, jlong milliseconds,
							 jlongArray waits);
JNIEXPORT jlong JNICALL Java_workload_WaitingCalls_waits(JNIEnv *env, jclass klass, jint kind, jlong milliseconds,
							 jlongArray waits)
{
	struct waiting waiting = {0};
	jlong end = now_ms() + milliseconds, seen = 0, all = 0;

	open_waiting(&waiting);
	start_waker(&waiting, kind);
	for (; (jlong)now_ms() < end; all++)
		seen += interrupted(wait_in(kind, &waiting));
	end_waker(&waiting, kind);
	close_waiting(&waiting);
	(*env)->SetLongArrayRegion(env, waits, kind, 1, &all);
	return seen;
}

JNIEXPORT jint JNICALL Java_workload_SystemCalls_exec(JNIEnv *env, jclass klass, jobjectArray command);
JNIEXPORT jint JNICALL Java_workload_SystemCalls_exec(JNIEnv *env, jclass klass, jobjectArray command)
{
	const char *argv[16] = {NULL};
	jsize count = (*env)->GetArrayLength(env, command);

	for (jsize i = 0; i < count && i < 15; i++)
		argv[i] = (*env)->GetStringUTFChars(env, (*env)->GetObjectArrayElement(env, command, i), NULL);
	execv(argv[0], (char **)argv);
	return errno;
}

JNIEXPORT jlong JNICALL Java_workload_Interleave_across(JNIEnv *env, jclass klass, jint depth);
JNIEXPORT jlong JNICALL Java_workload_Interleave_across(JNIEnv *env, jclass klass, jint depth)
{
	jmethodID down = (*env)->GetStaticMethodID(env, klass, "down", "(I)J");

	return down ? (*env)->CallStaticLongMethod(env, klass, down, depth) + 1 : 0;
}

JNIEXPORT void JNICALL Java_workload_Throws_across(JNIEnv *env, jclass klass, jobject level, jint way);
JNIEXPORT void JNICALL Java_workload_Throws_across(JNIEnv *env, jclass klass, jobject level, jint way)
{
	jmethodID next = (*env)->GetMethodID(env, (*env)->GetObjectClass(env, level), "level9", "(I)I");

	if (next)
		(*env)->CallIntMethod(env, level, next, way);
}

JNIEXPORT void JNICALL Java_workload_Throws_thrown(JNIEnv *env, jclass klass, jobject level);
JNIEXPORT void JNICALL Java_workload_Throws_thrown(JNIEnv *env, jclass klass, jobject level)
{
	(*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/IllegalStateException"), "from native code");
}

static volatile jlong ticks; /* exact enough: the signal is blocked while its handler runs, two CPUs may lose one */

static void on_tick(int signo, siginfo_t *info, void *context)
{
	ticks = ticks + 1;
}

JNIEXPORT void JNICALL Java_workload_SecondProfiler_start(JNIEnv *env, jclass klass);
JNIEXPORT void JNICALL Java_workload_SecondProfiler_start(JNIEnv *env, jclass klass)
{
	struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerval each_ms = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000};

	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &each_ms, NULL);
}

JNIEXPORT jlong JNICALL Java_workload_SecondProfiler_ticks(JNIEnv *env, jclass klass);
JNIEXPORT jlong JNICALL Java_workload_SecondProfiler_ticks(JNIEnv *env, jclass klass)
{
	struct sigaction action;

	sigaction(SIGPROF, NULL, &action);
	return action.sa_sigaction == on_tick ? ticks : -1;
}

JNIEXPORT void JNICALL Java_workload_ProfilerCalls_replace(JNIEnv *, jclass, jint, jstring);

JNIEXPORT void JNICALL Java_workload_ProfilerCalls_replace(JNIEnv *env, jclass class, jint descriptor, jstring path)
{
	const char *name = (*env)->GetStringUTFChars(env, path, NULL);
	int file = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	dup2(file, descriptor);
	close(file);
	(*env)->ReleaseStringUTFChars(env, path, name);
}

/* ---- Changed.java ---- */

static uint64_t hash_of(jvmtiEnv *jvmti, jmethodID method, const char *wanted)
{
	unsigned char *code = NULL;
	uint64_t hash = 0;
	char *name = NULL;
	jint bytes = 0;

	if (!(*jvmti)->GetMethodName(jvmti, method, &name, NULL, NULL) && !strcmp(name, wanted) &&
	    !(*jvmti)->GetBytecodes(jvmti, method, &bytes, &code))
		for (jint i = 0; i < bytes; i++)
			hash = hash * 31 + code[i] + 1;
	(*jvmti)->Deallocate(jvmti, (unsigned char *)name);
	(*jvmti)->Deallocate(jvmti, code);
	return hash;
}

JNIEXPORT jlong JNICALL Java_workload_Changed_hashOfCode(JNIEnv *env, jclass self, jclass type, jstring name);
JNIEXPORT jlong JNICALL Java_workload_Changed_hashOfCode(JNIEnv *env, jclass self, jclass type, jstring name)
{
	const jvmtiCapabilities wanted = {.can_get_bytecodes = 1};
	static jvmtiEnv *jvmti;
	const char *text = (*env)->GetStringUTFChars(env, name, NULL);
	jmethodID *methods;
	uint64_t hash = 0;
	jint count = 0;
	JavaVM *vm;

	if (!jvmti && !(*env)->GetJavaVM(env, &vm) && !(*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_1))
		(*jvmti)->AddCapabilities(jvmti, &wanted);
	if (jvmti && text && !(*jvmti)->GetClassMethods(jvmti, type, &count, &methods)) {
		for (jint i = 0; i < count; i++)
			hash += hash_of(jvmti, methods[i], text);
		(*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
	}
	(*env)->ReleaseStringUTFChars(env, name, text);
	return (jlong)hash;
}

/* More arguments than registers hold, of each kind. */
JNIEXPORT jdouble JNICALL Java_workload_NativeCalls_many(JNIEnv *env, jclass class, jint a, jlong b, jdouble c,
							 jfloat d, jbyte e, jshort f, jlong g, jdouble h, jdouble i,
							 jdouble j, jdouble k, jdouble l, jdouble m, jdouble n, jint o);
JNIEXPORT jdouble JNICALL Java_workload_NativeCalls_many(JNIEnv *env, jclass class, jint a, jlong b, jdouble c,
							 jfloat d, jbyte e, jshort f, jlong g, jdouble h, jdouble i,
							 jdouble j, jdouble k, jdouble l, jdouble m, jdouble n, jint o)
{
	(void)env, (void)class;
	return a + 2.0 * (jdouble)b + 3 * c + 4 * (jdouble)d + 5 * e + 6 * f + 7.0 * (jdouble)g + 8 * h + 9 * i +
	       10 * j + 11 * k + 12 * l + 13 * m + 14 * n + 15 * o;
}

JNIEXPORT jint JNICALL Java_workload_NativeCalls_length(JNIEnv *env, jobject self, jstring text);
JNIEXPORT jint JNICALL Java_workload_NativeCalls_length(JNIEnv *env, jobject self, jstring text)
{
	return (*env)->GetStringLength(env, text);
}

JNIEXPORT jint JNICALL Java_workload_NativeCalls_00024Late_twice(JNIEnv *env, jclass class, jint number);
JNIEXPORT jint JNICALL Java_workload_NativeCalls_00024Late_twice(JNIEnv *env, jclass class, jint number)
{
	(void)env, (void)class;
	return 2 * number;
}
