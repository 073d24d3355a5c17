/* SPDX-License-Identifier: MIT */
/* Generated code as the loader asks for it: compiled methods with their inlining, stubs, and the heaps they lie in. */
#ifndef CODE_H
#define CODE_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

struct stay;

void JNICALL code_on_load(jvmtiEnv *jvmti, jmethodID method, jint bytes, const void *address, jint map_length,
			  const jvmtiAddrLocationMap *map, const void *compile_info);
void JNICALL code_on_unload(jvmtiEnv *jvmti, jmethodID method, const void *address);
void JNICALL code_on_stub(jvmtiEnv *jvmti, const char *name, const void *address, jint bytes);

/* May DynamicCodeGenerated be enabled in this JVM? */
bool code_has_stub_events(void);

/* Publishes the reserved ranges of the code heaps. */
void code_publish_heaps(struct stay *stay);
/*
 * Publishes how code and methods are laid out, so that others can walk Java frames; again when a kind of code was met
 * that had not been before. Agent's thread only.
 */
void code_publish_layout(struct stay *stay);
/* Takes note of the code that is there now and has no blob of its own. Agent's thread only. */
void code_learn_existing(void);
/*
 * Writes what lies at pc: DUET_AGENT_CODE_LOAD, when it is of the compilation with this id or that is 0, and before it
 * the methods that it names; or DUET_AGENT_STUB or DUET_AGENT_GONE. Agent's thread only.
 */
void code_answer(struct stay *stay, JNIEnv *env, uint64_t pc, uint32_t id);

#endif
