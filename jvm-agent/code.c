/* SPDX-License-Identifier: MIT */
#include "code.h"

#include <pthread.h>
#include <string.h>

#include "clock.h"
#include "jvm.h"
#include "jvmstructs.h"
#include "kept.h"
#include "metadata.h"
#include "methods.h"
#include "nmethods.h"
#include "safe_copy.h"
#include "stay.h"

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
	safe_copy(kind, (uintptr_t)blob.name, sizeof(kind) - 1);
	if (strcmp(kind, "native nmethod") != 0 || !nmethods_method(address, &method) ||
	    !metadata_names_read(&method, &names))
		return;
	/* Plus 1: users look it up like a return address, by the byte before it. */
	if (!strcmp(names.name, "enterSpecial") && !strcmp(names.signature, "(Ljdk/internal/vm/Continuation;ZZ)V"))
		__atomic_store_n(&enter_special, blob.code_begin + 1, __ATOMIC_RELAXED);
	metadata_names_release(&names);
}

/*
 * While somebody listens to this event, the compilers record which inlined method each instruction belongs to. The
 * agent reads what they recorded when a sample has hit the code.
 */
void JNICALL code_on_load(jvmtiEnv *jvmti, jmethodID method, jint bytes, const void *address, jint map_length,
			  const jvmtiAddrLocationMap *map, const void *compile_info)
{
	(void)jvmti, (void)method, (void)bytes, (void)map_length, (void)map, (void)compile_info;
	if (stay_enter())
		find_enter_special((uintptr_t)address);
	stay_leave();
}

#define KEEP_BYTES 16384 /* limit for one compilation that is freed: most are small */

/* HotSpot posts the unload event late, but in most cases the code is still there. */
static void keep_record(uintptr_t address)
{
	struct nmethod_record record;

	if (nmethods_find(address, 0, KEEP_BYTES, &record) == NMETHOD_FOUND)
		kept_add(&record);
}

void JNICALL code_on_unload(jvmtiEnv *jvmti, jmethodID method, const void *address)
{
	struct duet_code_unload unload = {
		.time_ns = clock_ns(),
		.method = (uintptr_t)method,
		.address = (uintptr_t)address,
	};
	struct ring_part part = {&unload, sizeof(unload)};
	struct stay *stay = stay_enter();

	(void)jvmti;
	if (stay) {
		keep_record((uintptr_t)address);
		ring_write(&stay->ring, DUET_AGENT_CODE_UNLOAD, &part, 1, RING_DROP);
	}
	stay_leave();
}

/* ---- stubs ---- */

#define STUB_NAME_BYTES 104
#define MAX_STUBS 4096 /* JDK 25 reports 1,500 */

/*
 * A ring of the code that the JVM reported and that has no blob of its own. When it is full, the newest replaces the
 * oldest.
 */
static struct {
	pthread_mutex_t lock;
	uint64_t count; /* ever */
	struct {
		uintptr_t address;
		uint32_t bytes;
		char name[STUB_NAME_BYTES];
	} all[MAX_STUBS];
} stubs = {.lock = PTHREAD_MUTEX_INITIALIZER};

void JNICALL code_on_stub(jvmtiEnv *jvmti, const char *name, const void *address, jint bytes)
{
	(void)jvmti;
	if (!name || bytes <= 0)
		return;
	pthread_mutex_lock(&stubs.lock);
	stubs.all[stubs.count % MAX_STUBS].address = (uintptr_t)address;
	stubs.all[stubs.count % MAX_STUBS].bytes = (uint32_t)bytes;
	strncpy(stubs.all[stubs.count % MAX_STUBS].name, name, STUB_NAME_BYTES - 1);
	stubs.count++;
	pthread_mutex_unlock(&stubs.lock);
}

/* Copies the newest stub that holds pc. Returns false when there is none. */
static bool find_stub(uintptr_t pc, struct duet_stub *ret_stub, char name[STUB_NAME_BYTES])
{
	uint64_t count = stubs.count < MAX_STUBS ? stubs.count : MAX_STUBS;
	bool found = false;

	pthread_mutex_lock(&stubs.lock);
	for (uint64_t i = 1; i <= count && !found; i++) {
		uint64_t place = (stubs.count - i) % MAX_STUBS;

		found = pc - stubs.all[place].address < stubs.all[place].bytes;
		if (!found)
			continue;
		ret_stub->address = stubs.all[place].address;
		ret_stub->code_bytes = stubs.all[place].bytes;
		memcpy(name, stubs.all[place].name, STUB_NAME_BYTES);
	}
	pthread_mutex_unlock(&stubs.lock);
	return found;
}

/* Copies the name with safe_copy(), because the blob may be freed meanwhile. */
static bool find_other_blob(uintptr_t pc, struct duet_stub *ret_stub, char name[STUB_NAME_BYTES])
{
	struct code_blob blob;

	if (!jvmstructs_blob_at(pc, &blob))
		return false;
	name[safe_copy(name, (uintptr_t)blob.name, STUB_NAME_BYTES - 1)] = '\0';
	ret_stub->address = blob.start;
	ret_stub->code_bytes = (uint32_t)blob.bytes;
	return name[0] && !jvmstructs_is_nmethod(name);
}

