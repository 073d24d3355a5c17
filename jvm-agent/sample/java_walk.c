/* SPDX-License-Identifier: MIT */
#include "sample/java_walk.h"

#include "hotspot/jvmstructs.h"
#include "jvm/jvm.h"

#include "sigsafe.h"

#define REPAIR_STACK_BYTES 16384

static int call(const struct java_walk *walk, ucontext_t *context)
{
	struct asgct_trace trace = {
		.env = (JNIEnv *)(walk->java_thread + (uintptr_t)jvm.env_offset),
		.frames = walk->frames,
	};
	struct regs now = regs_get(context);

	if (repair_walk_would_fault(&now))
		return ASGCT_NOT_WALKABLE_JAVA;
	jvm.asgct(&trace, walk->max_depth, context);
	return trace.frame_count;
}

/*
 * The thread has left Java and stored the sp of its last frame in the anchor, but not yet the pc. The pc is the word
 * below sp, where the call put it. HotSpot completes the anchor in the same way before it walks
 * (JavaFrameAnchor::make_walkable(); since JDK-8282477 it expects profilers to do so too). On the return to Java it
 * clears the pc, whoever wrote it. So we leave the pc there: if we cleared it, a walk that began meanwhile would miss
 * it. The interpreter of JDK 8 may leave an old pc in the anchor, so with JDK 8 such a frame is not walked.
 */
static int walk_from_anchor(struct java_walk *walk, ucontext_t *context, const struct frame_anchor *anchor)
{
	uintptr_t pc = ((const uintptr_t *)*anchor->sp)[-1];

	if (jvm.version < 9 || *anchor->pc || !jvmstructs_is_code(pc))
		return 0;
	*(volatile uintptr_t *)anchor->pc = pc;
	return call(walk, context);
}

static int walk_outside_java(struct java_walk *walk, ucontext_t *context, int failure)
{
	struct frame_anchor anchor;
	int count;

	if (!jvmstructs_anchor(walk->java_thread, &anchor))
		return failure;
	if (!*anchor.sp) /* no Java frames, so there is nothing to walk: not a failure */
		return ASGCT_NO_JAVA_FRAME;
	count = walk_from_anchor(walk, context, &anchor);
	return count > 0 ? count : failure;
}

static int walk_repaired(struct java_walk *walk, const ucontext_t *context, int failure)
{
	struct regs now = regs_get(context);
	struct regs fixed;

	walk->refused = !stack_copy(walk->stack, now.sp, REPAIR_STACK_BYTES);
	if (walk->refused)
		return failure;
	*walk->scratch = *context;
	for (int i = 0; repairs[i]; i++) {
		int count;

		if (!repairs[i](&now, walk->stack, &fixed))
			continue;
		regs_set(walk->scratch, &fixed);
		count = call(walk, walk->scratch);
		if (count > 0)
			return count;
	}
	return failure;
}

int java_walk(struct java_walk *walk, const ucontext_t *context)
{
	/* AsyncGetCallTrace takes a void * and only reads it. */
	ucontext_t *readable = (ucontext_t *)(uintptr_t)context;
	int count = call(walk, readable);

	switch (count) {
	case ASGCT_UNKNOWN_NOT_JAVA:
	case ASGCT_NOT_WALKABLE_NOT_JAVA:
		return walk_outside_java(walk, readable, count);
	case ASGCT_UNKNOWN_JAVA:
	case ASGCT_NOT_WALKABLE_JAVA:
		return walk_repaired(walk, context, count);
	default: /* frames; or nothing to repair: the JVM is collecting, or the thread is exiting or too new */
		return count;
	}
}
