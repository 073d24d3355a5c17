/* SPDX-License-Identifier: MIT */
/* The text of Java's source files, in folders and in jars. */
#pragma once

#include "base/buf.h"
#include "base/opt.h"

/*
 * Appends the text of `file` of the package "com/acme" ("" for none), from the first of the folders and jars that has
 * it: below PACKAGE/, below a folder such as that of a module and PACKAGE/, or, in a folder, directly. The names come
 * from recordings: a file with a slash in its name is not looked for. Returns 0, -ENOENT, or another -errno.
 */
int source_files_find(const struct opt_strings *paths, const char *package, const char *file, struct buf *text);
