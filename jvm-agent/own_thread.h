/* SPDX-License-Identifier: MIT */
/* Threads of the agent. */
#pragma once

#include <pthread.h>
#include <stddef.h>

/*
 * Starts a thread with all signals blocked: they are for the JVM's threads. HotSpot unblocks those that it needs itself
 * when the thread attaches. Returns 0 or the error of pthread_create(). The caller joins or detaches the thread.
 */
int own_thread_start(pthread_t *ret, size_t stack_bytes, void *(*run)(void *), void *argument);
