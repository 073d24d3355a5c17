/* SPDX-License-Identifier: MIT */
/* Reports the threads and their Java names: when they start, are renamed, and end. */
#ifndef JVM_THREADS_H
#define JVM_THREADS_H

#include <jvmti.h>

struct stay;

void JNICALL threads_on_start(jvmtiEnv *jvmti, JNIEnv *env, jthread thread);
void JNICALL threads_on_end(jvmtiEnv *jvmti, JNIEnv *env, jthread thread);

/*
 * Publishes the threads that are new or have another name since the last sweep. A rename raises no event. Agent's
 * thread only.
 */
void threads_sweep(struct stay *stay, JNIEnv *env);
/* Forgets what was published: the next stay publishes all threads again. Agent's thread only. */
void threads_forget(void);

#endif
