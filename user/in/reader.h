/* SPDX-License-Identifier: MIT */
/*
 * Input formats: profiles in files. A reader fills a profile from bytes that it trusts in nothing. It knows no process,
 * no ELF file and no JVM.
 */
#ifndef IN_READER_H
#define IN_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "profile/profile.h"

#define READER_START 4096 /* bytes at the beginning of a file, from which its format is recognised */

/* An open file, read from its beginning to its end. It need not be seekable. */
struct reader_source {
	const char *name; /* for messages; not owned */
	int fd;
	uint64_t offset; /* of the next byte that reader_bytes() gives */
	unsigned char start[READER_START];
	size_t start_len; /* less than READER_START when the whole file is shorter */
	struct buf warning; /* one sentence of the reader's, when the profile is whole but for what it says; else "" */
};

struct reader {
	const char *name; /* of the format */
	const char *help;
	/* True when a file that begins with these bytes, or consists of them, is of this format. */
	bool (*claims)(const unsigned char *start, size_t len);
	/*
	 * Fills an empty profile, whose strings are set up by profile_init(). The times of the samples are of the
	 * realtime clock, and so is profile->start_ns. Returns 0, or -errno with one sentence in `why`, which names
	 * neither the program nor the file; then the profile may hold a part.
	 */
	int (*read)(struct profile *profile, struct reader_source *source, struct buf *why);
};

/* All of them, the first one that claims a file reads it; ends with NULL. */
extern const struct reader *const readers[];

/* "-" is stdin. Returns 0, or -errno with one sentence in `why`. */
int reader_open(struct reader_source *source, const char *path, struct buf *why);
void reader_close(struct reader_source *source);
/* Gives the next `len` bytes. Returns their number, which is less only at the end of the file, or -errno. */
ssize_t reader_bytes(struct reader_source *source, void *bytes, size_t len);
/* Finds the reader and calls it. Returns as it does. */
int reader_read(struct reader_source *source, struct profile *profile, struct buf *why);

#endif
