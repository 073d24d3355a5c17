/* SPDX-License-Identifier: MIT */
/*
 * The class file of the helper class, which inserted code calls. Its methods are native but PROBE_RETURNED, which
 * compilers inline: a call that does not reach its threshold never leaves Java.
 */
#ifndef METHOD_HELPER_CLASS_H
#define METHOD_HELPER_CLASS_H

#include "method/classfile.h"

/* Writes the class of this name (with slashes). Look at to->failed. */
void helper_class_write(const char *name, struct class_writer *to);

#endif
