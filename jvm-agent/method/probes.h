/* SPDX-License-Identifier: MIT */
/*
 * The helper class that instrumented methods call, and the samples that are taken there. It is defined in the boot
 * loader's package java.lang, which every class loader and module can see, when it is first needed, and stays: methods
 * that were entered while they were instrumented may call it long after.
 */
#pragma once

#include <jvmti.h>

#include "duet_agent.h"
#include "method/rewrite.h"

/* Makes the helper class ready. Called on the agent's thread. Returns its name, or NULL if the JVM refuses it. */
const char *probes_open(JNIEnv *env);
/* In jvm.c: JVMTI reports each class that is prepared. */
void probes_on_prepare(JNIEnv *env, jclass class);

/*
 * Samples of this event are taken from now on. Returns the id that its probes are to have, which is the same in all
 * recordings that ask for the same at the same place. Called on the agent's thread after probes_open().
 */
int16_t probes_add(JNIEnv *env, const struct duet_agent_event *event, enum probe_kind kind);
/* Returns true if Throwable's constructors have the probe of PROBE_CREATE, which is open. Makes a Throwable. */
bool probes_has_create(JNIEnv *env);
/* A thread that Java has called is in a method with this probe. */
void probes_called(int32_t id);
void probes_close(JNIEnv *env); /* no samples are taken for any id that was given so far */
