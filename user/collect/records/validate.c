/* SPDX-License-Identifier: MIT */
#include "collect/records/validate.h"

#include <string.h>

#include "duet_agent.h"
#include "duet_config.h"
#include "walk/frame.h"
#include "duet_jvm.h"
#include "duet_record.h"
#include "duet_ring.h"

#define MAX_ERRNO 4095 /* include/linux/err.h */

static bool is_terminated(const char *text, size_t room)
{
	return memchr(text, '\0', room) != NULL;
}

static bool resource_check(const struct duet_attribute *attribute)
{
	const struct duet_resource *resource = (const void *)(attribute + 1);

	return attribute->bytes >= sizeof(*resource) && resource->kind && resource->kind < DUET_RESOURCE_MAX &&
	       resource->text_bytes <= DUET_MAX_RESOURCE_TEXT &&
	       attribute->bytes == sizeof(*resource) + resource->text_bytes;
}

static bool user_check(const struct duet_attribute *attribute)
{
	size_t type = strnlen((const char *)(attribute + 1), attribute->bytes);

	return type < attribute->bytes && type <= DUET_MAX_USER_TYPE &&
	       attribute->bytes - type - 1 <= DUET_MAX_USER_DATA;
}

static bool is_number(uint16_t type)
{
	return type == DUET_ATTRIBUTE_SIZE || type == DUET_ATTRIBUTE_ADDRESS || type == DUET_ATTRIBUTE_AGE ||
	       type == DUET_ATTRIBUTE_COMPILING;
}

/* Checks the attributes at a sample's end. Each must lie within them; those of known types must be well-formed. */
static bool attributes_check(const unsigned char *at, size_t bytes)
{
	while (bytes) {
		const struct duet_attribute *attribute = (const void *)at;
		size_t size;

		if (bytes < sizeof(*attribute))
			return false;
		size = duet_attribute_size(attribute->bytes);
		if (size > bytes)
			return false;
		if ((is_number(attribute->type) && attribute->bytes != sizeof(uint64_t)) ||
		    (attribute->type == DUET_ATTRIBUTE_LOCK && attribute->bytes != sizeof(struct duet_lock)) ||
		    (attribute->type == DUET_ATTRIBUTE_CLASS && attribute->bytes > DUET_MAX_CLASS_BYTES) ||
		    (attribute->type == DUET_ATTRIBUTE_RESOURCE && !resource_check(attribute)) ||
		    (attribute->type == DUET_ATTRIBUTE_STATE && attribute->bytes > DUET_MAX_STATE_BYTES) ||
		    (attribute->type == DUET_ATTRIBUTE_CONTEXT && attribute->bytes > DUET_CONTEXT_ATTRIBUTES) ||
		    (attribute->type == DUET_ATTRIBUTE_SPAN && attribute->bytes > DUET_MAX_SPAN_BYTES) ||
		    (attribute->type == DUET_ATTRIBUTE_USER && !user_check(attribute)))
			return false;
		at += size;
		bytes -= size;
	}
	return true;
}

static bool sample_check(const struct duet_sample *sample, size_t bytes)
{
	if (bytes < sizeof(*sample))
		return false;
	if (sample->kernel_depth > DUET_MAX_STACK || sample->user_depth > DUET_MAX_USER_STACK ||
	    (sample->id_depth && sample->id_depth != sample->user_depth) ||
	    (sample->left_out && sample->user_depth != DUET_MAX_USER_STACK) ||
	    sample->attribute_bytes > DUET_MAX_ATTRIBUTE_BYTES || sample->attribute_bytes % 8)
		return false;
	if (bytes != sizeof(*sample) +
			     ((size_t)sample->kernel_depth + sample->user_depth) * sizeof(sample->stack[0]) +
			     (sample->id_depth + 1u) / 2 * sizeof(uint64_t) + sample->attribute_bytes)
		return false;
	if (!attributes_check((const unsigned char *)sample + bytes - sample->attribute_bytes,
			      sample->attribute_bytes))
		return false;
	return sample->role < DUET_ROLE_MAX &&
	       (sample->role == DUET_ROLE_SAMPLE || (sample->waker && !sample->weight)) &&
	       sample->no_signal < DUET_NO_SIGNAL_MAX && sample->event < DUET_MAX_EVENTS &&
	       sample->runnable <= sample->weight &&
	       sample->virtual_thread.name_bytes <= DUET_MAX_VIRTUAL_NAME &&
	       sample->walk_end < DUET_WALK_END_MAX &&
	       is_terminated(sample->comm, sizeof(sample->comm)) &&
	       is_terminated(sample->process_comm, sizeof(sample->process_comm));
}

