/* SPDX-License-Identifier: MIT */
/* A stub is an object without virtual functions, and its code (vtableStubs.hpp): the words before a pc are tried. */
#include "hotspot/stubs.h"

#include <string.h>

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

/*
 * HotSpot keeps a list of these routines (class StubCodeDesc, stubCodeGenerator.hpp, JDK 8 to 27), and exports neither
 * its head nor its fields. The head is a variable of stubCodeGenerator.o, which is linked before stubRoutines.o, so it
 * lies some kB before the variables of StubRoutines, which are exported. The words there are tried.
 */

#define BEFORE_BYTES 32768 /* the head was 1,512 (JDK 25), 1,752 (JDK 17) and 15,760 (JDK 27) bytes before */
#define BEHIND_BYTES 1024
#define WORDS_AT_ONCE 64
#define ROUTINE_MOST_BYTES (1u << 20)
#define NODES_MOST 4096 /* JDK 25 has 700 with all that are made while it runs */

struct stub_node {
	uint64_t next; /* the one that was made before; 0: none */
	uint64_t group, name; /* texts */
	uint64_t range[3]; /* begin and end; JDK 8 has a number before them */
};

struct stub_range {
	uint64_t begin, end;
};

static bool is_text(uintptr_t address)
{
	char first;

	return memory_take(&first, address, 1) == 1 && first;
}

static bool read_node(uintptr_t address, struct stub_node *ret, struct stub_range *ret_range)
{
	size_t first;

	if (!address || address % sizeof(uint64_t) || memory_take(ret, address, sizeof(*ret)) < sizeof(*ret))
		return false;
	first = jvmstructs_is_code(ret->range[0]) ? 0 : 1;
	*ret_range = (struct stub_range){ret->range[first], ret->range[first + 1]};
	return ret->next % sizeof(uint64_t) == 0 && ret_range->begin < ret_range->end &&
	       ret_range->end - ret_range->begin <= ROUTINE_MOST_BYTES && jvmstructs_is_code(ret_range->begin) &&
	       jvmstructs_is_code(ret_range->end - 1) && is_text(ret->group) && is_text(ret->name);
}

static void begin_at(struct listed_stub *stub, uintptr_t begin)
{
	if (begin <= stub->start)
		return;
	stub->bytes -= begin - stub->start;
	stub->start = begin;
}

static void end_at(struct listed_stub *stub, uintptr_t end)
{
	if (end < stub->start + stub->bytes)
		stub->bytes = end - stub->start;
}

/* Follows a list if there is one. Returns true if one of its nodes holds pc. */
static bool find_in_list(uintptr_t pc, uintptr_t at, unsigned int *left, struct listed_stub *stub)
{
	struct stub_node node;
	struct stub_range range;

	for (; *left && read_node(at, &node, &range); at = node.next, --*left)
		if (range.end <= pc) {
			begin_at(stub, range.end);
		} else if (range.begin > pc) {
			end_at(stub, range.begin);
		} else {
			*stub = (struct listed_stub){range.begin, range.end - range.begin, node.name};
			return true;
		}
	return false;
}

bool stub_list_has_blob(const char *name)
{
	/* "StubRoutines (1)"; JDK 26: "Stub Generator jbyte_disjoint_arraycopy_stub" */
	return !strncmp(name, "StubRoutines", 12) || !strncmp(name, "Stub Generator", 14);
}

static bool find(uintptr_t pc, uintptr_t variable, struct listed_stub *stub)
{
	static uintptr_t found_at; /* the last word that led to a routine is tried first: it is the head */
	uintptr_t words[WORDS_AT_ONCE];
	unsigned int left = NODES_MOST;

	if (found_at && memory_copy(words, found_at, sizeof(*words)) && find_in_list(pc, *words, &left, stub))
		return true;
	for (uintptr_t at = variable - BEFORE_BYTES; at < variable + BEHIND_BYTES; at += sizeof(words)) {
		size_t count = memory_copy(words, at, sizeof(words)) / sizeof(*words);

		for (size_t i = 0; i < count; i++)
			if (find_in_list(pc, words[i], &left, stub)) {
				found_at = at + i * sizeof(*words);
				return true;
			}
	}
	return false;
}

/* Nodes do not change, and they live as long as the JVM. Memory that is kept may be older than the first nodes. */
void stub_list_find(uintptr_t pc, struct listed_stub *stub)
{
	uintptr_t variable = jvmstructs_stub_variable();

	if (!variable || find(pc, variable, stub))
		return;
	memory_forget();
	(void)find(pc, variable, stub);
}

/* Replaces what is known of a blob by the part of it that holds pc. */
static void find_part(uintptr_t pc, struct duet_stub *stub, char name[STUB_NAME_BYTES])
{
	struct listed_stub listed = {stub->address, stub->code_bytes, 0};
	struct vtable_stub vtable;

	if (!strcmp(name, VTABLES_BLOB) && vtables_find(pc, stub->address, &vtable)) {
		strcpy(name, vtable.name);
		stub->address = vtable.start;
		stub->code_bytes = (uint32_t)vtable.bytes;
	} else if (stub_list_has_blob(name)) {
		stub_list_find(pc, &listed);
		if (listed.name)
			name[memory_take(name, listed.name, STUB_NAME_BYTES - 1)] = '\0';
		stub->address = listed.start;
		stub->code_bytes = (uint32_t)listed.bytes;
	}
}

bool stub_find(uintptr_t pc, struct duet_stub *ret_stub, char name[STUB_NAME_BYTES])
{
	struct code_blob blob;

	if (!jvmstructs_blob_at(pc, &blob))
		return false;
	jvmstructs_blob_name(&blob, name, STUB_NAME_BYTES);
	ret_stub->address = blob.start;
	ret_stub->code_bytes = (uint32_t)blob.bytes;
	find_part(pc, ret_stub, name);
	return name[0] && !jvmstructs_is_nmethod(name);
}
