/* SPDX-License-Identifier: MIT */
#include "hotspot/jvmstructs.h"

#include <string.h>

#include "hotspot/stubs.h"
#include "hotspot/vmstructs.h"
#include "memory.h"
#include "walk/frame.h"

#define MAX_CODE_HEAPS 8
/* Bounds for the values of another process. A code cache has at most 2 GB, and 100,000 blobs are many. */
#define HEAP_MAX_BYTES (2ull << 30)
#define MAX_BLOBS (1u << 20)
/* steps from a segment to the first one of its block; each step leads up to 254 segments back */
#define MAX_STEPS (1u << 18)
#define MAX_ENTRIES 20000 /* JDK 25 has 2,000; a bound for a table that has no end */
#define SEGMENT_FREE 0xff
#define CODELET_TEXT_BYTES 128 /* longer than the names of the codelets that are searched */
#define BLOB_NAME_BYTES 16 /* enough to recognise nmethods */
#define COMPACT_KLASS_BITS_BELOW 42 /* markWord::klass_shift, markWord.hpp, JDK 24 to 27 */
#define OBJECT_KLASS 8 /* the word after the mark, where JDK 27 does not export it */
#define BLOB_HEADER_MAX 512 /* all fields that are read are in these first bytes of a blob; JDK 8's nmethod has 300 */

static struct {
	/* addresses of static fields */
	uintptr_t heaps_address; /* JDK 9+: GrowableArray<CodeHeap *> * */
	uintptr_t heap_address; /* JDK 8: CodeHeap * */
	uintptr_t interpreter_address; /* StubQueue * */
	uintptr_t call_stub_return_address; /* address */
	uintptr_t oop_base_address, oop_shift_address;
	uintptr_t klass_base_address, klass_shift_address;
	uintptr_t perf_memory_address; /* char * */
	uintptr_t enter_special_address; /* JDK 22+: address, within the code of Continuation.enterSpecial */
	struct offset array_length, array_data;
	struct offset heap_memory, heap_segmap, heap_segment_shift;
	struct offset space_low, space_high, space_low_boundary, space_high_boundary;
	struct offset block_length, block_used;
	struct offset blob_name, blob_bytes, blob_frame_complete, blob_frame_words, blob_code_begin, blob_code_offset;
	struct offset nmethod_entry, nmethod_entry_offset, nmethod_stubs, nmethod_id, nmethod_original_pc;
	struct offset queue_buffer, queue_end, codelet_text, codelet_bytes;
	struct offset method_const, const_pool, const_id, const_code_bytes, pool_holder, pool_length, holder_ids;
	struct offset thread_osthread, osthread_id, stack_base, stack_bytes;
	struct offset thread_anchor, wrapper_anchor, anchor_sp, anchor_pc, anchor_fp;
	struct offset thread_object, thread_current, thread_owner, thread_entry;
	struct offset thread_allocated, thread_buffer, buffer_start, buffer_top, buffer_end;
	struct offset klass_name, symbol_length, symbol_body;
	struct offset object_klass;
	size_t block_header_bytes, const_method_bytes;
} layout;

/* CodeHeap objects live as long as the JVM; only the committed end of each grows. */
static struct code_heap {
	uintptr_t heap, low, high;
	unsigned int segment_shift;
} code_heaps[MAX_CODE_HEAPS];
static unsigned int code_heap_count;

