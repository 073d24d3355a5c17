/* SPDX-License-Identifier: MIT */
/*
 * HotSpot keeps a list of these routines (class StubCodeDesc, stubCodeGenerator.hpp, JDK 8 to 27), and exports neither
 * its head nor its fields. The head is a variable of stubCodeGenerator.o, which is linked before stubRoutines.o, so it
 * lies up to 2 kB before the variables of StubRoutines, which are exported. The words there are tried.
 */
#include "hotspot/stub_list.h"

#include <string.h>

#include "hotspot/jvmstructs.h"
#include "memory.h"

#define BEFORE_BYTES 8192 /* the head was 1,512 (JDK 25) and 1,752 (JDK 17) bytes before */
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

static struct stub_range range_of(const struct stub_node *node)
{
	size_t first = jvmstructs_is_code(node->range[0]) ? 0 : 1;

	return (struct stub_range){node->range[first], node->range[first + 1]};
}

static bool is_text(uintptr_t address)
{
	char first;

	return memory_take(&first, address, 1) == 1 && first;
}

static bool read_node(uintptr_t address, struct stub_node *ret, struct stub_range *ret_range)
{
	if (!address || address % sizeof(uint64_t) || memory_take(ret, address, sizeof(*ret)) < sizeof(*ret))
		return false;
	*ret_range = range_of(ret);
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
	uintptr_t words[WORDS_AT_ONCE];
	unsigned int left = NODES_MOST;

	for (uintptr_t at = variable - BEFORE_BYTES; at < variable + BEHIND_BYTES; at += sizeof(words)) {
		size_t count = memory_copy(words, at, sizeof(words)) / sizeof(*words);

		for (size_t i = 0; i < count; i++)
			if (find_in_list(pc, words[i], &left, stub))
				return true;
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
