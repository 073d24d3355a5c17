/* SPDX-License-Identifier: MIT */
/* JVMTI's events about generated code as it is loaded and unloaded, and the layout by which others walk it. */
#ifndef CODE_H
#define CODE_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

#include "answers.h"

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
 * Copies the newest stub that holds pc, of those that the JVM reported and that have no blob of their own. Returns
 * false when there is none. Agent's thread only.
 */
bool code_find_stub(uintptr_t pc, struct duet_stub *ret_stub, char name[STUB_NAME_BYTES]);

#endif
