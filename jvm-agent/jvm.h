/* SPDX-License-Identifier: MIT */
/* The JVM as the agent uses it: one JVMTI environment for the agent's life, its capabilities and events. */
#ifndef JVM_H
#define JVM_H

#include <jvmti.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "duet_jvm.h"

struct asgct_frame {
	jint bci;
	jmethodID method;
};

/* AsyncGetCallTrace is exported by libjvm but declared nowhere. */
struct asgct_trace {
	JNIEnv *env;
	jint frame_count; /* > 0, or a failure code <= 0 */
	struct asgct_frame *frames;
};
typedef void (*asgct_function)(struct asgct_trace *trace, jint depth, void *ucontext);

/* AsyncGetCallTrace's failure codes that the agent acts on (forte.cpp, ticks_*). */
enum asgct_failure {
	ASGCT_NO_JAVA_FRAME = 0,
	ASGCT_UNKNOWN_NOT_JAVA = -3,
	ASGCT_NOT_WALKABLE_NOT_JAVA = -4,
	ASGCT_UNKNOWN_JAVA = -5,
	ASGCT_NOT_WALKABLE_JAVA = -6,
};

struct agent_jvm {
	JavaVM *vm;
	jvmtiEnv *jvmti;
	asgct_function asgct; /* NULL when the JVM has none, or it cannot be called from a handler */
	int version; /* 8, 11, 17, …; known once the JVM is live */
	bool at_start; /* loaded by -agentpath */
	jfieldID eetop; /* java.lang.Thread.eetop: the JavaThread */
	/* How handlers find the JavaThread they interrupted, see jvm_current_thread(). */
	pthread_key_t thread_key;
	uintptr_t thread_vtable; /* of plain JavaThreads; 0: handlers cannot find them, or cannot walk them */
	intptr_t env_offset; /* of the JNIEnv in a JavaThread */
	struct duet_jvm_virtual virtual_threads; /* see virtual_threads.h */
};
extern struct agent_jvm jvm;

/* Idempotent. 0, or -ENOTSUP when the JVM refuses JVMTI or a capability. */
int jvm_open(JavaVM *vm, bool at_start);
/* What can be learned only from a live JVM, on an attached thread. Idempotent. */
void jvm_learn(JNIEnv *env);

/* Events that stays listen to. */
void jvm_events_enable(void);
void jvm_events_disable(void);

/*
 * Creates the jmethodIDs of all loaded classes: AsyncGetCallTrace cannot, and reports frames without one as unknown.
 * Some at a time, since a JVM has tens of thousands, between begin, which may fail, and end.
 */
struct jvm_preparing {
	jclass *classes;
	jint count, done;
};
bool jvm_prepare_begin(JNIEnv *env, struct jvm_preparing *ret);
bool jvm_prepare_some(struct jvm_preparing *preparing); /* false when that were the last */
void jvm_prepare_end(JNIEnv *env, struct jvm_preparing *preparing);

/* Copies a system property into `text`, cut to size; empty when there is none. */
void jvm_property(const char *name, char *text, size_t size);
/* The JavaThread behind a java.lang.Thread, or 0 when it has none. */
uintptr_t jvm_java_thread(JNIEnv *env, jthread thread);
/*
 * The JavaThread that runs this code, or 0 for all other threads; also for
 * compilers and the like, which have no Java frames. Async-signal-safe.
 */
uintptr_t jvm_current_thread(void);
/* Memory that JVMTI allocated; NULL is fine. */
void jvm_deallocate(void *memory);

#endif
