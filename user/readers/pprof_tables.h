/* SPDX-License-Identifier: MIT */
/*
 * The tables of a pprof file: strings, value types, and the frames of each location. Every reference between its
 * messages is checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "readers/reader.h"

/* Reads the fields of a protobuf message without unpacking it, so that a large one needs no copy. */

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire {
	const unsigned char *bytes;
	size_t len;
	size_t at;
};

struct wire_field {
	uint32_t number;
	enum wire_type type;
	uint64_t value; /* of a number */
	const unsigned char *bytes; /* of WIRE_BYTES */
	size_t len;
};

/* Returns 1, 0 at the end, or -EINVAL at wire->at when there is no complete field. */
int wire_next(struct wire *wire, struct wire_field *ret);
/* Reads a number of a packed field. Returns as wire_next(). */
int wire_varint(struct wire *wire, uint64_t *ret);

#define PPROF_DEPTH_MAX 65536 /* frames of a stack */
#define PPROF_CONTENTS_MAX ((size_t)1 << 30)
#define PPROF_LABEL_MAX 4096 /* bytes of a text of a resource */
#define PPROF_ROWS_FREE (1ull << 20) /* of each table, and one more for each byte of the file */

struct pprof_text {
	const unsigned char *bytes;
	size_t len;
};

/* One of the values of each sample: the number of samples or the weight of an event, or both. */
struct pprof_value {
	int64_t type, unit; /* strings */
	uint32_t event;
	uint64_t scale; /* factor to the unit of the event */
	bool is_count, is_weight;
};

/* Sum of one event, in one sample. */
struct pprof_sum {
	uint64_t count, weight;
};

struct pprof_place {
	uint32_t first; /* index in `frames`, root first */
	uint32_t count;
};

/* What a string means in frames, as strings of the profile. Cached: many frames may use a string of 1 MB. */
struct pprof_meaning {
	uint32_t class_name, name, signature; /* as the name of a method */
	uint32_t module, file; /* as the name of a mapping: the module in frames, and the file */
	enum frame_kind kind;
	bool has_method, has_mapping;
};

struct pprof_file {
	struct profile *profile;
	struct wire file;
	struct buf *why;
	struct vec(struct pprof_text) strings;
	struct vec(uint32_t) ids; /* string -> the profile's id; UINT32_MAX = not interned yet */
	struct vec(struct pprof_meaning) meanings; /* of strings */
	struct vec(struct pprof_value) values;
	struct vec(Pprof__Mapping) mappings; /* the pointers in them are not valid, nor are those of the functions */
	struct vec(Pprof__Function) functions;
	struct vec(struct pprof_place) places;
	struct vec(uint32_t) frames; /* of the profile */
	struct map mapping_ids, function_ids, location_ids; /* id in the file -> index */
	struct vec(uint32_t) stack;
	struct vec(struct pprof_sum) sums; /* by event */
	struct map threads; /* hash of a row -> the profile's */
	uint64_t total_frames; /* of the stacks of all samples */
	uint64_t samples;
	uint64_t rows_max; /* of each table; follows from the bytes of the file: equal rows compress to nearly none */
	uint32_t comments;
	Pprof__Profile head;
};

/* Fills all tables except `ids`, which pprof_intern() fills. Returns 0, or -errno; the cause may be in p->why. */
int pprof_read_tables(struct pprof_file *p);
void pprof_file_release(struct pprof_file *p);

/*
 * Rows of the tables one by one, for formats with the same tables: strings first, then mappings and functions, then
 * locations. Each returns 0 or -errno; the cause may be in p->why.
 */
int pprof_add_string(struct pprof_file *p, struct pprof_text text);
int pprof_add_mapping(struct pprof_file *p, const Pprof__Mapping *mapping);
int pprof_add_function(struct pprof_file *p, const Pprof__Function *function);
int pprof_add_location(struct pprof_file *p, const Pprof__Location *location);
/* Stores the node of a stack of locations, leaf first. A stack of only "[unknown]" is the empty one. */
int pprof_stack(struct pprof_file *p, const uint64_t *locations, size_t count, uint32_t *ret_node);
enum profile_unit pprof_unit(const struct pprof_file *p, struct pprof_value *value); /* sets value->scale, too */
/* Adds the value's event, and sets its scale. Returns the event's index, or UINT32_MAX. */
uint32_t pprof_event(struct pprof_file *p, struct pprof_value *value, uint64_t interval);

/* Sets p->why, unless it is set already. Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int pprof_refuse(struct pprof_file *p, const char *format, ...);
/* Returns 0, or -EINVAL with a sentence when a table has more rows than its file can have honestly. */
int pprof_has_room(struct pprof_file *p, uint64_t rows);
/* Visits the fields of the whole file until the visitor returns an error. */
typedef int (*pprof_visitor)(struct pprof_file *p, const struct wire_field *field);
int pprof_each(struct pprof_file *p, pprof_visitor visit);
/* The message in this field, or NULL. The caller declares it PPROF_OWNED: it is freed at the end of its scope. */
void *pprof_unpack(struct pprof_file *p, const struct wire_field *field, const ProtobufCMessageDescriptor *type);
#define PPROF_OWNED __attribute__((cleanup(pprof_drop)))
void pprof_drop(void *message); /* the address of a pointer, which may be NULL */

/* A string of the file; "" if it does not exist. */
struct pprof_text pprof_text(const struct pprof_file *p, int64_t string);
bool pprof_is_text(const struct pprof_file *p, int64_t string, const char *text);
bool pprof_has_strings(const struct pprof_file *p, const int64_t *strings, size_t count);
bool pprof_text_is(struct pprof_text have, const char *text);
/*
 * The row of a sample's thread: names are strings of the profile. Cached, because each sample names its thread. With
 * `virtual_id` as profile_thread_row().
 */
uint32_t pprof_thread(struct pprof_file *p, struct profile_thread row, const uint64_t *virtual_id);
/* The profile's id of a string, which is cut if it is longer than a message may be. */
uint32_t pprof_intern(struct pprof_file *p, int64_t string);
