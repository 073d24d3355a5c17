/* SPDX-License-Identifier: MIT */
/* Finds which types of a JFR file are samples, their events, and the settings of these. */
#pragma once

#include "readers/jfr/constants.h"

enum jfr_slot { JFR_TIME, JFR_SAMPLED, JFR_STACK, JFR_CLASS, JFR_WEIGHT, JFR_SAMPLES, JFR_ADDRESS, JFR_TAG };

/* Who wrote a chunk. A file may have chunks of several, in any order. */
enum jfr_maker { JFR_OF_JDK, JFR_OF_ASYNC_PROFILER, JFR_OF_DUET };

/* A type of samples of one maker. Settings stay from chunk to chunk. */
struct jfr_kind {
	uint32_t type; /* its name, one of the profile's strings */
	enum jfr_maker maker;
	uint32_t name; /* name of its event */
	uint32_t usual; /* its event has this name, if no other event has it at the end of the file; 0 = none */
	enum profile_unit unit;
	uint64_t interval; /* 0 = not known */
	bool has_unit; /* a setting has the unit */
	bool is_ticks; /* the weight is a length of time */
	/* the type has these fields; without them a sample counts once, and weighs the interval */
	bool has_weight, has_samples;
	bool has_tag; /* a text is the only frame */
	bool is_of_user; /* the text is the data of an event of the program's own, whose type is its caller */
	bool has_state; /* of the thread, in place of an address */
	bool is_outside; /* its objects were allocated outside of their thread's buffer */
	bool has_birth; /* of the object, in place of an address */
	bool is_object; /* the class is that of a row of jdk.types.OldObject */
	bool is_duration; /* the weight is the time from the event's start to the sample's time */
	bool is_other; /* its unit follows from its events */
	bool is_met; /* the file has a sample of it */
	uint32_t event; /* index in the profile; UINT32_MAX = not added yet */
	/* async-profiler can write wall clock and CPU time as jdk.ExecutionSample, which then differ in the state */
	uint64_t wall_interval; /* 0: not known */
	uint32_t wall; /* index of the event in the profile; UINT32_MAX = not added yet */
};

struct jfr_kinds {
	struct profile *profile;
	enum jfr_maker maker; /* of this chunk */
	struct vec(struct jfr_kind) items;
};

void jfr_kinds_release(struct jfr_kinds *kinds);
/* Sets the slots and `use` of all types of samples: the index of their kind, else -1. 0 or -ENOMEM. */
int jfr_kinds_begin(struct jfr_kinds *kinds, struct jfr_types *types);
/* Applies a setting of an event; `kind` is NULL for a setting of the whole recording. `value` is a string's id. */
void jfr_kinds_set(struct jfr_kinds *kinds, struct jfr_kind *kind, const char *name, uint32_t value);
/* The chunk has an event of this kind, and these values if it is one of `is_other`, which may have no stack ever. */
void jfr_kind_note(struct jfr_kind *kind, const struct jfr_value values[JFR_SLOTS]);
/*
 * Adds the events of all kinds of which there are samples. CPU time is the first, whatever the order in the file. 0 or
 * -ENOMEM.
 */
int jfr_kinds_add_events(struct jfr_kinds *kinds);
/* Names the events that depend on what else is in the file. */
void jfr_kinds_end(struct jfr_kinds *kinds);