static bool answer_stub(struct stay *stay, uintptr_t pc)
{
	struct duet_stub stub = {.time_ns = clock_ns()};
	char name[STUB_NAME_BYTES];
	struct ring_part parts[] = {{&stub, sizeof(stub)}, {name, 0}};

	if (!find_stub(pc, &stub, name) && !find_other_blob(pc, &stub, name))
		return false;
	stub.name_len = (uint32_t)strlen(name);
	parts[1].bytes = stub.name_len;
	ring_write(&stay->ring, DUET_AGENT_STUB, parts, 2, RING_WAIT);
	return true;
}

/*
 * Before JDK 17, enabling DynamicCodeGenerated in a running JVM races with code being generated and has crashed
 * (JDK-8212155). At start it is safe in all JDKs.
 */
bool code_has_stub_events(void)
{
	return jvm.at_start || jvm.version >= 17;
}

void code_publish_heaps(struct stay *stay)
{
	uintptr_t low, high;

	for (unsigned int i = 0; jvmstructs_code_heap(i, &low, &high); i++) {
		struct duet_code_heap heap = {.low = low, .high = high};
		struct ring_part part = {&heap, sizeof(heap)};

		ring_write(&stay->ring, DUET_AGENT_CODE_HEAP, &part, 1, RING_WAIT);
	}
}

/*
 * Kinds of blobs that a JVM makes when it needs the first one. While it lacks some, it has few blobs, so looking for
 * them again is cheap.
 */
#define LAZY_KINDS 3

void code_publish_layout(struct stay *stay)
{
	struct duet_jvm_layout *layout = &stay->layouts[stay->layout_count];
	struct ring_part part = {layout, sizeof(*layout)};
	uint32_t kinds;

	if (stay->layout_count == STAY_LAYOUTS || stay->kinds_published == LAZY_KINDS ||
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

/* ---- answers ---- */

#define METHODS_AT_ONCE 64 /* sent with one compilation; a large one has hundreds, of which samples hit few */

/* Returns the entry of the first pc after this one: debug information describes the code before its own pc. */
static const struct duet_code_pc *pc_behind(const struct nmethod_record *record, uint64_t pc)
{
	for (uint32_t i = 0; i < record->load.pc_count; i++)
		if (record->load.address + record->pcs[i].offset > pc)
			return &record->pcs[i];
	return NULL;
}

/* Methods that have no room now are left out: the loader asks for them. */
static void tell_some(struct stay *stay, JNIEnv *env, const struct duet_java_frame *frames, uint32_t count,
		      unsigned int *left)
{
	for (uint32_t i = 0; i < count && *left && ring_has_room(&stay->ring); i++)
		*left -= methods_tell(stay, env, frames[i].method);
}

/*
 * A JVM may end before the loader has asked for the names too. So they are sent with the code, those that the sample
 * hit first. ring_has_room() wants room for two records, so that there is still room for the code after the last
 * method.
 */
static void tell_methods(struct stay *stay, JNIEnv *env, const struct nmethod_record *record, uint64_t pc)
{
	const struct duet_java_frame itself = {.method = record->load.method};
	const struct duet_code_pc *met = pc_behind(record, pc);
	unsigned int left = METHODS_AT_ONCE;

	if (met)
		tell_some(stay, env, record->frames + met->frame, met->depth, &left);
	tell_some(stay, env, &itself, 1, &left);
	tell_some(stay, env, record->frames, record->load.frame_count, &left);
}

/* Takes ownership of the record. */
static void answer_compiled(struct stay *stay, JNIEnv *env, struct nmethod_record *record, uint64_t pc)
{
	struct ring_part parts[] = {
		{&record->load, sizeof(record->load)},
		{record->pcs, record->load.pc_count * sizeof(*record->pcs)},
		{record->frames, record->load.frame_count * sizeof(*record->frames)},
	};

	tell_methods(stay, env, record, pc);
	ring_write(&stay->ring, DUET_AGENT_CODE_LOAD, parts, 3, RING_WAIT);
	nmethods_release(record);
}

void code_answer(struct stay *stay, JNIEnv *env, uint64_t pc, uint32_t id)
{
	const struct duet_want want = {.key = pc, .id = id, .kind = DUET_WANT_CODE};
	struct nmethod_record record;

	switch (nmethods_find((uintptr_t)pc, id, ring_metadata_most(&stay->ring), &record)) {
	case NMETHOD_FOUND:
		return answer_compiled(stay, env, &record, pc);
	case NMETHOD_NONE:
		if (!id && answer_stub(stay, (uintptr_t)pc))
			return;
		break;
	case NMETHOD_GONE:
		break;
	}
	if (id && kept_copy(id, &record))
		return answer_compiled(stay, env, &record, pc);
	duet_ring_count(stay->ring.page, DUET_AGENT_CODE_GONE);
	ring_write_gone(&stay->ring, &want);
}
