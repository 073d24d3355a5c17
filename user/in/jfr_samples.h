/* SPDX-License-Identifier: MIT */
/* Which types of a JFR file are samples, of which event, and what the file says about them. */
#ifndef IN_JFR_SAMPLES_H
#define IN_JFR_SAMPLES_H

#include "in/jfr_constants.h"

enum jfr_slot { JFR_TIME, JFR_SAMPLED, JFR_STACK, JFR_CLASS, JFR_WEIGHT, JFR_SAMPLES };

/* A type of samples. Settings stay from chunk to chunk. */
struct jfr_kind {
	uint32_t type; /* its name, one of the profile's strings */
	uint32_t name; /* of the event */
	enum profile_unit unit;
	uint64_t interval; /* 0 = not known */
	bool has_unit; /* a setting has it */
	bool is_ticks; /* the weight is a length of time */
	bool has_weight, has_samples; /* fields of the type; else a sample is one, and weighs the interval */
	bool is_met; /* there is a sample of it */
	uint32_t event; /* index in the profile; UINT32_MAX = not added yet */
};

struct jfr_kinds {
	struct profile *profile;
	struct vec(struct jfr_kind) items;
};

void jfr_kinds_release(struct jfr_kinds *kinds);
/* Sets the slots and `use` of all types of samples: the index of their kind, else -1. 0 or -ENOMEM. */
int jfr_kinds_begin(struct jfr_kinds *kinds, struct jfr_types *types);
/* A setting of an event; NULL for one that concerns the whole recording. */
void jfr_kinds_set(struct jfr_kinds *kinds, struct jfr_kind *kind, const char *name, const char *value);
/* Adds the events of all kinds that were met: CPU time first, whatever came first in the file. 0 or -ENOMEM. */
int jfr_kinds_add_events(struct jfr_kinds *kinds);

#endif
