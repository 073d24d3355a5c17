/* SPDX-License-Identifier: MIT */
/* Reads a file that was compressed with gzip piece by piece, as if it were not compressed. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct gunzip;

/* `start` are the bytes that were already read from `fd`, which is not owned. Returns NULL when out of memory. */
struct gunzip *gunzip_open(int fd, const unsigned char *start, size_t len);
/*
 * Returns the number of bytes, 0 at the end, or -errno: -EILSEQ if the file is damaged, ends too early, or becomes more
 * than 200 times as long.
 */
ssize_t gunzip_read(struct gunzip *gunzip, void *bytes, size_t len);
void gunzip_close(struct gunzip *gunzip); /* does nothing for NULL */