static const struct vmstructs_row rows[] = {
	{"GrowableArrayBase", "_len", &layout.array_length, NULL},
	{"GenericGrowableArray", "_len", &layout.array_length, NULL}, /* JDK 8-15 */
	{"GrowableArray<int>", "_data", &layout.array_data, NULL},
	{"CodeHeap", "_memory", &layout.heap_memory, NULL},
	{"CodeHeap", "_segmap", &layout.heap_segmap, NULL},
	{"CodeHeap", "_log2_segment_size", &layout.heap_segment_shift, NULL},
	{"VirtualSpace", "_low", &layout.space_low, NULL},
	{"VirtualSpace", "_high", &layout.space_high, NULL},
	{"VirtualSpace", "_low_boundary", &layout.space_low_boundary, NULL},
	{"VirtualSpace", "_high_boundary", &layout.space_high_boundary, NULL},
	{"HeapBlock::Header", "_length", &layout.block_length, NULL},
	{"HeapBlock::Header", "_used", &layout.block_used, NULL},
	{"CodeBlob", "_name", &layout.blob_name, NULL},
	{"CodeBlob", "_size", &layout.blob_bytes, NULL},
	{"CodeBlob", "_frame_complete_offset", &layout.blob_frame_complete, NULL},
	{"CodeBlob", "_frame_size", &layout.blob_frame_words, NULL},
	{"CodeBlob", "_code_begin", &layout.blob_code_begin, NULL}, /* JDK 9-22 */
	{"CodeBlob", "_code_offset", &layout.blob_code_offset, NULL}, /* JDK 23+ */
	{"nmethod", "_verified_entry_point", &layout.nmethod_entry, NULL}, /* JDK 8-22 */
	{"nmethod", "_verified_entry_offset", &layout.nmethod_entry_offset, NULL}, /* JDK 23+ */
	{"nmethod", "_stub_offset", &layout.nmethod_stubs, NULL},
	{"nmethod", "_compile_id", &layout.nmethod_id, NULL},
	{"nmethod", "_orig_pc_offset", &layout.nmethod_original_pc, NULL},
	{"StubQueue", "_stub_buffer", &layout.queue_buffer, NULL},
	{"StubQueue", "_queue_end", &layout.queue_end, NULL},
	{"InterpreterCodelet", "_description", &layout.codelet_text, NULL},
	{"InterpreterCodelet", "_size", &layout.codelet_bytes, NULL},
	{"Method", "_constMethod", &layout.method_const, NULL},
	{"ConstMethod", "_constants", &layout.const_pool, NULL},
	{"ConstMethod", "_method_idnum", &layout.const_id, NULL},
	{"ConstMethod", "_code_size", &layout.const_code_bytes, NULL},
	{"ConstantPool", "_pool_holder", &layout.pool_holder, NULL},
	{"ConstantPool", "_length", &layout.pool_length, NULL},
	{"InstanceKlass", "_methods_jmethod_ids", &layout.holder_ids, NULL},
	{"JavaThread", "_osthread", &layout.thread_osthread, NULL},
	{"Thread", "_osthread", &layout.thread_osthread, NULL},
	{"OSThread", "_thread_id", &layout.osthread_id, NULL},
	{"JavaThread", "_stack_base", &layout.stack_base, NULL},
	{"JavaThread", "_stack_size", &layout.stack_bytes, NULL},
	{"Thread", "_stack_base", &layout.stack_base, NULL},
	{"Thread", "_stack_size", &layout.stack_bytes, NULL},
	{"JavaThread", "_anchor", &layout.thread_anchor, NULL},
	{"JavaThread", "_threadObj", &layout.thread_object, NULL},
	{"JavaThread", "_vthread", &layout.thread_current, NULL}, /* JDK 21+ */
	{"JavaThread", "_monitor_owner_id", &layout.thread_owner, NULL}, /* JDK 25+, like the next */
	{"JavaThread", "_cont_entry", &layout.thread_entry, NULL},
	{"Thread", "_allocated_bytes", &layout.thread_allocated, NULL},
	{"Thread", "_tlab", &layout.thread_buffer, NULL},
	{"ThreadLocalAllocBuffer", "_start", &layout.buffer_start, NULL},
	{"ThreadLocalAllocBuffer", "_top", &layout.buffer_top, NULL},
	{"ThreadLocalAllocBuffer", "_end", &layout.buffer_end, NULL},
	{"Klass", "_name", &layout.klass_name, NULL},
	{"Symbol", "_length", &layout.symbol_length, NULL},
	{"Symbol", "_body", &layout.symbol_body, NULL},
	{"oopDesc", "_metadata._klass", &layout.object_klass, NULL},
	{"JavaFrameAnchor", "_last_Java_sp", &layout.anchor_sp, NULL},
	{"JavaFrameAnchor", "_last_Java_pc", &layout.anchor_pc, NULL},
	{"JavaFrameAnchor", "_last_Java_fp", &layout.anchor_fp, NULL},
	{"JavaCallWrapper", "_anchor", &layout.wrapper_anchor, NULL},
	{"CodeCache", "_heaps", NULL, &layout.heaps_address},
	{"CodeCache", "_heap", NULL, &layout.heap_address},
	{"AbstractInterpreter", "_code", NULL, &layout.interpreter_address},
	{"StubRoutines", "_call_stub_return_address", NULL, &layout.call_stub_return_address},
	{"CompressedOops", "_narrow_oop._base", NULL, &layout.oop_base_address}, /* JDK 13-22 */
	{"CompressedOops", "_narrow_oop._shift", NULL, &layout.oop_shift_address},
	{"CompressedOops", "_base", NULL, &layout.oop_base_address},
	{"CompressedOops", "_shift", NULL, &layout.oop_shift_address},
	{"Universe", "_narrow_klass._base", NULL, &layout.klass_base_address}, /* JDK 8-12 */
	{"Universe", "_narrow_klass._shift", NULL, &layout.klass_shift_address},
	{"CompressedKlassPointers", "_narrow_klass._base", NULL, &layout.klass_base_address}, /* JDK 13-22 */
	{"CompressedKlassPointers", "_narrow_klass._shift", NULL, &layout.klass_shift_address},
	{"CompressedKlassPointers", "_base", NULL, &layout.klass_base_address},
	{"CompressedKlassPointers", "_shift", NULL, &layout.klass_shift_address},
	{"ContinuationEntry", "_return_pc", NULL, &layout.enter_special_address},
	{"PerfMemory", "_start", NULL, &layout.perf_memory_address},
};

