/* SPDX-License-Identifier: MIT */
/*
 * Sends the loader the names of methods that samples hit, when it asks for them. So only methods that matter are named,
 * not the tens of thousands that are loaded or compiled. Nothing is looked up in a signal handler.
 */
#ifndef METHODS_H
#define METHODS_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

struct stay;

/* Answers a WANT: writes a DUET_AGENT_METHOD record, or DUET_AGENT_GONE. Agent's thread only. */
void methods_answer(struct stay *stay, JNIEnv *env, uint64_t key);
/*
 * Writes the DUET_AGENT_METHOD record without being asked, unless the loader got it lately or the method is gone.
 * Returns true when a record was written. Agent's thread only.
 */
bool methods_tell(struct stay *stay, JNIEnv *env, uint64_t key);
/*
 * Forgets which records were sent: the next loader has none of them, or this one may have forgotten them. Agent's
 * thread only.
 */
void methods_forget_told(void);

#endif
