/* SPDX-License-Identifier: MIT */
/* Reads bytes as a pprof file. */
#ifndef FUZZ_READ_PPROF_H
#define FUZZ_READ_PPROF_H

#include <stdio.h>

#include "fuzz.h"
#include "in/readers.h"

/*
 * Fills a new profile, which the caller releases in any case. Returns 0 or -errno, and checks that a failure has a
 * cause.
 */
static int read_pprof(struct profile *profile, const void *bytes, size_t len)
{
	struct reader_source source;
	struct buf why;
	char path[32];
	int fd = input_file(bytes, len), err;

	buf_init(&why);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	FUZZ_CHECK(!profile_init(profile) && !reader_open(&source, path, &why));
	(void)reader_pprof.claims(source.start, source.start_len);
	err = reader_pprof.read(profile, &source, &why);
	FUZZ_CHECK(err <= 0 && !err == !why.len);
	reader_close(&source);
	buf_release(&why);
	close(fd);
	return err;
}

#endif
