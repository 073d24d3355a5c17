/* SPDX-License-Identifier: MIT */
/* Names of methods from JVMTI. Since JDK 26 memory does not show which method a jmethodID stands for. */
#ifndef JVM_METHODS_H
#define JVM_METHODS_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

#include "hotspot/metadata.h"

/* Finds the names of a method by its key; `context` is the calling thread's JNIEnv. See answers.other_names. */
bool methods_ask_jvmti(void *context, uint64_t key, struct metadata_names *ret);

#endif
