/* SPDX-License-Identifier: MIT */
#include "jvm/code.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hotspot/answers.h"
#include "hotspot/clock.h"
#include "hotspot/jvmstructs.h"
#include "hotspot/metadata.h"
#include "hotspot/nmethods.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "locked.h"

/* Start of the code of Continuation.enterSpecial, plus 1; 0: not known. BPF reads this variable. */
static uint64_t enter_special;

/*
 * On a carrier's stack, a virtual thread's frames begin with the frame of Continuation.enterSpecial, a native method.
 * HotSpot generates its wrapper at its first call. JDK 21 does not export its address: this checks whether this is it.
 */
static void find_enter_special(uintptr_t address)
{
	struct metadata_method method;
	struct metadata_names names;
	struct code_blob blob;
	char kind[16] = "";

	if (enter_special || jvm.version < 21 || !jvmstructs_blob_at(address, &blob))
		return;
	jvmstructs_blob_name(&blob, kind, sizeof(kind));
	if (strcmp(kind, "native nmethod") != 0 || !nmethods_method(address, &method) ||
	    !metadata_names_read(&method, &names))
		return;
	/* Plus 1: BPF looks the address up like a return address, by the byte before it. */
	if (!strcmp(names.name, "enterSpecial") && !strcmp(names.signature, "(Ljdk/internal/vm/Continuation;ZZ)V"))
		__atomic_store_n(&enter_special, blob.code_begin + 1, __ATOMIC_RELAXED);
	metadata_names_release(&names);
}

/* While an agent listens to this event, the compilers record which inlined method each instruction is of. */
void code_on_load(const void *address)
{
	STAY(stay);

	if (stay)
		find_enter_special((uintptr_t)address);
}

#define KEEP_BYTES 16384 /* limit for one compilation that is freed: most are small */

void JNICALL code_on_unload(jvmtiEnv *jvmti, jmethodID method, const void *address)
{
	struct duet_code_unload unload = {
		.time_ns = clock_ns(),
		.method = (uintptr_t)method,
		.address = (uintptr_t)address,
	};
	struct ring_part part = {&unload, sizeof(unload)};
	struct nmethod_record record;
	STAY(stay);

	if (!stay)
		return;
	/* HotSpot posts the event late, but in most cases the code is still there */
	if (nmethods_find((uintptr_t)address, 0, clock_ns(), KEEP_BYTES, &record) == NMETHOD_FOUND)
		kept_add(&record);
	ring_write(&stay->ring, DUET_AGENT_CODE_UNLOAD, &part, 1, RING_DROP);
}

#define MAX_STUBS 4096 /* JDK 25 reports 1,500 */

/* A ring of the code that the JVM reported and that has no blob of its own. The newest replaces the oldest. */
static struct {
	pthread_mutex_t lock;
	uint64_t count; /* since the agent was loaded */
	struct reported_stub {
		uintptr_t address;
		uint32_t bytes;
		char name[STUB_NAME_BYTES];
	} all[MAX_STUBS];
} stubs = {.lock = PTHREAD_MUTEX_INITIALIZER};

void JNICALL code_on_stub(jvmtiEnv *jvmti, const char *name, const void *address, jint bytes)
{
	LOCKED(&stubs.lock);
	struct reported_stub *stub = &stubs.all[stubs.count % MAX_STUBS];

	if (!name || bytes <= 0)
		return;
	stub->address = (uintptr_t)address;
	stub->bytes = (uint32_t)bytes;
	strncpy(stub->name, name, STUB_NAME_BYTES - 1);
	stubs.count++;
}

bool code_find_stub(uintptr_t pc, struct duet_stub *ret_stub, char name[STUB_NAME_BYTES])
{
	LOCKED(&stubs.lock);
	uint64_t count = stubs.count < MAX_STUBS ? stubs.count : MAX_STUBS;

	for (uint64_t i = 1; i <= count; i++) {
		const struct reported_stub *stub = &stubs.all[(stubs.count - i) % MAX_STUBS];

		if (pc - stub->address >= stub->bytes)
			continue;
		ret_stub->address = stub->address;
		ret_stub->code_bytes = stub->bytes;
		memcpy(name, stub->name, STUB_NAME_BYTES);
		return true;
	}
	return false;
}

/* In a running JVM before JDK 17, DynamicCodeGenerated races with code being generated (JDK-8212155). */
bool code_has_stub_events(void)
{
	return jvm.at_start || jvm.version >= 17;
}

/* Kinds of blobs that a JVM makes when it needs one. Who lacks some has few blobs: to look again is cheap. */
#define LAZY_KINDS 3

