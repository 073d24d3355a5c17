/* SPDX-License-Identifier: MIT */
#pragma once

#include <pthread.h>

/* A local variable, after those whose values need no lock: the mutex is locked until the end of its scope. */
#define LOCKED(mutex) __attribute__((cleanup(locked_end), unused)) pthread_mutex_t *locked = locked_begin(mutex)

static inline pthread_mutex_t *locked_begin(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void locked_end(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}
