/* SPDX-License-Identifier: MIT */
/*
 * Names of the methods that samples met, when the loader asks for them: only methods that matter are named, not the
 * tens of thousands that are loaded or compiled. Nothing is looked up in a signal handler.
 */
#ifndef METHODS_H
#define METHODS_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

struct stay;

/* Writes a DUET_AGENT_METHOD record, or DUET_AGENT_GONE. Agent's thread only. */
void methods_answer(struct stay *stay, JNIEnv *env, uint64_t key);
/* The same unasked, unless the loader was told lately, or it is gone. True when a record was written. */
bool methods_tell(struct stay *stay, JNIEnv *env, uint64_t key);
/* What was told: the loader is another one, or may have forgotten it. */
void methods_forget_told(void);

#endif
