/* SPDX-License-Identifier: MIT */
#include "own_thread.h"

#include <signal.h>

#include "libc_versions.h"

/*
 * The stack has no guard page of the C library. While the thread is attached, HotSpot makes pages at the stack's end
 * inaccessible, and leaves them so afterwards. The C library may give the stack to a Java thread next, and Java threads
 * have no guard page of the C library. With such a page in our stack, the Java thread's stack would end one page lower
 * than ours did. Its overflow would hit a page that is no guard page for HotSpot, and the JVM die without a message.
 */
int own_thread_start(pthread_t *ret, size_t stack_bytes, void *(*run)(void *), void *argument)
{
	sigset_t all, old;
	pthread_attr_t attributes;
	int error;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, stack_bytes);
	pthread_attr_setguardsize(&attributes, 0);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(ret, &attributes, run, argument);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}
