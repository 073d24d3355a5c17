/* SPDX-License-Identifier: MIT */
/* What a JFR file says of JVMs and the machine beside samples: notes, usages and the host of the profile. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "readers/jfr/constants.h"

#define JFR_ABOUTS 15 /* types that are read */

/* A zeroed struct with the two pointers set, which are not owned, is valid. */
struct jfr_about {
	struct profile *profile;
	struct jfr_constants *constants;
	const struct jfr_type *types[JFR_ABOUTS]; /* NULL: the chunk has none */
	const struct jfr_type *space; /* of jdk.types.VirtualSpace; NULL: the same */
	struct map known; /* notes without a time, which each chunk repeats */
	struct vec(uint32_t) flags; /* "Name=value" of each flag that options set; strings of the profile */
};

void jfr_about_release(struct jfr_about *about);
void jfr_about_begin(struct jfr_about *about); /* begins a chunk whose types have been read */
/* The number of the type for jfr_about_add(), or -1: it is of samples, or not known. */
int jfr_about_find(const struct jfr_about *about, const struct jfr_type *type);
/*
 * Adds the contents of an event of this type, with JFR_SLOTS_WIDE slots. values[0] is the event's time, which `time_ns`
 * has in the profile's clock. Returns 0 or -ENOMEM.
 */
int jfr_about_add(struct jfr_about *about, int type, const struct jfr_value values[JFR_SLOTS_WIDE], uint64_t time_ns);
/* Called before the chunk's threads are read: their JVM has the flags that were found. */
void jfr_about_end(struct jfr_about *about);
