/* SPDX-License-Identifier: MIT */
/* Names in the JVM's form, and in that of Java's sources. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"

/*
 * Appends the name for a JVM signature of `len` untrusted bytes: java.lang.String for "Ljava/lang/String;", int[][] for
 * "[[I", and Name.0x… for a hidden class's "LName.0x…;" or, as HotSpot has it, "LName+0x…;". Text that is not a
 * signature is kept.
 */
void class_name_add(struct buf *out, const char *signature, size_t len);
/* Interns a name of `len` untrusted bytes, in which JNI has written surrogates for characters beyond U+FFFF. */
uint32_t java_text_intern(struct intern *strings, const char *text, uint32_t len);
