/* SPDX-License-Identifier: MIT */
/* Generated code as the loader must know it: compiled methods with their inlining, stubs, and the heaps they lie in. */
#ifndef CODE_H
#define CODE_H

#include <jvmti.h>
#include <stdbool.h>

struct session;

void JNICALL code_on_load(jvmtiEnv *jvmti, jmethodID method, jint bytes, const void *address, jint map_length,
			  const jvmtiAddrLocationMap *map, const void *compile_info);
void JNICALL code_on_unload(jvmtiEnv *jvmti, jmethodID method, const void *address);
void JNICALL code_on_stub(jvmtiEnv *jvmti, const char *name, const void *address, jint bytes);

/* May DynamicCodeGenerated be enabled in this JVM? */
bool code_has_stub_events(void);

/* Publishes the reserved ranges of the code heaps. */
void code_publish_heaps(struct session *session);
/*
 * Publishes how code and methods are laid out, so that others can walk Java frames; again when a kind of code was met
 * that had not been before. Agent's thread only.
 */
void code_publish_layout(struct session *session);
/* Publishes all code there is now: stubs, then compiled methods. Agent's thread only. */
void code_publish_existing(struct session *session);

#endif
