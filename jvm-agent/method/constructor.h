/* SPDX-License-Identifier: MIT */
/* Where a constructor's object becomes an object: before, no handler may be in force that returns. */
#ifndef METHOD_CONSTRUCTOR_H
#define METHOD_CONSTRUCTOR_H

#include "method/classfile.h"

/*
 * Returns the bci behind the call of super() or this(). Returns -ENOENT if it is not certain that all code behind that
 * bci runs after the call, and all code before it runs before.
 */
int constructor_begin(const struct class_file *class, const uint8_t *code, uint32_t len);

#endif