static bool slept_record_check(const struct duet_slept_record *record, size_t bytes)
{
	return bytes >= sizeof(*record) && record->attribute_bytes <= DUET_MAX_BPF_ATTRIBUTE_BYTES &&
	       record->attribute_bytes % 8 == 0 && bytes == sizeof(*record) + record->attribute_bytes &&
	       attributes_check((const unsigned char *)(record + 1), record->attribute_bytes) && record->id &&
	       record->runnable <= record->weight;
}

bool record_check(const void *data, size_t bytes)
{
	const struct duet_record *record = data;
	const struct duet_process_record *process = data;
	const struct duet_cgroup_record *cgroup = data;
	const struct duet_frames_record *frames = data;

	if (bytes < sizeof(*record) || record->size != bytes || record->version != DUET_RECORD_VERSION)
		return false;
	if (record->tgid == 0 || record->tid == 0)
		return false;
	switch (record->type) {
	case DUET_RECORD_SAMPLE:
		return sample_check(data, bytes);
	case DUET_RECORD_EXEC:
	case DUET_RECORD_EXIT:
		return bytes == sizeof(*process) && is_terminated(process->comm, sizeof(process->comm));
	case DUET_RECORD_CGROUP:
		return bytes == sizeof(*cgroup) && is_terminated(cgroup->path, sizeof(cgroup->path)) &&
		       cgroup->path[0] == '/';
	case DUET_RECORD_FRAMES:
		return bytes == sizeof(*frames) && frames->first >= DUET_LEAF_FRAMES && frames->first < DUET_MAX_WALK &&
		       frames->first % DUET_ROOT_FRAMES == 0;
	case DUET_RECORD_SLEPT:
		return slept_record_check(data, bytes);
	default:
		return false;
	}
}

/* ---- from an agent: each check is called with at least the bytes of its record's struct ---- */

/* The contents must fill the payload, except for the padding to the ring's alignment. */
static bool fills(uint64_t used, size_t bytes)
{
	return used <= bytes && bytes - used < DUET_RING_ALIGN;
}

static bool java_sample_check(const struct duet_java_sample *sample, size_t bytes)
{
	return sample->java_depth <= DUET_MAX_JAVA_DEPTH &&
	       fills(sizeof(*sample) + sample->java_depth * sizeof(struct duet_java_frame), bytes);
}

/* The kernel's addresses are those of the upper half. */
static bool kernel_frames_check(const struct duet_sample *sample)
{
	for (uint32_t i = 0; i < sample->kernel_depth; i++)
		if (!(sample->stack[i] >> 63))
			return false;
	return true;
}

static bool agent_sample_check(const struct duet_sample *sample, size_t bytes)
{
	return record_check(sample, bytes) && sample->head.type == DUET_RECORD_SAMPLE && !sample->waker &&
	       kernel_frames_check(sample);
}

static bool method_check(const struct duet_method *method, size_t bytes)
{
	return fills(sizeof(*method) + (uint64_t)method->class_len + method->name_len + method->signature_len +
			     method->source_len + (uint64_t)method->line_count * sizeof(struct duet_line),
		     bytes);
}

