/* SPDX-License-Identifier: MIT */
/*
 * The native half of NativeLocks.java and Holders.java: threads that wait for mutexes and read-write locks, each for
 * a time that it measures itself; what locks must still do as POSIX says; and what a lock that nobody holds costs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <jni.h>

#include "extra.h"

#define NATIVE(name) Java_workload_NativeLocks_##name
#define LOCK __attribute__((noinline)) static int
#define NS_PER_SEC 1000000000ll

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

static struct timespec after(int64_t ns)
{
	int64_t then = now_ns(CLOCK_REALTIME) + ns;

	return (struct timespec){.tv_sec = then / NS_PER_SEC, .tv_nsec = then % NS_PER_SEC};
}

LOCK wait_mutex(void)
{
	int error = pthread_mutex_lock(&mutex);

	__asm__ volatile("");
	return error;
}

LOCK wait_mutex_timed(void)
{
	struct timespec until = after(60 * NS_PER_SEC);
	int error = pthread_mutex_timedlock(&mutex, &until);

	__asm__ volatile("");
	return error;
}

LOCK wait_read(void)
{
	int error = pthread_rwlock_rdlock(&rwlock);

	__asm__ volatile("");
	return error;
}

LOCK wait_write(void)
{
	int error = pthread_rwlock_wrlock(&rwlock);

	__asm__ volatile("");
	return error;
}

/*
 * Takes a lock `rounds` times, and has it for `hold_us` each time. Returns how long the thread has waited, in ns; -1 if
 * a lock was refused.
 */
JNIEXPORT jlong JNICALL NATIVE(contend)(JNIEnv *env, jclass class, jint way, jint rounds, jint hold_us);
JNIEXPORT jlong JNICALL NATIVE(contend)(JNIEnv *env, jclass class, jint way, jint rounds, jint hold_us)
{
	static int (*const ways[])(void) = {wait_mutex, wait_mutex_timed, wait_read, wait_write};
	const struct timespec hold = {.tv_nsec = hold_us * 1000l}, rest = {.tv_nsec = 1000};
	int64_t waited = 0;

	(void)env, (void)class;
	for (jint i = 0; i < rounds; i++) {
		int64_t begin = now_ns(CLOCK_MONOTONIC);

		if (ways[way]())
			return -1;
		waited += now_ns(CLOCK_MONOTONIC) - begin;
		nanosleep(&hold, NULL);
		if (way < 2)
			pthread_mutex_unlock(&mutex);
		else
			pthread_rwlock_unlock(&rwlock);
		nanosleep(&rest, NULL); /* so that another thread gets it */
	}
	return waited;
}

/* ---- what POSIX says ---- */

static void set_type(pthread_mutex_t *lock, int type, int robust)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, type);
	pthread_mutexattr_setrobust(&attributes, robust);
	pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

static int error_check(void)
{
	pthread_mutex_t lock;

	set_type(&lock, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
	return !pthread_mutex_lock(&lock) && pthread_mutex_lock(&lock) == EDEADLK && !pthread_mutex_unlock(&lock) &&
	       pthread_mutex_unlock(&lock) == EPERM && !pthread_mutex_destroy(&lock);
}

static int recursive(void)
{
	pthread_mutex_t lock;

	set_type(&lock, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
	return !pthread_mutex_lock(&lock) && !pthread_mutex_lock(&lock) && !pthread_mutex_unlock(&lock) &&
	       pthread_mutex_destroy(&lock) == EBUSY && !pthread_mutex_unlock(&lock) && !pthread_mutex_destroy(&lock);
}

static pthread_barrier_t is_taken;

static void *die_with(void *lock)
{
	const struct timespec hold = {.tv_nsec = 20000000};

	pthread_mutex_lock(lock);
	pthread_barrier_wait(&is_taken);
	nanosleep(&hold, NULL);
	return NULL;
}

/* One thread waits when the owner dies, and the lock is not made whole. */
static int robust(void)
{
	pthread_mutex_t lock;
	pthread_t thread;
	int error;

	set_type(&lock, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
	pthread_barrier_init(&is_taken, NULL, 2);
	pthread_create(&thread, NULL, die_with, &lock);
	pthread_barrier_wait(&is_taken);
	error = pthread_mutex_lock(&lock);
	pthread_join(thread, NULL);
	return error == EOWNERDEAD && !pthread_mutex_unlock(&lock) && pthread_mutex_lock(&lock) == ENOTRECOVERABLE;
}

/* The time is up, and errno stays as it was. */
static int timed(void)
{
	struct timespec until = after(3000000), wrong = {.tv_nsec = NS_PER_SEC};
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;

	errno = 123;
	return !pthread_mutex_timedlock(&lock, &wrong) && pthread_mutex_timedlock(&lock, &wrong) == EINVAL &&
	       pthread_mutex_timedlock(&lock, &until) == ETIMEDOUT && !pthread_rwlock_timedrdlock(&shared, &until) &&
	       pthread_rwlock_timedwrlock(&shared, &until) == ETIMEDOUT && !pthread_rwlock_unlock(&shared) &&
	       !pthread_rwlock_wrlock(&shared) && pthread_rwlock_rdlock(&shared) == EDEADLK &&
	       pthread_rwlock_wrlock(&shared) == EDEADLK && errno == 123;
}

/* A thread that waits for a mutex is not cancelled before it has it, and then at the next place for that. */
static void *be_cancelled(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	pthread_testcancel();
	return lock;
}

static int cancelled(void)
{
	const struct timespec step = {.tv_nsec = 5000000};
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;
	void *end;

	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, be_cancelled, &lock);
	nanosleep(&step, NULL);
	pthread_cancel(thread);
	nanosleep(&step, NULL);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, &end);
	return end == PTHREAD_CANCELED && !pthread_mutex_lock(&lock);
}

/* Returns a bit for each that is not as it must be. */
JNIEXPORT jint JNICALL NATIVE(broken)(JNIEnv *env, jclass class);
JNIEXPORT jint JNICALL NATIVE(broken)(JNIEnv *env, jclass class)
{
	static int (*const rules[])(void) = {error_check, recursive, robust, timed, cancelled};
	jint bits = 0;

	(void)env, (void)class;
	for (unsigned int i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		bits |= rules[i]() ? 0 : 1 << i;
	return bits;
}

/* ---- costs ---- */

static void lock_free_mutex(void *function, int calls)
{
	static pthread_mutex_t free_mutex = PTHREAD_MUTEX_INITIALIZER;
	int (*const lock)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))(uintptr_t)function;

	for (int i = 0; i < calls; i++) {
		lock(&free_mutex);
		pthread_mutex_unlock(&free_mutex);
	}
}

