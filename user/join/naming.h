/* SPDX-License-Identifier: MIT */
/* Part of resolve.c: gives a spliced stack its names, and a place in the profile. */
#pragma once

#include "join/resolve.h"

/* Entries of each cache of the resolver, at most 12 MB. A full cache of stacks empties both. */
#define NAMING_MAX_ROWS (1u << 18)

/* A stack while it is named. */
struct naming {
	struct resolver *resolver;
	struct profile *profile;
	struct splice *splice; /* the stack as addresses */
	struct resolver_rows *rows; /* its frames in the profile, root first */
	struct process *process;
	const struct jvm *jvm; /* NULL for a sample of no JVM */
	struct jvm_moment then; /* time and state of classes of the sample */
	uint16_t sleep; /* its flags that are about a sleep */
	bool is_called; /* it was taken where Java code called the agent */
	bool is_runnable; /* see struct decision */
	uint32_t cpu, policy; /* as the sample has them; 0: the stack has no such frame */
	/* class of the object that the sample is about, which becomes the leaf; or NULL */
	const struct duet_attribute *object_class;
	const struct duet_attribute *resource; /* what its I/O is about, which becomes the leaf; or NULL */
	const struct duet_attribute *spent_on; /* what its time was spent on, which becomes the leaf; or NULL */
	/* what the program has reported, which is the whole stack: the tag of a span, or an event; or NULL */
	const struct duet_attribute *span;
	bool is_closed; /* nothing new is added to the profile, because it is full */
	bool is_final; /* no name in it can change, so it may be cached */
	uint64_t names_missing; /* Java frames that stay without a name */
};

/* Lists the code and the methods to ask the agent for. Method 0, unknown to AsyncGetCallTrace, has no name. */
void naming_list_wants(struct naming *n);
bool naming_is_one_mark(const struct splice *splice);
/* Returns the profile's node of the stack, or -ENOMEM, also if it is new and the profile is closed. */
int64_t naming_stack(struct naming *n);
