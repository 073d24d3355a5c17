/* SPDX-License-Identifier: MIT */
#include "code.h"

#include <jvmticmlr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "jvm.h"
#include "jvmstructs.h"
#include "safe_copy.h"
#include "session.h"

#define STUB_NAME_MAX 128
/* Together below DUET_RING_MAX_RECORD. What lies behind is cut: those pcs get the method without inlining. */
#define MAX_PCS 16384
#define MAX_FRAMES 32768

/*
 * GenerateEvents() calls back on the agent's thread, which may wait for the
 * loader to make room. The JVM's own threads must not.
 */
static long generating_tid;

static enum ring_patience my_patience(void)
{
	return __atomic_load_n(&generating_tid, __ATOMIC_RELAXED) == syscall(SYS_gettid) ? RING_WAIT : RING_DROP;
}

/* ---- compiled methods ---- */

struct inlining {
	struct duet_code_pc *pcs;
	struct duet_java_frame *frames;
	uint32_t pc_count;
	uint32_t frame_count;
};

static void inlining_release(struct inlining *inlining)
{
	free(inlining->pcs);
	free(inlining->frames);
}

static bool inlining_init(struct inlining *inlining, size_t pcs, size_t frames)
{
	memset(inlining, 0, sizeof(*inlining));
	inlining->pcs = calloc(pcs + 1, sizeof(*inlining->pcs));
	inlining->frames = calloc(frames + 1, sizeof(*inlining->frames));
	return inlining->pcs && inlining->frames;
}

/* Neighbouring pcs mostly lie in one stack: then they share its frames. */
static bool drop_repeated(struct inlining *inlining, uint32_t depth)
{
	const struct duet_code_pc *previous = inlining->pc_count ? &inlining->pcs[inlining->pc_count - 1] : NULL;
	const struct duet_java_frame *frames = &inlining->frames[inlining->frame_count];

	return previous && previous->depth == depth &&
	       !memcmp(&inlining->frames[previous->frame], frames, depth * sizeof(*frames));
}

/* The frames of this pc have been stored behind frame_count. */
static void add_pc(struct inlining *inlining, uint32_t offset, uint32_t depth)
{
	struct duet_code_pc pc = {.offset = offset, .frame = inlining->frame_count, .depth = depth};

	if (inlining->pc_count && inlining->pcs[inlining->pc_count - 1].offset >= offset)
		return;
	if (drop_repeated(inlining, depth))
		pc.frame = inlining->pcs[inlining->pc_count - 1].frame;
	else
		inlining->frame_count += depth;
	inlining->pcs[inlining->pc_count++] = pc;
}

static const jvmtiCompiledMethodLoadInlineRecord *find_inline_record(const void *compile_info)
{
	const jvmtiCompiledMethodLoadRecordHeader *header = compile_info;

	while (header && header->kind != JVMTI_CMLR_INLINE_INFO)
		header = header->next;
	return (const jvmtiCompiledMethodLoadInlineRecord *)header;
}

static bool inlining_from_record(struct inlining *inlining, const jvmtiCompiledMethodLoadInlineRecord *record,
				 uintptr_t address)
{
	size_t pcs = 0, frames = 0;

	while (pcs < (size_t)record->numpcs && pcs < MAX_PCS && record->pcinfo[pcs].numstackframes >= 0 &&
	       frames + (size_t)record->pcinfo[pcs].numstackframes <= MAX_FRAMES)
		frames += (size_t)record->pcinfo[pcs++].numstackframes;
	if (!inlining_init(inlining, pcs, frames))
		return false;
	for (size_t i = 0; i < pcs; i++) {
		const PCStackInfo *info = &record->pcinfo[i];
		struct duet_java_frame *frame = &inlining->frames[inlining->frame_count];

		for (jint j = 0; j < info->numstackframes; j++) {
			frame[j].method = (uintptr_t)info->methods[j];
			frame[j].bci = info->bcis[j];
		}
		add_pc(inlining, (uint32_t)((uintptr_t)info->pc - address), (uint32_t)info->numstackframes);
	}
	return true;
}

