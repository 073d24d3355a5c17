/* SPDX-License-Identifier: MIT */
/* Class names as the JVM has them, and as Java's sources do. */
#ifndef RUNTIME_CLASS_NAME_H
#define RUNTIME_CLASS_NAME_H

#include <stddef.h>

#include "base/buf.h"

/*
 * Appends the name for a JVM signature of `len` bytes, from anybody: java.lang.String for "Ljava/lang/String;", int[][]
 * for "[[I", and Name.0x… for a hidden class's "LName.0x…;". What is no signature is kept as it is.
 */
void class_name_add(struct buf *out, const char *signature, size_t len);

#endif
