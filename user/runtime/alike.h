/* SPDX-License-Identifier: MIT */
/*
 * Compares what two sources report of one JVM: the reader from outside, and the agent that replaced it. Both have
 * described the compiled code and the methods that samples met during the change.
 */
#pragma once

#include "runtime/jvm.h"

enum alike {
	ALIKE_ALONE, /* only one source has described this code or method, with all names */
	ALIKE_AGREED,
	ALIKE_DISAGREED,
	ALIKE_MAX
};

/* Compares the frames of a pc in compiled code, leaf first, with jvm_other(jvm)'s: methods, names, indices, lines. */
enum alike alike_frames(const struct jvm *jvm, const struct jvm_code *code, uint64_t pc, bool is_return,
			struct jvm_moment then, const struct duet_java_frame *frames, uint32_t depth);
/* The same for an interpreted frame, with the walk's `method` and `bci`: both sources read this memory. */
enum alike alike_interpreted(const struct jvm *jvm, uint64_t method, int32_t bci, struct jvm_moment then);
