/* SPDX-License-Identifier: MIT */
/* The text of Java's source files, in folders and in jars. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/*
 * Looks for the source file "com/acme/Main.java" in a place, which is a folder or a jar. In a folder it is below
 * com/acme, below a folder such as that of a module and com/acme, or there itself. The path comes from a recording: one
 * with ".." is not looked for. Returns a descriptor, of the jar for a jar, or -ENOENT or another -errno.
 */
int source_files_open(const char *place, const char *path, bool *ret_is_jar);
/* Appends the file's text from such a descriptor, which stays open. Returns 0, -ENOENT, or another -errno. */
int source_files_read(int fd, bool is_jar, const char *path, struct buf *text);
