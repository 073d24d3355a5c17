/* SPDX-License-Identifier: MIT */
/* The types that a chunk of a JFR file describes, and the values of these types. */
#pragma once

#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "readers/jfr/bytes.h"

#define JFR_SLOTS 8
#define JFR_SLOTS_WIDE 24
#define JFR_TYPES_NEAR 4096

/* The fields of a type that the reader wants, in the order of their slots. */
struct jfr_wanted {
	const char *type;
	const char *fields[JFR_SLOTS_WIDE];
};

enum jfr_primitive { JFR_STRUCTURE, JFR_NUMBER, JFR_ONE_BYTE, JFR_FOUR_BYTES, JFR_EIGHT_BYTES, JFR_STRING };

struct jfr_field {
	uint32_t name;
	uint64_t class_id;
	uint32_t type; /* index in `types`; UINT32_MAX = not described */
	int slot; /* index of the value in the reader's list; -1 = not wanted */
	bool is_of_pool, is_array;
	bool is_number; /* one number and nothing else: most fields */
};

struct jfr_type {
	uint64_t id;
	uint32_t name;
	size_t first, count; /* of its fields */
	enum jfr_primitive primitive;
	int use; /* set by the caller */
};

struct jfr_types {
	struct intern names;
	struct vec(uint32_t) strings; /* of the metadata: names */
	struct vec(struct jfr_type) types;
	struct vec(struct jfr_field) fields;
	struct map ids; /* id of a type -> index */
	struct map named; /* its name -> index of the first of that name */
	uint32_t near[JFR_TYPES_NEAR]; /* the same of small ids, plus 1: each event looks its type up */
};

/*
 * The value of a field: a number, the bits of a float, the key of a pool, or a string. `at` and `end`: where it begins
 * and ends.
 */
struct jfr_value {
	uint64_t number;
	struct jfr_text text;
	size_t at, end;
};

int jfr_types_init(struct jfr_types *types); /* 0 or -ENOMEM */
void jfr_types_release(struct jfr_types *types);
/* Replaces the types by those that the metadata event at the cursor describes. 0, or -errno with the cause in `why`. */
int jfr_types_read(struct jfr_types *types, struct jfr_cursor cursor, struct buf *why);
struct jfr_type *jfr_type_by_id(const struct jfr_types *types, uint64_t id); /* NULL: there is none */
struct jfr_type *jfr_type_named(const struct jfr_types *types, const char *name); /* NULL: there is none */
/* Finds the type, and sets the slots of the fields that are wanted of it. NULL: there is none. */
const struct jfr_type *jfr_type_wanted(struct jfr_types *types, const struct jfr_wanted *wanted);
const char *jfr_type_name(const struct jfr_types *types, const struct jfr_type *type);
/* Sets the slot of the field with this name, if the type has it. */
bool jfr_want(struct jfr_types *types, const struct jfr_type *type, const char *field, int slot);
/*
 * Reads a value of the type, and stores the fields whose slot is below `slots` in `values`. Returns false if the value
 * extends past the cursor's end.
 */
bool jfr_read(const struct jfr_types *types, const struct jfr_type *type, struct jfr_cursor *cursor,
	      struct jfr_value *values, int slots);
/* The same, and stores nothing. */
bool jfr_skip_value(const struct jfr_types *types, const struct jfr_type *type, struct jfr_cursor *cursor);
