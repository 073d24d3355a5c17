/* SPDX-License-Identifier: MIT */
#include "jvm/code.h"

#include <pthread.h>
#include <string.h>

#include "hotspot/answers.h"
#include "hotspot/clock.h"
#include "hotspot/jvmstructs.h"
#include "hotspot/metadata.h"
#include "hotspot/nmethods.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "locked.h"

/* ---- compiled methods ---- */

/* Start of the code of Continuation.enterSpecial, plus 1; 0: not known. BPF reads this variable. */
static uint64_t enter_special;

/*
 * On a carrier's stack, a virtual thread's frames begin with the frame of Continuation.enterSpecial, a native method.
 * HotSpot generates its wrapper when it is first called. JDK 21 does not export the wrapper's address, so this checks
 * whether the code at `address` is it.
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

/*
 * While an agent listens to this event, the compilers record which inlined method each instruction belongs to. The
 * agent reads that record when a sample has hit the code.
 */
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

/* ---- stubs ---- */

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
