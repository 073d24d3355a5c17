/* SPDX-License-Identifier: MIT */
/*
 * Answers the loader's questions about generated code: compiled methods with their inlining, stubs, and the code heaps
 * that hold them.
 */
#ifndef CODE_H
#define CODE_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

struct answers;
struct stay;

void JNICALL code_on_load(jvmtiEnv *jvmti, jmethodID method, jint bytes, const void *address, jint map_length,
			  const jvmtiAddrLocationMap *map, const void *compile_info);
void JNICALL code_on_unload(jvmtiEnv *jvmti, jmethodID method, const void *address);
void JNICALL code_on_stub(jvmtiEnv *jvmti, const char *name, const void *address, jint bytes);

/* Returns true if DynamicCodeGenerated may be enabled in this JVM. */
bool code_has_stub_events(void);

/*
 * Publishes how code and methods are laid out, so that others can walk Java frames. Called again and again: publishes a
 * new layout when a kind of code has appeared that the last one lacked. Agent's thread only.
 */
void code_publish_layout(struct stay *stay);
/*
 * Learns of code that was generated before the stay: stubs that have no blob of their own, and
 * Continuation.enterSpecial. Agent's thread only.
 */
void code_learn_existing(void);
/*
 * Answers a WANT for the code at pc. Writes DUET_AGENT_CODE_LOAD if a compiled method is there and `id` is its
 * compilation's id or 0; records of the methods that it names come before it. Else writes DUET_AGENT_STUB if `id` is 0
 * and other code is there, or DUET_AGENT_GONE. Agent's thread only.
 */
void code_answer(const struct answers *answers, uint64_t pc, uint32_t id);

#endif