static uint64_t load_field(uintptr_t object, const struct offset *offset)
{
	switch (offset->width) {
	case 2:
		return memory_half(object + offset->value);
	case 8:
		return memory_word(object + offset->value);
	default:
		return memory_int(object + offset->value);
	}
}

/* ---- code heaps ---- */

static void add_code_heap(uintptr_t heap)
{
	uintptr_t memory = heap + layout.heap_memory.value, low, high;
	unsigned int shift;

	if (!heap || code_heap_count == MAX_CODE_HEAPS)
		return;
	shift = memory_int(heap + layout.heap_segment_shift.value);
	low = memory_word(memory + layout.space_low_boundary.value);
	high = memory_word(memory + layout.space_high_boundary.value);
	if (shift < 4 || shift > 20 || high - low > HEAP_MAX_BYTES)
		return;
	code_heaps[code_heap_count++] = (struct code_heap){heap, low, high, shift};
}

static void read_heap_array(void)
{
	uintptr_t array = layout.heaps_address ? memory_word(layout.heaps_address) : 0, data;
	uint32_t length;

	if (!array || !layout.array_length.known || !layout.array_data.known)
		return;
	length = memory_int(array + layout.array_length.value);
	data = memory_word(array + layout.array_data.value);
	for (uint32_t i = 0; i < length && i < MAX_CODE_HEAPS; i++)
		add_code_heap(memory_word(data + i * sizeof(uintptr_t)));
}

bool jvmstructs_renew_heaps(void)
{
	code_heap_count = 0;
	if (!layout.heap_memory.known || !layout.heap_segmap.known || !layout.heap_segment_shift.known ||
	    !layout.space_low.known || !layout.space_high.known || !layout.space_low_boundary.known ||
	    !layout.space_high_boundary.known)
		return false;
	if (layout.heap_address)
		add_code_heap(memory_word(layout.heap_address));
	read_heap_array();
	return code_heap_count != 0;
}

