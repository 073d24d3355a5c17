/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Finds the method that a thread of one of HotSpot's compilers compiles. The same code runs in BPF and in the agent, on
 * the thread itself, which does not run meanwhile: the ciEnv and the task are those of this moment.
 */
#pragma once

#include "walk/interpreter.h"

#define COMPILING_STACK_BYTES (64u << 20) /* more than a compiler's stack has */

/*
 * `java_thread`: address of the JavaThread of thread `tid`; any other value leads to nothing. Returns 0 with
 * java->found_method and java->found_check. Returns nonzero if the thread compiles nothing, or is no compiler's: it has
 * no ciEnv on its stack above `sp`. Rarely something else looks like one, so the caller must know that the thread is in
 * a compiler.
 */
static inline int compiling_find(struct walk_java *java, uint64_t java_thread, uint32_t tid, uint64_t sp)
{
	const struct duet_jvm_compiling *at = &java->layout.compiling;
	uint64_t osthread, env, task, method;
	uint32_t its_tid;

	if (!at->task_method || !java_thread || walk_read_word(java, &osthread, java_thread + at->osthread) ||
	    walk_read(java, &its_tid, sizeof(its_tid), osthread + at->osthread_id) || its_tid != tid ||
	    walk_read_word(java, &env, java_thread + at->env) || env - sp >= COMPILING_STACK_BYTES ||
	    walk_read_word(java, &task, env + at->env_task) || !task ||
	    walk_read_word(java, &method, task + at->task_method) || !method)
		return -1;
	return WALK_JAVA_METHOD(java, method, 0, 0);
}