/* The frames of each pc must be inside the record, and no more than DUET_JAVA_DEPTH. */
static bool code_pcs_check(const struct duet_code_load *code)
{
	const struct duet_code_pc *pcs = (const void *)(code + 1);

	for (uint32_t i = 0; i < code->pc_count; i++)
		if (pcs[i].depth > DUET_JAVA_DEPTH || (uint64_t)pcs[i].frame + pcs[i].depth > code->frame_count)
			return false;
	return true;
}

static bool code_load_check(const struct duet_code_load *code, size_t bytes)
{
	return code->address + code->code_bytes >= code->address &&
	       fills(sizeof(*code) + (uint64_t)code->pc_count * sizeof(struct duet_code_pc) +
			     (uint64_t)code->frame_count * sizeof(struct duet_java_frame),
		     bytes) &&
	       code_pcs_check(code);
}

static bool stub_check(const struct duet_stub *stub, size_t bytes)
{
	return stub->address + stub->code_bytes >= stub->address &&
	       fills(sizeof(*stub) + (uint64_t)stub->name_len, bytes);
}

static bool code_heap_check(const struct duet_code_heap *heap, size_t bytes)
{
	return fills(sizeof(*heap), bytes) && heap->low < heap->high;
}

static bool thread_check(const struct duet_thread *thread, size_t bytes)
{
	return fills(sizeof(*thread) + (uint64_t)thread->name_len, bytes);
}

/* The fields of a blob and of a ConstMethod must lie in the bytes read of them. 0xffff: there is no such field. */
static bool layout_fields_check(const struct duet_jvm_layout *layout)
{
	const uint16_t in_blob[] = {layout->blob_name, layout->blob_bytes, layout->blob_frame_words,
				    layout->blob_frame_complete, layout->nmethod_stubs, layout->nmethod_original_pc,
				    layout->nmethod_id};
	const uint16_t in_other[] = {layout->method_const, layout->pool_holder, layout->pool_version,
				     layout->const_bytes};
	const uint16_t most = DUET_BLOB_BYTES - 8;
	bool begins = layout->blob_code_begin <= most || layout->blob_code_offset <= most;
	bool enters = layout->nmethod_entry <= most || layout->nmethod_entry_offset <= most;
	bool has_ids = layout->holder_ids < DUET_MAX_OFFSET || layout->holder_ids == DUET_JVM_NO_FIELD;

	for (size_t i = 0; i < sizeof(in_blob) / sizeof(*in_blob); i++)
		if (in_blob[i] > most)
			return false;
	for (size_t i = 0; i < sizeof(in_other) / sizeof(*in_other); i++)
		if (in_other[i] >= DUET_MAX_OFFSET)
			return false;
	return begins && enters && has_ids && layout->block_used < layout->block_header_bytes &&
	       layout->block_header_bytes <= 64 && layout->const_bytes &&
	       layout->const_bytes <= DUET_CONST_METHOD_BYTES && layout->const_pool <= DUET_CONST_METHOD_BYTES - 8 &&
	       layout->const_id <= DUET_CONST_METHOD_BYTES - 2 &&
	       layout->const_code_bytes <= DUET_CONST_METHOD_BYTES - 2 &&
	       (layout->frame_bcp == -7 || layout->frame_bcp == DUET_FRAME_BCP_WORD) &&
	       layout->frame_sender < DUET_FRAME_REGISTERS;
}

static bool layout_check(const struct duet_jvm_layout *layout, size_t bytes)
{
	if (!fills(sizeof(*layout), bytes) || layout->heaps[0].low >= layout->heaps[0].high)
		return false;
	for (int i = 0; i < DUET_JVM_HEAPS; i++) {
		const struct duet_jvm_heap *heap = &layout->heaps[i];

		if (heap->low > heap->high || (heap->low && (heap->segment_shift < 4 || heap->segment_shift > 20)))
			return false;
	}
	return layout->interpreter_low < layout->interpreter_high && layout->entries_low < layout->entries_high &&
	       layout->call_stub_return && layout_fields_check(layout);
}

