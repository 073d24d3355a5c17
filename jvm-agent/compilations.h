/* SPDX-License-Identifier: MIT */
#ifndef COMPILATIONS_H
#define COMPILATIONS_H

#include <jvmti.h>

/* In code.c: the JVM has compiled this method. */
void compilations_on_load(jmethodID method);

#endif
