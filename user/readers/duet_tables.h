/* SPDX-License-Identifier: MIT */
/* Adds the rows of a .duet file to the tables of a profile. Checks every number before it is used. */
#ifndef READERS_DUET_TABLES_H
#define READERS_DUET_TABLES_H

#include "base/buf.h"
#include "base/vec.h"
#include "profile/layout.h"
#include "profile/profile.h"

/* Row number in the file, since numbers last began again -> index in the profile. */
struct duet_numbers vec(uint32_t);

struct duet_tables {
	struct profile *profile;
	struct duet_numbers texts, events, frames, owners, threads, nodes;
	struct duet_numbers depths; /* depth of each node of the profile */
	struct layout_times times; /* the times that were read last */
	uint64_t text_bytes; /* of all strings read */
	uint64_t samples; /* rows read */
	uint64_t file_bytes; /* set by the caller: read so far */
};

void duet_tables_init(struct duet_tables *tables, struct profile *profile);
void duet_tables_release(struct duet_tables *tables);
/* Begins row numbers again. Returns 0 or -ENOMEM. */
int duet_tables_anew(struct duet_tables *tables);
/*
 * Adds the rows of a section, whose uncompressed data are `bytes`. Skips a section of unknown type. Returns 0, or
 * -errno with the cause in `why`.
 */
int duet_tables_add(struct duet_tables *tables, const struct layout_section *section, const unsigned char *bytes,
		    struct buf *why);
/* Call after the last section: sets the profile's times. */
void duet_tables_finish(struct duet_tables *tables);

#endif
