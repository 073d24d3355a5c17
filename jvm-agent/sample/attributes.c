/* SPDX-License-Identifier: MIT */
#include "sample/sample.h"

#include <stddef.h>
#include <string.h>

uint32_t class_attribute_set(struct class_attribute *to, const char *signature)
{
	size_t len = signature ? strnlen(signature, sizeof(to->name)) : 0;

	if (!len)
		return 0;
	*to = (struct class_attribute){.head = {.type = DUET_ATTRIBUTE_CLASS, .bytes = (uint16_t)len}};
	memcpy(to->name, signature, len);
	return duet_attribute_size((uint32_t)len);
}

uint32_t address_attribute_set(struct address_attribute *to, uint64_t address)
{
	*to = (struct address_attribute){
		.head = {.type = DUET_ATTRIBUTE_ADDRESS, .bytes = sizeof(to->address)}, .address = address};
	return sizeof(*to);
}

uint32_t lock_attribute_set(struct lock_attribute *to, uint64_t id, uint64_t begin_ns, uint32_t owner)
{
	*to = (struct lock_attribute){.head = {.type = DUET_ATTRIBUTE_LOCK, .bytes = sizeof(to->lock)},
				      .lock = {.id = id, .begin_ns = begin_ns, .owner = owner}};
	return sizeof(*to);
}

uint32_t state_attribute_set(struct state_attribute *to, const char *text)
{
	size_t len = strnlen(text, sizeof(to->text));

	*to = (struct state_attribute){.head = {.type = DUET_ATTRIBUTE_STATE, .bytes = (uint16_t)len}};
	memcpy(to->text, text, len);
	return duet_attribute_size((uint32_t)len);
}
