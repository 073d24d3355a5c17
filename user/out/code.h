/* SPDX-License-Identifier: MIT */
/* Where the code of a frame is, for formats with tables of files and functions. */
#ifndef OUT_CODE_H
#define OUT_CODE_H

#include "base/buf.h"
#include "profile/profile.h"

/* Appends the name of the file that has the code; "[kernel]", "[compiled]" and so on stand for code in no file. */
void code_file(const struct profile *profile, const struct frame *frame, struct buf *out);
/* The build id of libjvm.so, if all JVMs have the same; "" for other files, of which the profile has none. */
const char *code_build_id(const struct profile *profile, const char *file);
/* Appends the name that identifies the code in every style: java.lang.String.charAt(I)C, or the symbol. */
void code_name(const struct profile *profile, const struct frame *frame, struct buf *out);

#endif