int jvmstructs_open(void)
{
	int error;

	memset(&layout, 0, sizeof(layout));
	error = vmstructs_read(rows, sizeof(rows) / sizeof(rows[0]));
	if (error)
		return error;
	layout.block_header_bytes = vmstructs_type_bytes("HeapBlock");
	layout.const_method_bytes = vmstructs_type_bytes("ConstMethod");
	jvmflags_open();
	compiling_open();
	jvmstructs_renew_heaps();
	return 0;
}

bool jvmstructs_code_heap(unsigned int i, uintptr_t *ret_low, uintptr_t *ret_high)
{
	if (i >= code_heap_count)
		return false;
	*ret_low = code_heaps[i].low;
	*ret_high = code_heaps[i].high;
	return true;
}

static int find_heap(uintptr_t pc)
{
	for (unsigned int i = 0; i < code_heap_count; i++)
		if (pc >= code_heaps[i].low && pc < code_heaps[i].high)
			return (int)i;
	return -1;
}

bool jvmstructs_is_code(uintptr_t pc)
{
	return find_heap(pc) >= 0;
}

/* ---- code blobs ---- */

static bool blobs_are_known(void)
{
	return layout.block_header_bytes && layout.block_length.known && layout.block_used.known &&
	       layout.blob_name.known && layout.blob_bytes.known && layout.blob_frame_words.known;
}

static uintptr_t committed_end(unsigned int i)
{
	return memory_word(code_heaps[i].heap + layout.heap_memory.value + layout.space_high.value);
}

bool jvmstructs_is_readable_code(uintptr_t pc, size_t before)
{
	return jvmstructs_is_code(pc) && jvmstructs_is_committed(pc - before, before + 1);
}

bool jvmstructs_is_committed(uintptr_t address, size_t bytes)
{
	const struct offset *const spaces[] = {&layout.heap_memory, &layout.heap_segmap};

	for (unsigned int i = 0; i < 2 * code_heap_count; i++) {
		uintptr_t space = code_heaps[i / 2].heap + spaces[i % 2]->value;

		if (address >= memory_word(space + layout.space_low.value) && address + bytes > address &&
		    address + bytes <= memory_word(space + layout.space_high.value))
			return true;
	}
	return false;
}

/*
 * Finds the block that holds pc in heap i; returns 0 when there is none. The segment map has a byte per segment: 0xff
 * if it is free, else the distance back towards the block's first segment, whose byte is 0. A block that is being made
 * or freed meanwhile yields a wrong blob, but never a wild address: every step stays in the map. HotSpot commits a
 * heap's memory before that of its map, which may fail, so both ends are checked.
 */
static uintptr_t find_block(unsigned int i, uintptr_t pc)
{
	uintptr_t low = code_heaps[i].low, map = code_heaps[i].heap + layout.heap_segmap.value;
	uintptr_t steps = memory_word(map + layout.space_low.value);
	size_t segment = (pc - low) >> code_heaps[i].segment_shift;
	uint8_t back;

	if (pc >= committed_end(i) || segment >= memory_word(map + layout.space_high.value) - steps)
		return 0;
	for (uint32_t n = 0; (back = memory_byte(steps + segment)) != 0; n++) {
		if (back == SEGMENT_FREE || back > segment || n == MAX_STEPS)
			return 0;
		segment -= back;
	}
	return low + (segment << code_heaps[i].segment_shift);
}

static void blob_code(struct code_blob *blob)
{
	uintptr_t at = blob->start;

	if (layout.blob_code_begin.known)
		blob->code_begin = memory_word(at + layout.blob_code_begin.value);
	else if (layout.blob_code_offset.known)
		blob->code_begin = at + load_field(at, &layout.blob_code_offset);
	if (blob->code_begin && layout.blob_frame_complete.known) {
		/* CodeOffsets::frame_never_safe is -1, in 2 or 4 bytes. */
		uint64_t offset = load_field(at, &layout.blob_frame_complete);

		if (offset < blob->bytes)
			blob->frame_complete = blob->code_begin + offset;
	}
}

bool jvmstructs_is_nmethod(const char *name)
{
	return !strcmp(name, "nmethod") || !strcmp(name, "native nmethod");
}