/* Without an inline record, JVMTI's address map still gives bytecode indices of the method itself. */
static bool inlining_from_map(struct inlining *inlining, jmethodID method, const jvmtiAddrLocationMap *map, jint length,
			      uintptr_t address)
{
	size_t pcs = length > 0 ? (size_t)length : 0;

	if (pcs > MAX_PCS)
		pcs = MAX_PCS;
	if (!inlining_init(inlining, pcs, pcs))
		return false;
	for (size_t i = 0; i < pcs; i++) {
		struct duet_java_frame *frame = &inlining->frames[inlining->frame_count];

		frame->method = (uintptr_t)method;
		frame->bci = (int32_t)map[i].location;
		add_pc(inlining, (uint32_t)((uintptr_t)map[i].start_address - address), 1);
	}
	return true;
}

/* Read by BPF. */
static uint64_t enter_special;

/*
 * A virtual thread's first frame on its carrier's stack is that of a method whose wrapper HotSpot makes when it is
 * first called. JDK 21 does not export where that is.
 */
static void find_enter_special(jmethodID method, uintptr_t address)
{
	char *name = NULL, *signature = NULL;
	struct code_blob blob;

	if (enter_special || jvm.version < 21 || !jvmstructs_find_blob(address, &blob) ||
	    !blob.name || strcmp(blob.name, "native nmethod") != 0)
		return;
	if ((*jvm.jvmti)->GetMethodName(jvm.jvmti, method, &name, &signature, NULL) != JVMTI_ERROR_NONE)
		return;
	/* As a return address: behind a byte. */
	if (!strcmp(name, "enterSpecial") && !strcmp(signature, "(Ljdk/internal/vm/Continuation;ZZ)V"))
		__atomic_store_n(&enter_special, address + 1, __ATOMIC_RELAXED);
	(*jvm.jvmti)->Deallocate(jvm.jvmti, (unsigned char *)name);
	(*jvm.jvmti)->Deallocate(jvm.jvmti, (unsigned char *)signature);
}

static void write_load(struct session *session, const struct duet_code_load *load, const struct inlining *inlining)
{
	struct ring_part parts[] = {
		{load, sizeof(*load)},
		{inlining->pcs, inlining->pc_count * sizeof(*inlining->pcs)},
		{inlining->frames, inlining->frame_count * sizeof(*inlining->frames)},
	};

	ring_write(&session->ring, DUET_AGENT_CODE_LOAD, parts, 3, my_patience());
	methods_see(session, load->method);
	for (uint32_t i = 0; i < inlining->frame_count; i++)
		methods_see(session, inlining->frames[i].method);
}

void JNICALL code_on_load(jvmtiEnv *jvmti, jmethodID method, jint bytes, const void *address, jint map_length,
			  const jvmtiAddrLocationMap *map, const void *compile_info)
{
	struct duet_code_load load = {.time_ns = clock_ns(), .method = (uintptr_t)method};
	const jvmtiCompiledMethodLoadInlineRecord *record = find_inline_record(compile_info);
	struct session *session = session_enter();
	struct inlining inlining = {0};
	bool filled;

	(void)jvmti;
	if (!session)
		goto out;
	if (record)
		filled = inlining_from_record(&inlining, record, (uintptr_t)address);
	else
		filled = inlining_from_map(&inlining, method, map, map_length, (uintptr_t)address);
	if (!filled) {
		duet_ring_count(session->ring.page, DUET_AGENT_METADATA_FULL);
		goto out;
	}
	load.address = (uintptr_t)address;
	load.code_bytes = (uint32_t)bytes;
	load.id = jvmstructs_compile_id(load.address);
	find_enter_special(method, load.address);
	load.pc_count = inlining.pc_count;
	load.frame_count = inlining.frame_count;
	write_load(session, &load, &inlining);
out:
	inlining_release(&inlining);
	session_leave();
}

