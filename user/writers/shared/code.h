/* SPDX-License-Identifier: MIT */
/* The file and the name of a frame's code, for formats with tables of files and functions. */
#pragma once

#include "base/buf.h"
#include "profile/profile.h"

/* Appends the name of the file that has the code; "[kernel]", "[compiled]" and so on stand for code in no file. */
void code_file(const struct profile *profile, const struct frame *frame, struct buf *out);
/*
 * Returns the build id of libjvm.so, if all JVMs have the same. Returns "" for other files: the profile has no build
 * ids of these.
 */
const char *code_build_id(const struct profile *profile, const char *file);
/* Appends a name of the code that is the same in every style: java.lang.String.charAt(I)C, or the symbol. */
void code_name(const struct profile *profile, const struct frame *frame, struct buf *out);
/* The unit's name in formats of protobuf: "nanoseconds". */
const char *code_unit(enum profile_unit unit);
