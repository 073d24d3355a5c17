/* SPDX-License-Identifier: MIT */
/* Compresses the bytes that are written to a stream, as gzip does. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include <zlib.h>

struct gzip {
	z_stream z;
	FILE *out; /* not owned */
	unsigned char packed[65536];
};

int gzip_open(struct gzip *gzip, FILE *out); /* 0 or -ENOMEM */
void gzip_add(struct gzip *gzip, const void *bytes, size_t len); /* the stream keeps errors of writing */
void gzip_close(struct gzip *gzip); /* writes the rest */