void JNICALL code_on_unload(jvmtiEnv *jvmti, jmethodID method, const void *address)
{
	struct duet_code_unload unload = {
		.time_ns = clock_ns(),
		.method = (uintptr_t)method,
		.address = (uintptr_t)address,
	};
	struct ring_part part = {&unload, sizeof(unload)};
	struct session *session = session_enter();

	(void)jvmti;
	if (session)
		ring_write(&session->ring, DUET_AGENT_CODE_UNLOAD, &part, 1, RING_DROP);
	session_leave();
}

/* ---- stubs ---- */

static void write_stub(struct session *session, const char *name, uintptr_t address, size_t bytes)
{
	struct duet_stub stub = {
		.time_ns = clock_ns(),
		.address = address,
		.code_bytes = (uint32_t)bytes,
		.name_len = (uint32_t)strnlen(name, STUB_NAME_MAX),
	};
	struct ring_part parts[] = {{&stub, sizeof(stub)}, {name, stub.name_len}};

	ring_write(&session->ring, DUET_AGENT_STUB, parts, 2, my_patience());
}

void JNICALL code_on_stub(jvmtiEnv *jvmti, const char *name, const void *address, jint bytes)
{
	struct session *session = session_enter();

	(void)jvmti;
	if (session && name && bytes > 0)
		write_stub(session, name, (uintptr_t)address, (size_t)bytes);
	session_leave();
}

/*
 * Before JDK 17, enabling DynamicCodeGenerated in a running JVM races with code
 * being generated and has crashed (JDK-8212155); at start it is safe in all.
 */
bool code_has_stub_events(void)
{
	return jvm.at_start || jvm.version >= 17;
}

/* The blobs in the code heaps that are not compiled methods. Names are copied with care: a blob may die meanwhile. */
static void publish_stubs_of_heap(struct session *session, unsigned int heap)
{
	struct code_blob blob;
	uintptr_t cursor = 0;

	while (jvmstructs_next_blob(heap, &cursor, &blob)) {
		char name[STUB_NAME_MAX + 1] = "";

		safe_copy(name, (uintptr_t)blob.name, STUB_NAME_MAX);
		if (name[0] && !jvmstructs_is_nmethod(name))
			write_stub(session, name, blob.start, blob.bytes);
	}
}

void code_publish_heaps(struct session *session)
{
	uintptr_t low, high;

	for (unsigned int i = 0; jvmstructs_code_heap(i, &low, &high); i++) {
		struct duet_code_heap heap = {.low = low, .high = high};
		struct ring_part part = {&heap, sizeof(heap)};

		ring_write(&session->ring, DUET_AGENT_CODE_HEAP, &part, 1, RING_WAIT);
	}
}

#define LAZY_KINDS 3 /* of blobs, made when the first is needed: a JVM without them has few blobs to look at */

void code_publish_layout(struct session *session)
{
	struct duet_jvm_layout *layout = &session->layouts[session->layout_count];
	struct ring_part part = {layout, sizeof(*layout)};
	uint32_t kinds;

	if (session->layout_count == SESSION_LAYOUTS || session->kinds_published == LAZY_KINDS ||
	    !jvmstructs_layout(layout, jvm.version))
		return;
	layout->enter_special = (uintptr_t)&enter_special;
	layout->virtual_threads = jvm.virtual_threads;
	kinds = (layout->compiled_name != 0) + (layout->native_name != 0) + (layout->frameless_names[0] != 0);
	if (session->layout_count && kinds == session->kinds_published)
		return;
	session->layout_count++;
	session->kinds_published = kinds;
	__atomic_store_n(&session->layout, layout, __ATOMIC_RELEASE);
	ring_write(&session->ring, DUET_AGENT_LAYOUT, &part, 1, RING_WAIT);
}

void code_publish_existing(struct session *session)
{
	uintptr_t low, high;

	__atomic_store_n(&generating_tid, syscall(SYS_gettid), __ATOMIC_RELAXED);
	if (code_has_stub_events())
		(*jvm.jvmti)->GenerateEvents(jvm.jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	else
		for (unsigned int i = 0; jvmstructs_code_heap(i, &low, &high); i++)
			publish_stubs_of_heap(session, i);
	(*jvm.jvmti)->GenerateEvents(jvm.jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
	__atomic_store_n(&generating_tid, 0, __ATOMIC_RELAXED);
}
