/* SPDX-License-Identifier: MIT */
/*
 * The samples of a class, a method or a function by source line, and by index of the bytecode or by instruction, for
 * `duet annotate`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "writers/shared/tree.h"
#include "writers/writer.h"

/*
 * A line of a source file, or an instruction of a method. Samples count once, however often the line is on their
 * stacks.
 */
struct annotation_row {
	uint32_t module; /* the source file; this and the three below are interned, 0 = not known */
	uint32_t class_name; /* in rows of lines its package, of the annotation's strings */
	uint32_t name, signature; /* 0 in rows of lines of Java code */
	int32_t line; /* 0 = not known */
	int32_t bci; /* -1 = not known; an offset in native code; 0 in rows of lines */
	struct tree_weight self, total;
};

struct annotation_rows vec(struct annotation_row);

/* The text of a source file. A vec of the offsets of its lines. */
struct source_text {
	struct buf text;
	size_t *items;
	size_t len;
	size_t size;
};

struct code_line {
	uint32_t offset; /* of the instruction from the function's start, in bytes */
	size_t text_at; /* of its text, which ends with a NUL */
};

/* The instructions of a native function. A vec, by offset. */
struct code_text {
	struct buf text;
	struct code_line *items;
	size_t len;
	size_t size;
};

/*
 * Finds the instructions of a function of a module ("libc.so.6"). Returns NULL if they are not known. Owned by the
 * context; it is the same for each call with these names.
 */
typedef const struct code_text *(*annotation_code)(void *context, const char *module, const char *name);

struct annotation {
	const struct profile *profile; /* not owned */
	const char *target; /* as the user gave it */
	annotation_code code; /* set before annotation_build(); NULL: no instructions are known */
	void *code_context;
	struct intern packages;
	struct annotation_rows lines; /* sorted by file and line */
	struct annotation_rows codes; /* sorted by method and index */
	struct tree_weight all; /* of the event */
	struct tree_weight self, total; /* of the target: ends in it, passes through it */
};

/*
 * Fills `annotation`, which is {0} but for its code. `target` is a class, with or without its package, whose inner
 * classes belong to it; Class.method; or the name of a function. Returns 0, or -ENOENT if no frame of the
 * event has the name, or -errno; there is nothing to release then.
 */
int annotation_build(struct annotation *annotation, const struct profile *profile, const char *target,
		     const struct writer_options *options);
void annotation_release(struct annotation *annotation);

/*
 * Finds the source text of a file: `package` is "com/acme" or "", `file` "Main.java". Returns NULL if it is not there.
 * Owned by the context; valid until the next call.
 */
typedef const struct source_text *(*annotation_source)(void *context, const char *package, const char *file);

/* How it is written. */
struct annotation_view {
	const struct annotation *annotation;
	const struct writer_options *options;
	annotation_source source; /* NULL: no source text */
	void *source_context;
};

/* Write to `out`; 0 or the -errno of the stream. */
int annotation_write_text(const struct annotation_view *view, FILE *out);
int annotation_write_html(const struct annotation_view *view, FILE *out);