/* Returns by how much a lock that nobody holds costs more while it is hooked, in ps. */
JNIEXPORT jlong JNICALL NATIVE(extra)(JNIEnv *env, jclass class);
JNIEXPORT jlong JNICALL NATIVE(extra)(JNIEnv *env, jclass class)
{
	(void)env, (void)class;
	return extra_ps(lock_free_mutex, (void *)(uintptr_t)pthread_mutex_lock,
			dlsym(RTLD_DEFAULT, "pthread_mutex_lock"));
}

/* Returns true if the lock that this library calls is not the one that the dynamic linker finds. */
JNIEXPORT jboolean JNICALL NATIVE(hooked)(JNIEnv *env, jclass class);
JNIEXPORT jboolean JNICALL NATIVE(hooked)(JNIEnv *env, jclass class)
{
	void *volatile table = (void *)(uintptr_t)pthread_mutex_lock;

	(void)env, (void)class;
	return table != dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
}

/* ---- threads that the JVM does not know ---- */

static void *native_thread(void *rounds)
{
	jlong waited = NATIVE(contend)(NULL, NULL, 0, (jint)(intptr_t)rounds, 2000);

	__asm__ volatile("" : "+r"(waited)); /* the call is no jump */
	return (void *)(intptr_t)waited;
}

/* Returns how long they have waited together. */
JNIEXPORT jlong JNICALL NATIVE(threads)(JNIEnv *env, jclass class, jint rounds);
JNIEXPORT jlong JNICALL NATIVE(threads)(JNIEnv *env, jclass class, jint rounds)
{
	pthread_t threads[4];
	int64_t waited = 0;

	(void)env, (void)class;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, native_thread, (void *)(intptr_t)rounds);
	for (int i = 0; i < 4; i++) {
		void *own;

		pthread_join(threads[i], &own);
		waited += (intptr_t)own;
	}
	return waited;
}

/* ---- the forks of Holders.java ---- */

static pthread_mutex_t forks[5] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
				   PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

JNIEXPORT void JNICALL Java_workload_Holders_take(JNIEnv *env, jclass class, jint fork);
JNIEXPORT void JNICALL Java_workload_Holders_take(JNIEnv *env, jclass class, jint fork)
{
	(void)env, (void)class;
	pthread_mutex_lock(&forks[fork]);
}

JNIEXPORT void JNICALL Java_workload_Holders_drop(JNIEnv *env, jclass class, jint fork);
JNIEXPORT void JNICALL Java_workload_Holders_drop(JNIEnv *env, jclass class, jint fork)
{
	(void)env, (void)class;
	pthread_mutex_unlock(&forks[fork]);
}

/* Takes and releases a Java lock while the function has more local references than a JVM plans for. */
JNIEXPORT void JNICALL NATIVE(refer)(JNIEnv *env, jclass class, jobject lock);
JNIEXPORT void JNICALL NATIVE(refer)(JNIEnv *env, jclass class, jobject lock)
{
	enum { REFERENCES = 5000 };

	if ((*env)->PushLocalFrame(env, REFERENCES))
		return;
	for (int i = 0; i < REFERENCES; i++)
		(*env)->NewLocalRef(env, class);
	if (!(*env)->MonitorEnter(env, lock))
		(*env)->MonitorExit(env, lock);
	(*env)->PopLocalFrame(env, NULL);
}
