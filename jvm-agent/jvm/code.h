/* SPDX-License-Identifier: MIT */
/* JVMTI's events about generated code, and the layout by which BPF and the agent walk that code. */
#pragma once

#include <jvmti.h>

#include "hotspot/answers.h"
#include "hotspot/metadata.h"
#include "hotspot/nmethods.h"

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
/* Finds code from before the stay: stubs without a blob of their own, Continuation.enterSpecial. Agent's thread. */
void code_learn_existing(void);
/* Copies the newest stub without a blob that holds pc. Returns false when there is none. Agent's thread only. */
bool code_find_stub(uintptr_t pc, struct duet_stub *ret_stub, char name[STUB_NAME_BYTES]);

/* Finds a method's names from JVMTI, which memory does not show since JDK 26. `context` is the thread's JNIEnv. */
bool methods_ask_jvmti(void *context, uint64_t key, struct metadata_names *ret);

/*
 * kept.c: compilations that were freed a moment ago. A sample may have hit one just before that, and the loader may not
 * have asked for it yet. Callable on any thread, not in signal handlers. kept_add() takes ownership of the record.
 */
void kept_add(struct nmethod_record *record);
/* Copies the record with this id; the caller releases the copy. Returns false when there is none, or no memory. */
bool kept_copy(uint32_t id, struct nmethod_record *ret);
/* Frees the records that are too old for the loader to ask for; and all, when the loader has left. */
void kept_forget_old(void);
void kept_forget(void);
