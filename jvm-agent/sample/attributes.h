/* SPDX-License-Identifier: MIT */
/* The attributes of samples of taps, in the layout of struct duet_attribute. */
#pragma once

#include "duet_record.h"

/* The class of an object. */
struct class_attribute {
	struct duet_attribute head;
	char name[DUET_MAX_CLASS_BYTES];
};

/* The address of a piece of memory. */
struct address_attribute {
	struct duet_attribute head;
	uint64_t address;
};

/* A wait for a lock. */
struct lock_attribute {
	struct duet_attribute head;
	struct duet_lock lock;
};

/* Both return the bytes to send. */
uint32_t lock_attribute_set(struct lock_attribute *to, uint64_t id, uint64_t begin_ns, uint32_t owner);
uint32_t address_attribute_set(struct address_attribute *to, uint64_t address);

/* What the time of a sample was spent on. */
struct state_attribute {
	struct duet_attribute head;
	char text[DUET_MAX_STATE_BYTES];
};

/* Fills *to. Returns the bytes to send. A long text is cut. */
uint32_t state_attribute_set(struct state_attribute *to, const char *text);

/* Fills *to from a class's signature, which is cut if it is too long. Returns the bytes to send; 0 if it is NULL. */
uint32_t class_attribute_set(struct class_attribute *to, const char *signature);
