/* SPDX-License-Identifier: MIT */
/* Finds the attributes of a sample that has passed record_check(). */
#pragma once

#include <stddef.h>

#include "duet_record.h"

/* Returns the first attribute of this type, which is part of the sample; NULL if there is none. */
static inline const struct duet_attribute *attribute_find(const struct duet_sample *sample,
							  enum duet_attribute_type type)
{
	const unsigned char *end = (const unsigned char *)sample + sample->head.size;
	const unsigned char *at = end - sample->attribute_bytes;

	while (at < end) {
		const struct duet_attribute *attribute = (const struct duet_attribute *)at;

		if (attribute->type == type)
			return attribute;
		at += duet_attribute_size(attribute->bytes);
	}
	return NULL;
}

/* Returns the value of an attribute that is a number, 0 if there is none. */
static inline uint64_t attribute_number(const struct duet_sample *sample, enum duet_attribute_type type)
{
	const struct duet_attribute *attribute = attribute_find(sample, type);

	return attribute ? *(const uint64_t *)(attribute + 1) : 0;
}
