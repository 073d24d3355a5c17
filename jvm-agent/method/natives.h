/* SPDX-License-Identifier: MIT */
/*
 * Calls of native methods of Java. In place of a method's own function, the JVM calls one of the agent's, which calls
 * the probe and goes on to the method's own with the same arguments. Calls that compilers replace are not seen.
 */
#pragma once

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

/* `helper` is the class of probes.c. Returns false if this JVM has no way to do it. Called on the agent's thread. */
bool natives_open(JNIEnv *env, jclass helper);
struct natives_method {
	jclass class;
	jmethodID method;
	char *name, *type;
};

/*
 * Calls of the method call the probe with this id from now on. The method may have been called before, or not. Callable
 * on all threads; `is_new`: the JVM has no function for the method yet. Returns false if nothing changes.
 */
bool natives_add(JNIEnv *env, const struct natives_method *of, int32_t id, bool is_new);
void natives_remove(void); /* no method calls a probe any more; called on the agent's thread */
/* The callback NativeMethodBind of JVMTI: the JVM has found the function of a method. */
void JNICALL natives_on_bind(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method, void *address,
			     void **new_address);

/*
 * Like RegisterNatives() for one method. When the method is the platform's and the caller is not in the platform
 * itself, JDK 15 and later print a warning to stdout (jni_RegisterNatives()), but not here. Called on the agent's
 * thread, with the capability can_generate_monitor_events. Takes some milliseconds.
 */
bool registering_quietly(JNIEnv *env, jclass class, const JNINativeMethod *method);
/* In event/lock.c: JVMTI reports Object.wait(). True if registering_quietly() waits, and not the program. */
bool registering_on_wait(JNIEnv *env);

/* Functions that the JVM calls in place of those of native methods: see native_calls.c. */
#define NATIVE_CALLS 256 /* native methods that may ever be replaced in one JVM */

struct native_call {
	uintptr_t function; /* the method's own; 0: not known yet. Atomic */
	int32_t id; /* of the probe, or PROBE_NONE. Atomic */
};
extern struct native_call native_calls[NATIVE_CALLS] __attribute__((visibility("hidden")));

uintptr_t native_calls_at(uint32_t place); /* address of the function for this place, < NATIVE_CALLS */
/* In natives.c: called by that function with its place, if it has a probe. Returns the function to go on to. */
uintptr_t natives_called(uint32_t place);
