/* SPDX-License-Identifier: MIT */
/* The agent's access to the JVM: one JVMTI environment for the agent's life, its capabilities and events. */
#pragma once

#include <jvmti.h>
#include <pthread.h>

#include "duet_jvm.h"
#include "duet_record.h"

struct stay;

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
	JavaVM *vm; /* NULL, like the next: the process has no JVM, or none yet */
	jvmtiEnv *jvmti;
	asgct_function asgct; /* NULL when libjvm lacks it, or handlers cannot call it */
	int version; /* 8, 11, 17, …; known once the JVM is live */
	bool reads_methods; /* metadata.h can read this JVM's methods */
	bool checks_jni; /* -Xcheck:jni */
	bool at_start; /* loaded by -agentpath */
	bool is_starting; /* atomic: the JVM waits for the agent before it runs the program */
	jfieldID eetop; /* java.lang.Thread.eetop: the JavaThread */
	jfieldID thread_id; /* java.lang.Thread.tid; NULL when there is none */
	/* How handlers find the JavaThread that they interrupted, see jvm_current_thread(). */
	pthread_key_t thread_key;
	uintptr_t thread_vtable; /* vtable of plain JavaThreads; 0: handlers cannot find them, or cannot walk them */
	intptr_t env_offset; /* offset of the JNIEnv within a JavaThread */
	struct duet_jvm_virtual virtual_threads; /* see below */
};
extern struct agent_jvm jvm;

/* Opens the JVMTI environment. Idempotent. Returns 0, or -ENOTSUP when the JVM refuses JVMTI or a capability. */
int jvm_open(JavaVM *vm, const jvmtiEventCallbacks *callbacks, bool at_start);
/*
 * A thread chooses its first sample of allocated memory when it is created, by the interval that the JVM has then. Call
 * before there are threads: this sets it, so that the main thread's first objects are sampled. Does nothing where the
 * JVM refuses: before JDK 11, or beside another agent that samples allocations.
 */
void jvm_set_alloc_interval(uint32_t bytes);
/* Reads what only a live JVM shows. Called on a thread that is attached to the JVM. Idempotent. */
void jvm_learn(JNIEnv *env);

/* Enables or disables the events that the agent needs only while a stay is open. Does nothing without a JVM. */
void jvm_events(jvmtiEventMode mode);

/* Enables or disables one event in all threads. Returns false if the JVM refuses. */
bool jvm_set_event(jvmtiEventMode mode, jvmtiEvent event);

/* Creates the jmethodIDs of a class's methods. */
void jvm_prepare_class(jclass class);

/*
 * Does so for all loaded classes. AsyncGetCallTrace cannot create them, and reports a frame whose method
 * has none as unknown. A JVM has tens of thousands, so each call of jvm_prepare_some() creates some of them. When
 * jvm_prepare_begin() returns false, jvm_prepare_end() must not be called.
 */
struct jvm_preparing {
	jclass *classes;
	jint count, done;
};
bool jvm_prepare_begin(JNIEnv *env, struct jvm_preparing *ret);
bool jvm_prepare_some(struct jvm_preparing *preparing); /* returns false when none are left */
void jvm_prepare_end(JNIEnv *env, struct jvm_preparing *preparing);

/* Copies a system property into `text`, truncated to `size`; an empty string when it is not set. */
void jvm_property(const char *name, char *text, size_t size);
/* Returns the JavaThread of a java.lang.Thread, or 0 when it has none. */
uintptr_t jvm_java_thread(JNIEnv *env, jthread thread);
/*
 * Call first in a callback of JVMTI that calls JNI. With -Xcheck:jni the JVM warns of a native method with more than 32
 * local references, and it takes those of the code that the callback interrupts for the callback's own.
 */
void jvm_expect_references(JNIEnv *env);
/* Returns the JavaThread that runs this code; 0: another thread, or one without Java frames. Async-signal-safe. */
uintptr_t jvm_current_thread(void);
/* Returns HotSpot's Thread of any kind that runs this code, or 0. Async-signal-safe. */
uintptr_t jvm_own_thread(void);
/* Returns the JNIEnv of the calling thread, or NULL if the thread is not attached to the JVM. */
JNIEnv *jvm_own_env(void);
/* Returns an instance field of a class of the platform, or NULL. */
jfieldID jvm_field(JNIEnv *env, const char *class_name, const char *name, const char *type);
/* Returns the signature of a class, such as "[B", which the caller frees with jvm_deallocate(); NULL: none. */
char *jvm_class_signature(jclass class);
/* Frees memory that JVMTI allocated; NULL is fine. */
void jvm_deallocate(void *memory);

/* Report the threads and their Java names: when they start, are renamed, and end. */
void JNICALL threads_on_start(jvmtiEnv *jvmti, JNIEnv *env, jthread thread);
void JNICALL threads_on_end(jvmtiEnv *jvmti, JNIEnv *env, jthread thread);

/* Publishes threads that are new or renamed since the last sweep: a rename raises no event. Agent's thread only. */
void threads_sweep(struct stay *stay, JNIEnv *env);
/* Forgets what was published: the next stay publishes all threads again. Agent's thread only. */
void threads_forget(void);

/*
 * virtual_threads.c: how samples recognise the virtual thread that is mounted. HotSpot exports where a JavaThread keeps
 * the reference to it, but not the layout of a java.lang.Thread. Assumptions about that layout are tested on a thread
 * whose id and name are known. An assumption that proves wrong is not used.
 */

/* A platform thread that lives as long as the test: the caller. */
struct virtual_witness {
	uint64_t java_thread;
	uint64_t id; /* Thread.threadId() */
	const char *name; /* in ASCII */
	/* Offsets of fields, named as in struct duet_jvm_virtual; they may be wrong. */
	uint16_t object_id;
	uint16_t object_name;
	uint16_t string_value;
	uint16_t string_coder;
};

/* Fills *ret: all 0 when this JVM has no virtual threads, or when they cannot be recognised. */
void virtual_threads_learn(const struct virtual_witness *witness, struct duet_jvm_virtual *ret);
/*
 * Stores in *ret which virtual thread is mounted on this JavaThread, if any; java_thread may be 0. `is_there`: it
 * exists while this runs, as that of a callback's thread. *ret must be all 0 before. Async-signal-safe.
 */
void virtual_threads_mounted(const struct duet_jvm_layout *layout, uint64_t java_thread, bool is_there,
			     struct duet_virtual_thread *ret);
