/* SPDX-License-Identifier: MIT */
/*
 * Calls of native methods of Java. In place of a method's own function, the JVM calls one of the agent's, which calls
 * the probe and goes on to the method's own with the same arguments. Calls that compilers replace by instructions of
 * their own are not seen.
 */
#ifndef METHOD_NATIVES_H
#define METHOD_NATIVES_H

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
 * on all threads; `is_new`: the class is just being prepared, so the JVM has no function for the method yet. Returns
 * false if nothing changes.
 */
bool natives_add(JNIEnv *env, const struct natives_method *of, int32_t id, bool is_new);
void natives_remove(void); /* no method calls a probe any more; called on the agent's thread */
/* The callback NativeMethodBind of JVMTI: the JVM has found the function of a method. */
void JNICALL natives_on_bind(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method, void *address,
			     void **new_address);

#endif
