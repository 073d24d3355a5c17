/* SPDX-License-Identifier: MIT */
#ifndef COMPILATIONS_H
#define COMPILATIONS_H

#include <jvmti.h>

/* Called by code.c on a thread of the JVM when it has compiled this method. */
void compilations_on_load(jmethodID method);

#endif