void jvmstructs_blob_name(const struct code_blob *blob, char *name, size_t size)
{
	name[memory_take(name, (uintptr_t)blob->name, size - 1)] = '\0';
}

/* Reads the blob's name in place, which is safe only because a thread is running in the blob. */
static void nmethod_entry(struct code_blob *blob)
{
	char name[BLOB_NAME_BYTES];

	memory_text(name, (uintptr_t)blob->name, sizeof(name));
	if (!jvmstructs_is_nmethod(name))
		return;
	if (layout.nmethod_entry.known)
		blob->entry = memory_word(blob->start + layout.nmethod_entry.value);
	else if (layout.nmethod_entry_offset.known && blob->code_begin)
		blob->entry = blob->code_begin + load_field(blob->start, &layout.nmethod_entry_offset);
	if (blob->entry < blob->start || blob->entry >= blob->start + blob->bytes)
		blob->entry = 0;
}

static bool read_blob(uintptr_t block, uintptr_t end, struct code_blob *ret_blob)
{
	struct code_blob blob = {.start = block + layout.block_header_bytes};
	uint32_t words;

	/* Memory past the committed end cannot be read: a block that crosses it is only half made. */
	if (!block || end < blob.start || end - blob.start < BLOB_HEADER_MAX ||
	    !memory_byte(block + layout.block_used.value))
		return false;
	blob.name = (const char *)memory_word(blob.start + layout.blob_name.value);
	blob.bytes = memory_int(blob.start + layout.blob_bytes.value);
	words = memory_int(blob.start + layout.blob_frame_words.value);
	if (blob.bytes > end - blob.start)
		return false;
	blob.frame_bytes = words < (1u << 16) ? words * sizeof(uintptr_t) : 0;
	blob_code(&blob);
	*ret_blob = blob;
	return true;
}

uint32_t jvmstructs_blob_id(const struct code_blob *blob)
{
	return layout.nmethod_id.known ? memory_int(blob->start + layout.nmethod_id.value) : 0;
}

bool jvmstructs_blob_at(uintptr_t pc, struct code_blob *ret_blob)
{
	int i = find_heap(pc);

	return i >= 0 && blobs_are_known() &&
	       read_blob(find_block((unsigned int)i, pc), committed_end((unsigned int)i), ret_blob);
}

bool jvmstructs_find_blob(uintptr_t pc, struct code_blob *ret_blob)
{
	if (!jvmstructs_blob_at(pc, ret_blob))
		return false;
	nmethod_entry(ret_blob);
	return true;
}

bool jvmstructs_next_blob(unsigned int i, uintptr_t *cursor, struct code_blob *ret_blob)
{
	uintptr_t end, block;

	if (i >= code_heap_count || !blobs_are_known())
		return false;
	end = committed_end(i);
	block = *cursor ? *cursor : code_heaps[i].low;
	while (block < end) {
		uint64_t segments = load_field(block, &layout.block_length);

		if (!segments || segments > (end - block) >> code_heaps[i].segment_shift)
			return false;
		*cursor = block + (segments << code_heaps[i].segment_shift);
		if (read_blob(block, end, ret_blob))
			return true;
		block = *cursor;
	}
	return false;
}

/* ---- threads ---- */

int jvmstructs_thread_id(uintptr_t java_thread)
{
	uintptr_t osthread = 0;
	int32_t tid = 0;

	if (!java_thread || !layout.thread_osthread.known || !layout.osthread_id.known)
		return 0;
	memory_copy(&osthread, java_thread + layout.thread_osthread.value, sizeof(osthread));
	if (osthread)
		memory_copy(&tid, osthread + layout.osthread_id.value, sizeof(tid));
	return tid;
}

int jvmstructs_living_id(uintptr_t java_thread)
{
	uintptr_t osthread;

	if (!java_thread || !layout.thread_osthread.known || !layout.osthread_id.known)
		return 0;
	osthread = memory_word(java_thread + layout.thread_osthread.value);
	return osthread ? (int)memory_int(osthread + layout.osthread_id.value) : 0;
}