bool agent_record_check(uint16_t type, const void *payload, size_t bytes)
{
	static const size_t least[DUET_AGENT_RECORD_TYPE_MAX] = {
		[DUET_AGENT_JAVA_SAMPLE] = sizeof(struct duet_java_sample),
		[DUET_AGENT_SAMPLE] = sizeof(struct duet_sample),
		[DUET_AGENT_FRAMES] = sizeof(struct duet_frames_record),
		[DUET_AGENT_METHOD] = sizeof(struct duet_method),
		[DUET_AGENT_CODE_LOAD] = sizeof(struct duet_code_load),
		[DUET_AGENT_CODE_UNLOAD] = sizeof(struct duet_code_unload),
		[DUET_AGENT_STUB] = sizeof(struct duet_stub),
		[DUET_AGENT_CODE_HEAP] = sizeof(struct duet_code_heap),
		[DUET_AGENT_THREAD] = sizeof(struct duet_thread),
		[DUET_AGENT_LAYOUT] = sizeof(struct duet_jvm_layout),
		[DUET_AGENT_GONE] = sizeof(struct duet_gone),
		[DUET_AGENT_UNLOADED] = sizeof(struct duet_unloaded),
	};

	if (!type || type >= DUET_AGENT_RECORD_TYPE_MAX || bytes < least[type])
		return false;
	switch (type) {
	case DUET_AGENT_JAVA_SAMPLE:
		return java_sample_check(payload, bytes);
	case DUET_AGENT_SAMPLE:
		return agent_sample_check(payload, bytes);
	case DUET_AGENT_FRAMES:
		return record_check(payload, bytes) &&
		       ((const struct duet_record *)payload)->type == DUET_RECORD_FRAMES;
	case DUET_AGENT_METHOD:
		return method_check(payload, bytes);
	case DUET_AGENT_CODE_LOAD:
		return code_load_check(payload, bytes);
	case DUET_AGENT_STUB:
		return stub_check(payload, bytes);
	case DUET_AGENT_CODE_HEAP:
		return code_heap_check(payload, bytes);
	case DUET_AGENT_THREAD:
		return thread_check(payload, bytes);
	case DUET_AGENT_LAYOUT:
		return layout_check(payload, bytes);
	default:
		return fills(least[type], bytes);
	}
}

static bool hello_check(const struct duet_message_hello *hello, size_t bytes)
{
	return bytes == sizeof(*hello) && is_terminated(hello->vm_name, sizeof(hello->vm_name)) &&
	       is_terminated(hello->vm_version, sizeof(hello->vm_version));
}

static bool started_check(const struct duet_message_started *started, size_t bytes)
{
	return bytes == sizeof(*started) && started->error <= 0 && started->error >= -MAX_ERRNO &&
	       started->signo <= 64 && started->engine < DUET_ENGINE_ID_MAX &&
	       !(started->refused >> DUET_MAX_EVENTS) &&
	       is_terminated(started->refused_why, sizeof(started->refused_why)) &&
	       is_terminated(started->why, sizeof(started->why));
}

bool agent_message_check(const void *data, size_t bytes)
{
	const struct duet_message *message = data;

	if (bytes < sizeof(*message) || message->size != bytes || message->version != DUET_AGENT_VERSION)
		return false;
	switch (message->type) {
	case DUET_MESSAGE_HELLO:
		return hello_check(data, bytes);
	case DUET_MESSAGE_STARTED:
		return started_check(data, bytes);
	case DUET_MESSAGE_STOPPED:
	case DUET_MESSAGE_FINISHED:
	case DUET_MESSAGE_ENDING:
	case DUET_MESSAGE_MAPPED:
	case DUET_MESSAGE_UNNAMED:
	case DUET_MESSAGE_NO_JVM:
	case DUET_MESSAGE_HALF:
		return bytes == sizeof(*message);
	default:
		return false;
	}
}
