/* SPDX-License-Identifier: MIT */
#pragma once

#include <jvmti.h>
#include <stdbool.h>

/* jvm_open() with the agent's callbacks: for the JVM's start and end, classes, code, threads, and the taps'. */
int callbacks_open(JavaVM *vm, bool at_start);