bool jvmstructs_stack(uintptr_t java_thread, uintptr_t *ret_base, uintptr_t *ret_bytes)
{
	if (!java_thread || !layout.stack_base.known || !layout.stack_bytes.known)
		return false;
	*ret_base = memory_word(java_thread + layout.stack_base.value);
	*ret_bytes = memory_word(java_thread + layout.stack_bytes.value);
	return true;
}

static bool anchor_in(uintptr_t holder, const struct offset *offset, struct frame_anchor *ret_anchor)
{
	uintptr_t anchor = holder + offset->value;

	if (!holder || !offset->known || !layout.anchor_sp.known || !layout.anchor_pc.known || !layout.anchor_fp.known)
		return false;
	ret_anchor->sp = (uintptr_t *)(anchor + layout.anchor_sp.value);
	ret_anchor->pc = (uintptr_t *)(anchor + layout.anchor_pc.value);
	ret_anchor->fp = (uintptr_t *)(anchor + layout.anchor_fp.value);
	return true;
}

bool jvmstructs_anchor(uintptr_t java_thread, struct frame_anchor *ret_anchor)
{
	return anchor_in(java_thread, &layout.thread_anchor, ret_anchor);
}

bool jvmstructs_caller_anchor(uintptr_t wrapper, struct frame_anchor *ret_anchor)
{
	return anchor_in(wrapper, &layout.wrapper_anchor, ret_anchor);
}

/* ---- the layout, for walkers outside of this process ---- */

static uint16_t publish(const struct offset *offset, size_t base)
{
	return offset->known && offset->value + base < DUET_MAX_OFFSET ? (uint16_t)(offset->value + base)
								       : DUET_JVM_NO_FIELD;
}

static void publish_interpreter(struct duet_jvm_layout *ret)
{
	uintptr_t queue = layout.interpreter_address ? memory_word(layout.interpreter_address) : 0;
	uintptr_t at, end;

	if (!queue || !layout.queue_buffer.known || !layout.queue_end.known || !layout.codelet_text.known ||
	    !layout.codelet_bytes.known)
		return;
	at = memory_word(queue + layout.queue_buffer.value);
	end = at + memory_int(queue + layout.queue_end.value);
	ret->interpreter_low = at, ret->interpreter_high = end;
	for (int i = 0; i < MAX_ENTRIES && at < end; i++) {
		uint32_t bytes = memory_int(at + layout.codelet_bytes.value);
		char text[CODELET_TEXT_BYTES];

		if (!bytes || bytes > end - at)
			break;
		memory_text(text, memory_word(at + layout.codelet_text.value), sizeof(text));
		codelet_publish(ret, text, at, bytes);
		at += bytes;
	}
}

static void publish_heaps(struct duet_jvm_layout *ret)
{
	for (unsigned int i = 0; i < code_heap_count && i < DUET_JVM_HEAPS; i++)
		ret->heaps[i] = (struct duet_jvm_heap){
			.low = code_heaps[i].low,
			.high = code_heaps[i].high,
			.segmap = memory_word(code_heaps[i].heap + layout.heap_segmap.value + layout.space_low.value),
			.segment_shift = code_heaps[i].segment_shift,
		};
}

static void publish_blobs(struct duet_jvm_layout *ret)
{
	size_t base = layout.block_header_bytes;

	ret->block_header_bytes = (uint16_t)base;
	ret->block_used = publish(&layout.block_used, 0);
	ret->blob_name = publish(&layout.blob_name, base);
	ret->blob_bytes = publish(&layout.blob_bytes, base);
	ret->blob_frame_words = publish(&layout.blob_frame_words, base);
	ret->blob_frame_complete = publish(&layout.blob_frame_complete, base);
	ret->blob_frame_complete_width = layout.blob_frame_complete.width;
	ret->blob_code_begin = publish(&layout.blob_code_begin, base);
	ret->blob_code_offset = publish(&layout.blob_code_offset, base);
	ret->nmethod_entry = publish(&layout.nmethod_entry, base);
	ret->nmethod_entry_offset = publish(&layout.nmethod_entry_offset, base);
	ret->nmethod_stubs = publish(&layout.nmethod_stubs, base);
	ret->nmethod_id = publish(&layout.nmethod_id, base);
	ret->nmethod_original_pc = publish(&layout.nmethod_original_pc, base);
}

