/* SPDX-License-Identifier: MIT */
/* The functions that JVMTI calls: at the JVM's start and end, for classes, compiled code and threads, and the taps'. */
#pragma once

#include <jvmti.h>
#include <stdbool.h>

/* jvm_open() with them. */
int callbacks_open(JavaVM *vm, bool at_start);
