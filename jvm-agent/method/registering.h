/* SPDX-License-Identifier: MIT */
/* Registers functions of native methods without a message of the JVM. */
#ifndef METHOD_REGISTERING_H
#define METHOD_REGISTERING_H

#include <jvmti.h>
#include <stdbool.h>

/*
 * Like RegisterNatives() for one method. When the method is the platform's and the caller is not in the platform
 * itself, JDK 15 and later print a warning to stdout (jni_RegisterNatives()), but not here. Called on the agent's
 * thread, with the capability can_generate_monitor_events. Takes some milliseconds.
 */
bool registering_quietly(JNIEnv *env, jclass class, const JNINativeMethod *method);
/*
 * In event/wait.c: JVMTI reports that a thread is in Object.wait(). Returns true if registering_quietly() made it wait,
 * which is no wait of the program's.
 */
bool registering_on_wait(JNIEnv *env);

#endif
