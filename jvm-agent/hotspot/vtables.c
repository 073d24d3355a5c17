/* SPDX-License-Identifier: MIT */
/*
 * A stub is an object without virtual functions, followed by its code (class VtableStub, vtableStubs.hpp, JDK 8 to 27).
 * It is not known where one begins, so the words before a pc are tried.
 */
#include "hotspot/vtables.h"

#include "hotspot/jvmstructs.h"
#include "memory.h"

#define STUB_MOST_BYTES 512 /* of its code; stubs for interfaces have about 120 bytes */
#define JUMP_BYTES 8 /* of the instruction at the second offset, or less */

struct stub_head {
	uint64_t next; /* in a list of stubs; 0: the last one */
	int16_t index; /* in the table of methods */
	int16_t call_offset; /* in the code: where it fails if the method is abstract; the jump to it */
	int16_t class_offset; /* where it fails if the receiver is null; before the jump */
	uint8_t is_vtable;
	uint8_t padding;
};
_Static_assert(sizeof(struct stub_head) == 16, "the code follows");

static bool is_head(const struct stub_head *head)
{
	if (head->is_vtable > 1 || head->index < 0 || head->class_offset < 0)
		return false;
	if (head->call_offset <= head->class_offset || head->call_offset > STUB_MOST_BYTES)
		return false;
	return !head->next || (head->next % sizeof(uint64_t) == 0 && jvmstructs_is_code(head->next));
}

bool vtables_find(uintptr_t pc, uintptr_t begin, struct vtable_stub *ret)
{
	uintptr_t at = (pc - sizeof(struct stub_head)) & ~(uintptr_t)7;
	struct stub_head head;

	for (; at >= begin && pc - at < STUB_MOST_BYTES; at -= sizeof(uint64_t)) {
		uintptr_t start = at + sizeof(head);

		if (memory_copy(&head, at, sizeof(head)) != sizeof(head) || !is_head(&head))
			continue;
		*ret = (struct vtable_stub){
			.start = start,
			.bytes = (size_t)head.call_offset + JUMP_BYTES,
			.name = head.is_vtable ? "vtable stub" : "itable stub",
		};
		if (ret->bytes <= pc - start)
			ret->bytes = pc - start + 1;
		return true;
	}
	return false;
}
