/* SPDX-License-Identifier: MIT */
/* The text of Java's source files, in folders and in jars. */
#pragma once

#include "base/buf.h"

/*
 * Opens the source file "com/acme/Main.java" of a folder: below com/acme, below a folder such as that of a module and
 * com/acme, or there itself. The path comes from a recording: one with ".." is not looked for. With "" the place is a
 * jar, and is opened itself. Returns a descriptor, or -errno: -ENOTDIR for a path in what is no folder.
 */
int source_files_open(const char *place, const char *path);
/* Appends the file, or that of this path in a jar. Returns 0, -ENOENT, or another -errno. */
int source_files_read(int fd, const char *path, struct buf *text);
