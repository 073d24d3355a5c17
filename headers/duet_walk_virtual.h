/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Which virtual thread is mounted on a JavaThread, and its name, from HotSpot's structures and the Java objects. As
 * duet_walk.h the same code runs in BPF, in the agent, which tries it before it publishes the layout, and in tests;
 * who includes it has defined walk_read() before, whose `at` is NULL here.
 *
 * Nothing here waits for a collector: an object that is being moved gives its old copy, or nothing, or for once a
 * wrong name.
 */
#ifndef DUET_WALK_VIRTUAL_H
#define DUET_WALK_VIRTUAL_H

#include "duet_jvm.h"
#include "duet_record.h"

static inline uint64_t virtual_word(uint64_t address)
{
	uint64_t word;

	return walk_read(0, &word, sizeof(word), address) ? 0 : word;
}

/* The object that a field of another refers to, or 0. */
static inline uint64_t virtual_object(const struct duet_jvm_virtual *layout, uint64_t field)
{
	uint32_t narrow;

	if (layout->oop_bytes != sizeof(narrow))
		return virtual_word(field);
	return walk_read(0, &narrow, sizeof(narrow), field) || !narrow
		       ? 0
		       : layout->oop_base + ((uint64_t)narrow << (layout->oop_shift & 63));
}

/* The JavaThread that is at this address, or 0. */
static inline uint64_t virtual_carrier(const struct duet_jvm_virtual *layout, uint64_t address)
{
	return address && virtual_word(address) == layout->thread_vtable ? address : 0;
}

/* The name of this java.lang.Thread. */
static inline void virtual_name(const struct duet_jvm_virtual *layout, uint64_t object, struct duet_virtual_thread *to)
{
	uint64_t string = virtual_object(layout, object + layout->object_name);
	uint64_t array = string ? virtual_object(layout, string + layout->string_value) : 0;
	uint32_t bytes;

	if (!array || walk_read(0, &to->is_utf16, 1, string + layout->string_coder) ||
	    walk_read(0, &bytes, sizeof(bytes), array + layout->array_length))
		return;
	if (bytes > DUET_MAX_VIRTUAL_NAME)
		bytes = DUET_MAX_VIRTUAL_NAME;
	__asm__("" : "+r"(bytes)); /* else the bound is made in a copy of it, which the verifier does not see */
	if (bytes <= DUET_MAX_VIRTUAL_NAME && !walk_read(0, to->name, bytes, array + layout->array_bytes))
		to->name_bytes = (uint8_t)bytes;
}

/* Without a look into objects: JDK 25+. */
static inline uint64_t virtual_id_of_entry(const struct duet_jvm_virtual *layout, uint64_t java_thread)
{
	if (layout->thread_owner == DUET_JVM_NO_FIELD || layout->thread_entry == DUET_JVM_NO_FIELD ||
	    !virtual_word(java_thread + layout->thread_entry))
		return 0;
	return virtual_word(java_thread + layout->thread_owner);
}

/* What is mounted on the JavaThread. *to is all 0. Also where that runs the carrier's code for it, nothing is. */
static inline void virtual_mounted(const struct duet_jvm_virtual *layout, uint64_t java_thread,
				   struct duet_virtual_thread *to)
{
	uint64_t object, current;

	if (!layout->oop_bytes) {
		to->id = virtual_id_of_entry(layout, java_thread);
		return;
	}
	object = virtual_word(virtual_word(java_thread + layout->thread_object));
	current = virtual_word(virtual_word(java_thread + layout->thread_current));
	if (!object || !current || object == current)
		return;
	to->id = virtual_word(current + layout->object_id);
	if (to->id == virtual_word(object + layout->object_id)) /* it is moving: these are both copies */
		to->id = 0;
	if (to->id)
		virtual_name(layout, current, to);
}

#endif
