/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "hotspot/jvmstructs.h"
#include "jvm/jvm.h"
#include "safe_copy.h"

static int walk_read(const void *at, void *to, uint32_t bytes, uint64_t address)
{
	return safe_copy(to, address, bytes) != bytes;
}

#include "walk/virtual.h"

/* JDK 25+: returns false if no virtual thread is mounted, as most often. */
static bool may_be_mounted(const struct duet_jvm_virtual *layout, uint64_t java_thread, bool is_there)
{
	uint64_t entry = java_thread + layout->thread_entry;

	if (layout->thread_entry == DUET_JVM_NO_FIELD)
		return true;
	return is_there ? *(const volatile uint64_t *)entry : virtual_word(entry);
}

void virtual_threads_mounted(const struct duet_jvm_layout *layout, uint64_t java_thread, bool is_there,
			     struct duet_virtual_thread *ret)
{
	/* enterSpecial is compiled only after a virtual thread. The variable is libjvm.so's or the agent's. */
	if (layout->virtual_threads.thread_vtable && java_thread && layout->enter_special &&
	    *(const volatile uint64_t *)layout->enter_special &&
	    may_be_mounted(&layout->virtual_threads, java_thread, is_there))
		virtual_mounted(&layout->virtual_threads, java_thread, ret);
}

#define TRIES 4 /* a collector may move the objects meanwhile */

/* Layouts of a byte[]: the offsets of its length and of its bytes. The size of its header depends on flags. */
static const struct {
	uint16_t length;
	uint16_t bytes;
} arrays[] = {
	{12, 16}, /* class pointers of 4 bytes */
	{8, 12}, /* JDK 24+: compact headers */
	{16, 20}, /* JDK 23+: class pointers of 8 bytes */
	{16, 24}, /* before JDK 23 */
};

static bool name_agrees(const struct duet_virtual_thread *seen, const char *name)
{
	size_t width = seen->is_utf16 ? 2 : 1, len = strlen(name);

	if (!len || len * width > DUET_MAX_VIRTUAL_NAME || seen->name_bytes != len * width)
		return false;
	for (size_t i = 0; i < len; i++)
		if (seen->name[i * width] != (unsigned char)name[i])
			return false;
	return true;
}

/* Tests the layout on the witness. No virtual thread is mounted there, so both references lead to its own object. */
static bool objects_agree(const struct duet_jvm_virtual *how, const struct virtual_witness *witness)
{
	uint64_t object = virtual_word(virtual_word(witness->java_thread + how->thread_object));
	uint64_t current = virtual_word(virtual_word(witness->java_thread + how->thread_current));
	struct duet_virtual_thread seen = {0};

	if (!object || object != current || virtual_word(object + how->object_id) != witness->id)
		return false;
	virtual_name(how, object, &seen);
	return name_agrees(&seen, witness->name);
}

/* Finds the size of references and the layout of arrays by trying. */
static bool find_objects(struct duet_jvm_virtual *how, const struct virtual_witness *witness)
{
	for (uint8_t bytes = 4; bytes <= 8; bytes += 4) {
		for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
			how->oop_bytes = bytes;
			how->array_length = arrays[i].length;
			how->array_bytes = arrays[i].bytes;
			if (objects_agree(how, witness))
				return true;
		}
	}
	how->oop_bytes = 0;
	return false;
}

static bool owner_agrees(const struct duet_jvm_virtual *how, const struct virtual_witness *witness)
{
	return how->thread_owner != DUET_JVM_NO_FIELD && how->thread_entry != DUET_JVM_NO_FIELD &&
	       virtual_word(witness->java_thread + how->thread_owner) == witness->id &&
	       !virtual_word(witness->java_thread + how->thread_entry);
}

static bool fields_are_known(const struct virtual_witness *witness)
{
	return witness->object_id < DUET_MAX_OFFSET && witness->object_name < DUET_MAX_OFFSET &&
	       witness->string_value < DUET_MAX_OFFSET && witness->string_coder < DUET_MAX_OFFSET;
}

void virtual_threads_learn(const struct virtual_witness *witness, struct duet_jvm_virtual *ret)
{
	bool reads_objects, is_known = false;
	struct duet_jvm_virtual how;

	memset(ret, 0, sizeof(*ret));
	if (!jvmstructs_virtual(&how, &reads_objects))
		return;
	how.object_id = witness->object_id;
	how.object_name = witness->object_name;
	how.string_value = witness->string_value;
	how.string_coder = witness->string_coder;
	for (int i = 0; i < TRIES && reads_objects && fields_are_known(witness) && !is_known; i++)
		is_known = find_objects(&how, witness);
	if (!is_known && !owner_agrees(&how, witness))
		return;
	how.thread_vtable = virtual_word(witness->java_thread);
	*ret = how;
}
