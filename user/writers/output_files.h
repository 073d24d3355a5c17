/* SPDX-License-Identifier: MIT */
/*
 * The output files of a recording. All are opened before it begins. They are written at its end, or during it if their
 * format allows. A file that cannot be written goes to another folder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/vec.h"
#include "writers/writer.h"

#define OUTPUT_FILES_LIMIT "--max-file" /* begins the name of the limit in what is reported */

/* One file. An output has one file, or one for each event. */
struct output_file {
	char *file; /* owned; NULL = stdout */
	const struct writer *writer;
	uint32_t event;
	struct io_output io;
	struct writer_stream *stream; /* for a file written during the recording */
	int stream_error; /* -errno of the first failure, after which nothing more is appended */
};

struct output_files {
	struct profile *profile; /* not owned, like the two below it */
	const struct writer_options *style;
	const struct io_access *access; /* permissions of the files */
	struct vec(struct output_file) all;
	bool is_thin; /* it was reported that fewer samples are kept */
	uint64_t streamed_ns; /* last time that files were appended to; 0 = no file is written during the recording */
};

void output_files_init(struct output_files *files, struct profile *profile, const struct writer_options *style,
		       const struct io_access *access);
/*
 * Opens the file, NULL for stdout. If a file of the format has only one event, opens one file for each event of the
 * profile. Returns 0, or -errno after reporting the error.
 */
int output_files_add(struct output_files *files, const struct writer *writer, const char *file);
bool output_files_have_notes(const struct output_files *files); /* true if one of the formats keeps notes */
bool output_files_have_streams(const struct output_files *files);
/* True if the report for people, which begins with the headline, goes to the terminal that stderr is. */
bool output_files_show_headline(const struct output_files *files);
/* Begins the files that are written during the recording. Call when ticks have started; reports errors. */
void output_files_begin(struct output_files *files, uint64_t now_ns);
/* Appends when it is time. As the files near profile.thinning.max_bytes, fewer samples are kept; reports that once. */
void output_files_step(struct output_files *files, uint64_t now_ns);
void output_files_flush(struct output_files *files, uint64_t now_ns); /* appends now */
/* Call at the end. Appends the names of the files, with commas. Returns 0, or -errno after reporting the error. */
int output_files_write(struct output_files *files, struct buf *written);
void output_files_release(struct output_files *files); /* discards what was not written */
