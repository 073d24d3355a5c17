/* SPDX-License-Identifier: MIT */
/* Finds the fields of Java objects in the tables that the JVM keeps for their class. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* `version` is the Java version. Returns false when this JVM does not export what is needed. */
bool fields_open(int version);
/*
 * Finds an instance field that the class itself declares. `klass` is the address of its InstanceKlass. Stores the
 * offset in an object. Returns false when there is no such field.
 */
bool fields_find(uintptr_t klass, const char *name, const char *signature, uint16_t *ret_offset);
