/* SPDX-License-Identifier: MIT */
/* The dictionary of an OTLP file: tables of packed elements, of which the first is empty. */
#ifndef WRITERS_OTLP_DICTIONARY_H
#define WRITERS_OTLP_DICTIONARY_H

#include <stdio.h>

#include "base/buf.h"

/* Fields of the message Dictionary. */
enum table { TABLE_MAPPINGS = 1, TABLE_LOCATIONS, TABLE_FUNCTIONS, TABLE_LINKS, TABLE_STRINGS, TABLE_ATTRIBUTES,
	     TABLE_STACKS };

struct otlp_dictionary {
	struct buf tables[TABLE_STACKS + 1]; /* the caller appends elements with their field, see packing.h */
};

void otlp_dictionary_init(struct otlp_dictionary *dictionary);
void otlp_dictionary_release(struct otlp_dictionary *dictionary);

/* Writes it as this field of the file's message. Returns 0, or -ENOMEM if an element is missing. */
int otlp_dictionary_write(const struct otlp_dictionary *dictionary, unsigned int field, FILE *out);
/* The same as an object of JSON, without a key. */
int otlp_dictionary_write_json(const struct otlp_dictionary *dictionary, FILE *out);

#endif
