/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Finds the virtual thread that is mounted on a JavaThread, and its name, in HotSpot's structures and in Java objects.
 * The same code runs in BPF, in tests, and in the agent, which tries it before it publishes the layout. Whoever
 * includes this defines walk_read() first, as for walk/native.h; its `at` is NULL here.
 *
 * Nothing here waits for a garbage collector. For an object that is being moved, this reads the old copy, or nothing,
 * or in rare cases a wrong name.
 */
#pragma once

#include "duet_jvm.h"
#include "duet_record.h"

static inline uint64_t virtual_word(uint64_t address)
{
	uint64_t word;

	return walk_read(0, &word, sizeof(word), address) ? 0 : word;
}

/* Returns the object that the field at this address refers to, or 0. */
static inline uint64_t virtual_object(const struct duet_jvm_virtual *layout, uint64_t field)
{
	uint32_t narrow;

	if (layout->oop_bytes != sizeof(narrow))
		return virtual_word(field);
	return walk_read(0, &narrow, sizeof(narrow), field) || !narrow
		       ? 0
		       : layout->oop_base + ((uint64_t)narrow << (layout->oop_shift & 63));
}

/* Returns `address` if a JavaThread is there, else 0. */
static inline uint64_t virtual_carrier(const struct duet_jvm_virtual *layout, uint64_t address)
{
	return address && virtual_word(address) == layout->thread_vtable ? address : 0;
}

/* Reads the name of this java.lang.Thread. to->name_bytes stays 0 when it cannot be read. */
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
	/* otherwise the compiler checks the bound on a copy, and the verifier does not see it */
	__asm__("" : "+r"(bytes));
	if (bytes <= DUET_MAX_VIRTUAL_NAME && !walk_read(0, to->name, bytes, array + layout->array_bytes))
		to->name_bytes = (uint8_t)bytes;
}

/* JDK 25+: returns the id of the mounted virtual thread without reading objects, or 0. */
static inline uint64_t virtual_id_of_entry(const struct duet_jvm_virtual *layout, uint64_t java_thread)
{
	if (layout->thread_owner == DUET_JVM_NO_FIELD || layout->thread_entry == DUET_JVM_NO_FIELD ||
	    !virtual_word(java_thread + layout->thread_entry))
		return 0;
	return virtual_word(java_thread + layout->thread_owner);
}

/*
 * Finds the virtual thread that is mounted on the JavaThread. *to must be zero. It stays zero when none is mounted, and
 * while the carrier's own code runs for the mounted thread.
 */
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
	/* both references lead to copies of one object, which the collector is moving */
	if (to->id == virtual_word(object + layout->object_id))
		to->id = 0;
	if (to->id)
		virtual_name(layout, current, to);
}

/*
 * Finds the virtual thread that was mounted during a walk. `thread` and `thread_at` are those of struct walk_java; *to
 * is zero. None is mounted if Continuation.enterSpecial is not compiled: the process has never run a virtual thread.
 */
static inline void virtual_find(const struct duet_jvm_layout *layout, uint64_t thread, uint64_t thread_at,
				struct duet_virtual_thread *to)
{
	const struct duet_jvm_virtual *how = &layout->virtual_threads;
	uint64_t carrier;

	if (!how->thread_vtable || !virtual_word(layout->enter_special))
		return;
	carrier = virtual_carrier(how, thread);
	if (!carrier && thread_at)
		carrier = virtual_carrier(how, virtual_word(thread_at));
	if (carrier)
		virtual_mounted(how, carrier, to);
}
