/* SPDX-License-Identifier: MIT */
/*
 * Classes of the JVM whose methods call probes. JVMTI lets classes that are loaded be transformed again, and shows each
 * class that is loaded later. At the end all are transformed once more, without us: then they are as they were.
 */
#pragma once

#include <jvmti.h>

#include "duet_agent.h"
#include "method/rewrite.h"

/* The callback ClassFileLoadHook of JVMTI. */
void JNICALL instrument_on_class_file(jvmtiEnv *jvmti, JNIEnv *env, jclass redefined, jobject loader, const char *name,
				      jobject domain, jint size, const unsigned char *bytes, jint *new_size,
				      unsigned char **new_bytes);
/* In jvm.c: JVMTI reports each class that is prepared. */
void instrument_on_prepare(JNIEnv *env, jclass class);
/*
 * Adds the target of an event, with probes of this kind, to classes that are loaded and to those that will be. Called
 * on the agent's thread, between stay_open() and stay_close(). Returns 0, or -errno and one sentence in *ret_why.
 */
int instrument_add(const struct duet_agent_event *event, enum probe_kind kind, const char **ret_why);
/* Removes all. Classes that the JVM is just defining may be missed once, so it waits for them for some milliseconds. */
void instrument_remove(void);
