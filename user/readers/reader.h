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
	struct gunzip *gunzip; /* the file is compressed, and what is read from it is not; NULL: it is not */
	struct profile *profile; /* that is read: the more bytes were read, the more room it has; or NULL */
	struct buf warning; /* set by the reader: one sentence about what is missing in the profile; else "" */
};

struct reader {
	const char *name; /* of the format */
	const char *help;
	/* Returns true if a file with this beginning has this format. */
	bool (*claims)(const unsigned char *start, size_t len);
	/*
	 * Fills an empty profile after profile_init(). The times of samples and profile->start_ns are CLOCK_REALTIME.
	 * Returns 0, or -errno; the profile may then contain a part of the file. `why` has the cause, or is empty where
	 * the error's own text says it.
	 */
	int (*read)(struct profile *profile, struct reader_source *source, struct buf *why);
};

/* The first reader that claims a file reads it. */
#define READERS(X) X(duet) X(jfr) X(otlp) X(pprof) X(html) X(perf) X(collapsed)
#define READER_DECLARE(name) extern const struct reader reader_##name;
READERS(READER_DECLARE)
/* Ends with NULL. */
extern const struct reader *const readers[];

/* "-" is stdin. Returns a descriptor or -errno. */
int reader_open_file(const char *path);
/* Takes ownership of the descriptor or -errno. Returns 0, or -errno with one sentence in `why`. */
int reader_begin(struct reader_source *source, const char *name, int fd, struct buf *why);
void reader_close(struct reader_source *source);
/* Reads the next `len` bytes. Returns their number, which is smaller only at the end of the file, or -errno. */
ssize_t reader_bytes(struct reader_source *source, void *bytes, size_t len);
/*
 * Appends the next `len` bytes, as far as the file has them. Returns 1, 0 if it ends before that, or -errno: -EFBIG for
 * a small file with large contents.
 */
int reader_append(struct reader_source *source, size_t len, struct buf *to);
/* Appends the whole file, at most `max` bytes. Returns as reader.read(). */
int reader_contents(struct reader_source *source, size_t max, struct buf *to, struct buf *why);
uint64_t reader_stored_bytes(const struct reader_source *source); /* read so far, compressed if the file is */
/* True if it has no bytes like those before the numbers of a binary message. */
bool reader_is_text(const unsigned char *start, size_t len);

/* Adds `count` samples, which weigh sample.weight together, in parts that fit their field. As profile_add(). */
int reader_add(struct profile *profile, struct profile_sample sample, uint64_t count);

/*
 * Returns 0, or -errno with one sentence in `why`, which does not name the file. The profile gets no more stacks then:
 * others are made of it (profile/merge.h).
 */
int reader_read_as(const struct reader *reader, struct reader_source *source, struct profile *profile, struct buf *why);
/* The same with the reader that claims the file. */
int reader_read(struct reader_source *source, struct profile *profile, struct buf *why);
