/* SPDX-License-Identifier: MIT */
/* From the sections of a .duet file to the tables of a profile. Every number is checked before it is used. */
#ifndef IN_DUET_TABLES_H
#define IN_DUET_TABLES_H

#include "base/buf.h"
#include "base/vec.h"
#include "profile/layout.h"
#include "profile/profile.h"

/* The numbers of rows in the file, since they last began anew -> those in the profile. */
struct duet_numbers vec(uint32_t);

struct duet_tables {
	struct profile *profile;
	struct duet_numbers texts, events, frames, owners, threads, nodes;
	struct duet_numbers depths; /* of the profile's nodes */
	struct layout_times times; /* of the last section */
	uint64_t text_bytes; /* of all strings read */
};

void duet_tables_init(struct duet_tables *tables, struct profile *profile);
void duet_tables_release(struct duet_tables *tables);
/* Numbers of rows begin anew. Returns 0 or -ENOMEM. */
int duet_tables_anew(struct duet_tables *tables);
/*
 * Adds the rows of a section, `bytes` as unpacked; one of a type that is not known is skipped. Returns 0, or -errno
 * with what is wrong in `why`.
 */
int duet_tables_add(struct duet_tables *tables, const struct layout_section *section, const unsigned char *bytes,
		    struct buf *why);
/* Call after the last section: sets the profile's times. */
void duet_tables_finish(struct duet_tables *tables);

#endif
