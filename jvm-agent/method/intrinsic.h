/* SPDX-License-Identifier: MIT */
/* Methods whose work compiled code may do without calling them: the platform annotates them (JDK 9+). */
#ifndef METHOD_INTRINSIC_H
#define METHOD_INTRINSIC_H

#include "method/classfile.h"

/* `attributes` are those of a method, without their number. A malformed annotation is none. */
bool intrinsic_is_annotated(const struct class_file *class, struct class_reader attributes, uint16_t count);

#endif
