/* SPDX-License-Identifier: MIT */
#ifndef EVENT_COMPILATIONS_H
#define EVENT_COMPILATIONS_H

#include <jvmti.h>

/* Called by callbacks.c on a thread of the JVM when it has compiled this method. */
void compilations_on_load(jmethodID method);

#endif
