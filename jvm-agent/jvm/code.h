/* SPDX-License-Identifier: MIT */
/* JVMTI's events about generated code, and the layout by which BPF and the agent walk that code. */
#ifndef JVM_CODE_H
#define JVM_CODE_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

#include "hotspot/answers.h"

struct stay;

void code_on_load(const void *address);
void JNICALL code_on_unload(jvmtiEnv *jvmti, jmethodID method, const void *address);
void JNICALL code_on_stub(jvmtiEnv *jvmti, const char *name, const void *address, jint bytes);

/* Returns true if DynamicCodeGenerated may be enabled in this JVM. */
bool code_has_stub_events(void);

/*
 * Publishes how code and methods are laid out, so that BPF can walk Java frames. Called again and again: publishes a
 * new layout when there is a kind of code that the last one lacked. Agent's thread only.
 */
void code_publish_layout(struct stay *stay);
/*
 * Finds code that was generated before the stay: stubs that have no blob of their own, and Continuation.enterSpecial.
 * Agent's thread only.
 */
void code_learn_existing(void);
/*
 * Finds the newest stub that holds pc, among those that the JVM reported and that have no blob of their own, and copies
 * it. Returns false when there is none. Agent's thread only.
 */
bool code_find_stub(uintptr_t pc, struct duet_stub *ret_stub, char name[STUB_NAME_BYTES]);

#endif