void code_publish_layout(struct stay *stay)
{
	struct duet_jvm_layout *layout = &stay->layouts[stay->layout_count];
	struct ring_part part = {layout, sizeof(*layout)};
	uint32_t kinds;

	if (!jvm.version || stay->layout_count == STAY_LAYOUTS || stay->kinds_published == LAZY_KINDS ||
	    !jvmstructs_layout(layout, jvm.version))
		return;
	layout->enter_special = (uintptr_t)&enter_special;
	layout->virtual_threads = jvm.virtual_threads;
	kinds = (layout->compiled_name != 0) + (layout->native_name != 0) + (layout->frameless_names[0] != 0);
	if (stay->layout_count && kinds == stay->kinds_published)
		return;
	if (!ring_write(&stay->ring, DUET_AGENT_LAYOUT, &part, 1, RING_WAIT))
		return; /* no room: the next call tries again */
	stay->layout_count++;
	stay->kinds_published = kinds;
	__atomic_store_n(&stay->layout, layout, __ATOMIC_RELEASE);
}

void code_learn_existing(void)
{
	if (code_has_stub_events())
		(*jvm.jvmti)->GenerateEvents(jvm.jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	for (unsigned int i = 0; jvm.version >= 21 && i < DUET_JVM_HEAPS; i++) {
		struct code_blob blob;
		uintptr_t cursor = 0;

		while (!enter_special && jvmstructs_next_blob(i, &cursor, &blob))
			find_enter_special(blob.code_begin);
	}
}

#define LOCAL_REFS 8
#define NUMBERED_IDS 26 /* since this JDK, JVMTI looks up a jmethodID in a table and refuses unknown ones */

/* Copies JVMTI's string and frees it, so that all names are released in the same way. */
static char *take_text(char *text)
{
	char *copy = text ? strdup(text) : NULL;

	jvm_deallocate(text);
	return copy;
}

static void take_lines(struct metadata_names *names, const jvmtiLineNumberEntry *lines, jint count)
{
	names->lines = calloc((size_t)count + 1, sizeof(*names->lines));
	if (!names->lines)
		return;
	names->line_count = (uint32_t)count;
	for (jint i = 0; i < count; i++) {
		names->lines[i].bci = (uint32_t)lines[i].start_location;
		names->lines[i].line = (uint32_t)lines[i].line_number;
	}
	metadata_sort_lines(names->lines, names->line_count);
}

/* Source file and lines may be absent; the other names may not. */
static void read_source(struct metadata_names *names, jmethodID method, jclass class)
{
	jvmtiLineNumberEntry *lines = NULL;
	char *source = NULL;
	jint count = 0;

	if ((*jvm.jvmti)->GetSourceFileName(jvm.jvmti, class, &source))
		source = NULL;
	names->source = take_text(source);
	if (!(*jvm.jvmti)->GetLineNumberTable(jvm.jvmti, method, &count, &lines)) {
		take_lines(names, lines, count);
		jvm_deallocate(lines);
	}
}

static bool ask_names(jmethodID method, struct metadata_names *ret)
{
	char *class_signature = NULL, *name = NULL, *signature = NULL;
	jint modifiers = 0;
	jclass class;

	if ((*jvm.jvmti)->GetMethodDeclaringClass(jvm.jvmti, method, &class) ||
	    (*jvm.jvmti)->GetClassSignature(jvm.jvmti, class, &class_signature, NULL))
		return false;
	if ((*jvm.jvmti)->GetMethodName(jvm.jvmti, method, &name, &signature, NULL) ||
	    (*jvm.jvmti)->GetMethodModifiers(jvm.jvmti, method, &modifiers)) {
		jvm_deallocate(class_signature);
		jvm_deallocate(name);
		jvm_deallocate(signature);
		return false;
	}
	*ret = (struct metadata_names){
		.class_signature = take_text(class_signature),
		.name = take_text(name),
		.signature = take_text(signature),
		.modifiers = (uint32_t)modifiers,
	};
	read_source(ret, method, class);
	return true;
}

bool methods_ask_jvmti(void *context, uint64_t key, struct metadata_names *ret)
{
	JNIEnv *env = context;
	bool found;

	/*
	 * In a JVM whose layout is not known, no walk finds a method: all ids are AsyncGetCallTrace's. HotSpot frees
	 * none of these ids before JDK 26, and reports those of unloaded classes as not valid.
	 */
	if ((jvm.version < NUMBERED_IDS && jvm.reads_methods) || key & DUET_METHOD_BARE ||
	    (*env)->PushLocalFrame(env, LOCAL_REFS))
		return false;
	found = ask_names((jmethodID)(uintptr_t)key, ret);
	(*env)->PopLocalFrame(env, NULL);
	return found;
}
