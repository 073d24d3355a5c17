/* SPDX-License-Identifier: MIT */
/*
 * Object.wait(long, int) is Java code of the platform that calls a native method. There JVMTI reports that the thread
 * waits, and what is registered in that callback is registered by the platform.
 */
#include "method/registering.h"

#include "jvm/jvm.h"

#define LOCAL_REFS 8

/* The registration that the agent's thread is about to make. */
static struct {
	JNIEnv *env; /* NULL: none */
	jclass class;
	const JNINativeMethod *method;
	bool is_done;
} registration;

bool registering_on_wait(JNIEnv *env)
{
	if (env != registration.env)
		return false;
	registration.is_done = !(*env)->RegisterNatives(env, registration.class, registration.method, 1);
	return true;
}

/* Waits for an object that no other thread knows. */
static void wait_a_moment(JNIEnv *env)
{
	jobject object = (*env)->NewByteArray(env, 0);
	jmethodID wait = object ? (*env)->GetMethodID(env, (*env)->GetObjectClass(env, object), "wait", "(JI)V") : NULL;

	if (wait && !(*env)->MonitorEnter(env, object)) {
		registration.env = env;
		(*env)->CallVoidMethod(env, object, wait, (jlong)1, (jint)0);
		registration.env = NULL;
		(*env)->ExceptionClear(env);
		(*env)->MonitorExit(env, object);
	}
	(*env)->ExceptionClear(env);
}

bool registering_quietly(JNIEnv *env, jclass class, const JNINativeMethod *method)
{
	jvmtiEnv *jvmti = jvm.jvmti;
	jthread self = NULL;

	registration.is_done = false;
	if ((*env)->PushLocalFrame(env, LOCAL_REFS))
		return false;
	registration.class = class;
	registration.method = method;
	if (!(*jvmti)->GetCurrentThread(jvmti, &self) &&
	    !(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_MONITOR_WAIT, self)) {
		wait_a_moment(env);
		(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_MONITOR_WAIT, self);
	}
	(*env)->PopLocalFrame(env, NULL);
	return registration.is_done;
}