static void publish_methods(struct duet_jvm_layout *ret)
{
	ret->method_const = publish(&layout.method_const, 0);
	ret->const_pool = publish(&layout.const_pool, 0);
	ret->const_id = publish(&layout.const_id, 0);
	ret->const_code_bytes = publish(&layout.const_code_bytes, 0);
	ret->const_bytes = layout.const_method_bytes < DUET_MAX_OFFSET ? (uint16_t)layout.const_method_bytes : 0;
	ret->pool_holder = publish(&layout.pool_holder, 0);
	ret->pool_version = vmstructs_pool_version(&layout.pool_length);
	ret->holder_ids = publish(&layout.holder_ids, 0);
}

static void publish_allocation(struct duet_jvm_allocation *ret)
{
	size_t buffer = layout.thread_buffer.known ? layout.thread_buffer.value : DUET_MAX_OFFSET;

	ret->thread_allocated = publish(&layout.thread_allocated, 0);
	ret->buffer_start = publish(&layout.buffer_start, buffer);
	ret->buffer_top = publish(&layout.buffer_top, buffer);
	ret->buffer_end = publish(&layout.buffer_end, buffer);
	ret->klass_name = publish(&layout.klass_name, 0);
	ret->symbol_length = publish(&layout.symbol_length, 0);
	ret->symbol_body = publish(&layout.symbol_body, 0);
}

/* JDK 27 has no class pointers that are not compressed, and exports none. */
static void publish_object(struct duet_jvm_object *ret)
{
	bool is_compact = jvmflags_is_set("UseCompactObjectHeaders");
	bool is_narrow = is_compact || !layout.object_klass.known || jvmflags_is_set("UseCompressedClassPointers");

	*ret = (struct duet_jvm_object){.klass = OBJECT_KLASS, .klass_bytes = 8};
	if (layout.object_klass.known)
		ret->klass = publish(&layout.object_klass, 0);
	if (!is_narrow)
		return;
	if (!layout.klass_base_address || !layout.klass_shift_address) {
		ret->klass_bytes = 0;
		return;
	}
	ret->klass_base = memory_word(layout.klass_base_address);
	ret->klass_shift = memory_byte(layout.klass_shift_address); /* an int, little endian: one byte is enough */
	if (is_compact) {
		ret->klass = 0;
		ret->klass_below = COMPACT_KLASS_BITS_BELOW;
	} else {
		ret->klass_bytes = 4;
	}
}

/* Returns true if blobs of this name build no frame (JDK 8 to 27). The last is a prefix of a type of field. */
static bool is_frameless(const char *name)
{
	/* flush_icache_stub; JDK 25: flush_icache_initial_stub, flush_icache_final_stub */
	static const char *const kinds[] = {"MethodHandles adapters", "native signature handlers", "flush_icache_",
					    "jni_fast_Get"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(name, kinds[i], strlen(kinds[i])))
			return true;
	return false;
}

static void publish_name(struct duet_jvm_layout *ret, uintptr_t address, unsigned int *count)
{
	static const char continuations[] = "StubRoutines (continuation"; /* JDK 21: " stubs)", JDK 25: "stubs)" */
	char name[sizeof(continuations)] = "";

	for (unsigned int i = 0; i < *count; i++)
		if (ret->frameless_names[i] == address)
			return;
	name[memory_copy(name, address, sizeof(name) - 1)] = '\0';
	if (!strcmp(name, "nmethod"))
		ret->compiled_name = address;
	else if (!strcmp(name, "native nmethod"))
		ret->native_name = address;
	else if (!strcmp(name, "I2C/C2I adapters"))
		ret->adapter_name = address;
	else if (!strncmp(name, continuations, strlen(continuations)))
		ret->continuation_name = address;
	else if (!strcmp(name, VTABLES_BLOB))
		ret->frameless_names[0] = address;
	else if (is_frameless(name) && *count < DUET_JVM_FRAMELESS)
		ret->frameless_names[(*count)++] = address;
}

