/* SPDX-License-Identifier: MIT */
#include "runtime/alike.h"

/* The strings of both tables are in one table of strings, so equal ids are equal texts. */
static bool same_names(const struct jvm_method *a, const struct jvm_method *b, int32_t bci)
{
	return a->class_name == b->class_name && a->name == b->name && a->signature == b->signature &&
	       a->source == b->source && jvm_method_line(a, bci) == jvm_method_line(b, bci);
}

enum alike alike_frames(const struct jvm *jvm, const struct jvm_code *code, uint64_t pc, bool is_return,
			struct jvm_moment then, const struct duet_java_frame *frames, uint32_t depth)
{
	const struct jvm *other = jvm_other(jvm);
	const struct jvm_code *again =
		other && code->id ? jvm_code_at(other, pc - is_return, then.time_ns, code->id) : NULL;
	struct duet_java_frame others[JVM_INLINING_DEPTH];
	bool is_same = true;
	uint32_t flags;

	if (!again || !again->inlining)
		return ALIKE_ALONE;
	if (jvm_code_frames(again, pc, is_return, others, &flags) != depth)
		return ALIKE_DISAGREED;
	for (uint32_t i = 0; i < depth; i++) {
		const struct jvm_method *mine = jvm_method(jvm, frames[i].method, then);
		const struct jvm_method *its = jvm_method(other, others[i].method, then);

		if (!mine || !its)
			return ALIKE_ALONE;
		is_same &= frames[i].bci == others[i].bci && same_names(mine, its, frames[i].bci);
	}
	return is_same ? ALIKE_AGREED : ALIKE_DISAGREED;
}

/* The agent knows the method by its jmethodID, the reader by its address, which the agent reports too. */
enum alike alike_interpreted(const struct jvm *jvm, uint64_t method, int32_t bci, struct jvm_moment then)
{
	const struct jvm *other = jvm_other(jvm);
	const struct jvm_method *mine = other ? jvm_method(jvm, method, then) : NULL;
	const struct jvm_method *its = mine && mine->bare ? jvm_method(other, mine->bare, then) : NULL;

	if (!its)
		return ALIKE_ALONE;
	return same_names(mine, its, bci) ? ALIKE_AGREED : ALIKE_DISAGREED;
}
