/* SPDX-License-Identifier: MIT */
/*
 * Input formats. A reader fills a profile from a file and checks everything that it reads. It knows no process, no ELF
 * file and no JVM.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "profile/profile.h"

#define READER_START 4096 /* size of the beginning of a file by which its format is recognised */
/* The event of files that do not say what was sampled; its unit is PROFILE_COUNT. Its name may go on: " of 0.001". */
#define READER_SAMPLES "samples"

struct gunzip;

/* An open file, which need not be seekable. */
struct reader_source {
	const char *name; /* for messages; not owned */
	int fd;
	uint64_t offset; /* of the next byte that reader_bytes() returns */
	unsigned char start[READER_START];
	size_t start_len; /* less than READER_START if the file is shorter */
	/* The file is compressed, and what is read from it is not. NULL: it is not, or its reader decompresses it. */
	struct gunzip *gunzip;
	struct buf warning; /* set by the reader: one sentence about what is missing in the profile; else "" */
};

struct reader {
	const char *name; /* of the format */
	const char *help;
	/* Returns true if a file with this beginning has this format. */
	bool (*claims)(const unsigned char *start, size_t len);
	/*
	 * Fills an empty profile after profile_init(). The times of samples and profile->start_ns are CLOCK_REALTIME.
	 * Returns 0, or -errno with one sentence in `why`, which does not name the file; then the profile may contain a
	 * part of it.
	 */
	int (*read)(struct profile *profile, struct reader_source *source, struct buf *why);
};

/* The first reader that claims a file reads it. */
#define READERS(X) X(duet) X(jfr) X(otlp) X(pprof) X(html) X(perf) X(collapsed)
#define READER_DECLARE(name) extern const struct reader reader_##name;
READERS(READER_DECLARE)
/* Ends with NULL. */
extern const struct reader *const readers[];

/* "-" is stdin. Returns 0, or -errno with one sentence in `why`. */
int reader_open(struct reader_source *source, const char *path, struct buf *why);
void reader_close(struct reader_source *source);
/* Reads the next `len` bytes. Returns their number, which is smaller only at the end of the file, or -errno. */
ssize_t reader_bytes(struct reader_source *source, void *bytes, size_t len);
/* True if it has no bytes like those before the numbers of a binary message. */
bool reader_is_text(const unsigned char *start, size_t len);
/* Finds the reader for the file and calls it. Returns as reader.read(). */
int reader_read(struct reader_source *source, struct profile *profile, struct buf *why);