/* Finds the names of the blobs. A name's address stands for the kind: all blobs of a kind share one constant. */
static void publish_names(struct duet_jvm_layout *ret)
{
	unsigned int count = 1; /* the first place is for the vtable stubs' name */

	for (unsigned int i = 0; i < code_heap_count; i++) {
		struct code_blob blob;
		uintptr_t cursor = 0;

		for (uint32_t n = 0; n < MAX_BLOBS && jvmstructs_next_blob(i, &cursor, &blob); n++)
			if (blob.name && (uintptr_t)blob.name != ret->compiled_name &&
			    (uintptr_t)blob.name != ret->native_name)
				publish_name(ret, (uintptr_t)blob.name, &count);
	}
}

uintptr_t jvmstructs_stub_variable(void)
{
	return layout.call_stub_return_address;
}

bool jvmstructs_virtual(struct duet_jvm_virtual *ret, bool *ret_reads_objects)
{
	struct duet_jvm_virtual result = {
		.thread_object = publish(&layout.thread_object, 0),
		.thread_current = publish(&layout.thread_current, 0),
		.thread_owner = publish(&layout.thread_owner, 0),
		.thread_entry = publish(&layout.thread_entry, 0),
	};

	if (result.thread_object == DUET_JVM_NO_FIELD || result.thread_current == DUET_JVM_NO_FIELD ||
	    !layout.oop_base_address || !layout.oop_shift_address)
		return false;
	result.oop_base = memory_word(layout.oop_base_address);
	result.oop_shift = memory_byte(layout.oop_shift_address); /* an int, little endian: one byte is enough */
	*ret = result;
	*ret_reads_objects = !jvmflags_is_set("UseZGC");
	return true;
}

/* Returns true if nothing is missing that a walk needs. Of two fields of which each JDK has only one, one is enough. */
static bool layout_is_whole(const struct duet_jvm_layout *ret)
{
	const uint16_t needed[] = {
		ret->block_used,	  ret->blob_name,     ret->blob_bytes, ret->blob_frame_words,
		ret->blob_frame_complete, ret->nmethod_stubs, ret->nmethod_id, ret->nmethod_original_pc,
		ret->method_const,	  ret->const_pool,    ret->const_id,   ret->const_code_bytes,
		ret->pool_holder,	  ret->holder_ids};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (needed[i] == DUET_JVM_NO_FIELD)
			return false;
	return ret->entries_low && ret->const_bytes && ret->call_stub_return &&
	       (ret->blob_code_begin & ret->blob_code_offset) != DUET_JVM_NO_FIELD &&
	       (ret->nmethod_entry & ret->nmethod_entry_offset) != DUET_JVM_NO_FIELD;
}

uintptr_t jvmstructs_counter(const char *name)
{
	return layout.perf_memory_address ? perf_counter(memory_word(layout.perf_memory_address), name) : 0;
}

bool jvmstructs_layout(struct duet_jvm_layout *ret_layout, int version)
{
	struct duet_jvm_layout result = {.frame_bcp = version < 9 ? -7 : DUET_FRAME_BCP_WORD};

	if (!code_heap_count || !blobs_are_known() || !layout.call_stub_return_address)
		return false;
	result.call_stub_return = memory_word(layout.call_stub_return_address);
	result.enter_special = layout.enter_special_address;
	publish_heaps(&result);
	publish_interpreter(&result);
	publish_blobs(&result);
	publish_methods(&result);
	publish_names(&result);
	publish_allocation(&result.allocation);
	publish_object(&result.object);
	compiling_publish(&result.compiling);
	result.safepoints = jvmstructs_counter("sun.rt.safepoints");
	*ret_layout = result;
	return layout_is_whole(&result);
}
