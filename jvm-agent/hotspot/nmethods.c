/* SPDX-License-Identifier: MIT */
#include "hotspot/nmethods.h"

#include <stdlib.h>
#include <string.h>

#include "hotspot/bytecodes.h"
#include "hotspot/instruction.h"
#include "hotspot/jvmstructs.h"
#include "hotspot/metadata.h"
#include "hotspot/scopes.h"
#include "hotspot/stubs.h"
#include "hotspot/unsigned5.h"
#include "hotspot/vmstructs.h"
#include "memory.h"

#define EXCESS_SINCE 20 /* struct unsigned5 */
#define MAX_COPY (4u << 20) /* bytes of one table; the largest methods have a tenth of it */
#define TRIES 4 /* cached memory may be older in one place after the other */
#define JUMP_BYTES 64 /* of an exported function, for the jump at its end */
#define MAX_SCOPES 256 /* methods inlined into each other; HotSpot's limit is far lower */

static struct {
	struct offset method; /* Method * */
	/* Offsets from the blob's start. Since JDK 23 scopes and pcs count from the start of the immutable data. */
	struct offset scopes_begin, scopes_offset, pcs_offset, dependencies_offset, metadata_offset;
	struct offset immutable, immutable_bytes; /* JDK 23+ */
	struct offset data_offset; /* JDK 23, 24: metadata_offset counts from there */
	struct offset mutable, mutable_bytes, relocation_bytes; /* JDK 25+: metadata follow the relocations */
	size_t pc_bytes;
	unsigned int excess;
} layout;

static const struct vmstructs_row wanted[] = {
	{"nmethod", "_method", &layout.method, NULL}, /* JDK 8, 23+ */
	{"CompiledMethod", "_method", &layout.method, NULL}, /* JDK 9-22 */
	{"CompiledMethod", "_scopes_data_begin", &layout.scopes_begin, NULL},
	{"nmethod", "_scopes_data_offset", &layout.scopes_offset, NULL}, /* JDK 8, 23+ */
	{"nmethod", "_scopes_pcs_offset", &layout.pcs_offset, NULL},
	{"nmethod", "_dependencies_offset", &layout.dependencies_offset, NULL}, /* JDK 8-22 */
	{"nmethod", "_metadata_offset", &layout.metadata_offset, NULL}, /* JDK 8-24 */
	{"nmethod", "_immutable_data", &layout.immutable, NULL},
	{"nmethod", "_immutable_data_size", &layout.immutable_bytes, NULL},
	{"CodeBlob", "_data_offset", &layout.data_offset, NULL},
	{"CodeBlob", "_mutable_data", &layout.mutable, NULL},
	{"CodeBlob", "_mutable_data_size", &layout.mutable_bytes, NULL},
	{"CodeBlob", "_relocation_size", &layout.relocation_bytes, NULL},
};

/* Stubs live as long as the JVM, and finding one takes thousands of reads. */
static struct known_stub {
	uint64_t address;
	int kind;
} known_stubs[64];
/* Functions of the JVM: those that read the clock, and all others. */
static struct {
	uint64_t nanos, millis;
	int other_kind;
} runtime;

/* An exported function ends with a jump to the one that compiled code calls. Returns that, or 0. */
static uint64_t jump_in(const char *name)
{
	uintptr_t at = memory_symbol(name);
	uint8_t code[JUMP_BYTES];
	size_t bytes = at ? memory_copy(code, at, sizeof(code)) : 0;
	struct instruction one;

	for (size_t i = 0; i < bytes && instruction_read(code + i, bytes - i, &one); i += one.bytes)
		if (one.kind == INSTRUCTION_JUMP)
			return at + i + (uint64_t)one.target;
	return 0;
}

bool nmethods_open(int version)
{
	static const char *const runtimes[2][2] = {{STUB_CALLERS_RUNTIME, STUB_CALLERS_CARDS},
						   {STUB_CALLERS_OLD, STUB_CALLERS_OLD_CARDS}};

	memset(&layout, 0, sizeof(layout));
	memset(known_stubs, 0, sizeof(known_stubs));
	if (vmstructs_read(wanted, sizeof(wanted) / sizeof(wanted[0])))
		return false;
	layout.pc_bytes = vmstructs_type_bytes("PcDesc");
	layout.excess = version >= EXCESS_SINCE;
	runtime.nanos = jump_in("JVM_NanoTime");
	runtime.millis = jump_in("JVM_CurrentTimeMillis");
	runtime.other_kind = stub_callers_kind(
		runtimes[version == 8][jvmflags_is_set("UseSerialGC") || jvmflags_is_set("UseParallelGC")]);
	return layout.method.known && layout.pcs_offset.known && layout.pc_bytes;
}

/* ---- where an nmethod's tables are ---- */

struct range {
	uintptr_t begin, end;
};

struct tables {
	struct range pcs, scopes, metadata;
	struct range others; /* among them the table of null checks */
};

/* Reads in place, because the memory of blobs stays mapped: code heaps never shrink. */
static uintptr_t load_address(uintptr_t blob, const struct offset *field)
{
	return memory_word(blob + field->value);
}

static uintptr_t load_offset(uintptr_t blob, const struct offset *field)
{
	uintptr_t at = blob + field->value;

	return field->width == 2 ? memory_half(at) : memory_int(at);
}

static struct tables tables_in_blob(uintptr_t blob, uintptr_t end)
{
	uintptr_t scopes = layout.scopes_begin.known ? load_address(blob, &layout.scopes_begin)
						     : blob + load_offset(blob, &layout.scopes_offset);
	uintptr_t pcs = blob + load_offset(blob, &layout.pcs_offset);

	return (struct tables){
		.pcs = {pcs, blob + load_offset(blob, &layout.dependencies_offset)},
		.scopes = {scopes, pcs},
		.metadata = {blob + load_offset(blob, &layout.metadata_offset), scopes},
		.others = {blob + load_offset(blob, &layout.dependencies_offset), end},
	};
}

static struct range metadata_apart(const struct code_blob *blob)
{
	uintptr_t at = blob->start;

	if (layout.mutable.known && layout.relocation_bytes.known)
		return (struct range){
			load_address(at, &layout.mutable) + load_offset(at, &layout.relocation_bytes),
			load_address(at, &layout.mutable) + load_offset(at, &layout.mutable_bytes),
		};
	if (layout.data_offset.known && layout.metadata_offset.known)
		return (struct range){
			at + load_offset(at, &layout.data_offset) + load_offset(at, &layout.metadata_offset),
			at + blob->bytes,
		};
	return (struct range){0, 0};
}

static struct tables tables_apart(const struct code_blob *blob)
{
	uintptr_t immutable = load_address(blob->start, &layout.immutable);
	uintptr_t scopes = immutable + load_offset(blob->start, &layout.scopes_offset);

	return (struct tables){
		.pcs = {immutable + load_offset(blob->start, &layout.pcs_offset), scopes},
		.scopes = {scopes, immutable + load_offset(blob->start, &layout.immutable_bytes)},
		.metadata = metadata_apart(blob),
		.others = {immutable, immutable + load_offset(blob->start, &layout.pcs_offset)},
	};
}

/* JDK 23+ frees the immutable data before the id, and sets its address to the blob's end, as if there never was any. */
static bool is_purged(const struct code_blob *blob)
{
	return layout.immutable.known && load_address(blob->start, &layout.immutable) == blob->start + blob->bytes;
}

static struct tables find_tables(const struct code_blob *blob)
{
	if (is_purged(blob))
		return (struct tables){0};
	return layout.immutable.known ? tables_apart(blob) : tables_in_blob(blob->start, blob->start + blob->bytes);
}

/* ---- copies of the tables ---- */

struct copy {
	unsigned char *data; /* in struct debug's memory */
	size_t bytes;
};

enum debug_table { TABLE_PCS, TABLE_SCOPES, TABLE_METADATA, TABLE_OTHERS, TABLES };

struct debug {
	unsigned char *memory;
	struct copy pcs, scopes, metadata, others;
	struct metadata_key *keys; /* of those metadata that are methods; zeros: not read yet */
	struct nmethod_record *record;
	size_t most_bytes;
	size_t code_bytes; /* at most: constants may follow */
	uint32_t without_values; /* number of entries in which no frame has values, see is_exact() */
	bool has_values; /* of the entry that was read last */
};

/* Copies a table that is too large for one read. Returns the number of bytes copied. */
static size_t copy_large(unsigned char *to, const struct memory_piece *from)
{
	size_t done = 0, got = 1;

	while (done < from->bytes && got) {
		size_t piece = from->bytes - done < MEMORY_COPY_MAX ? from->bytes - done : MEMORY_COPY_MAX;

		got = memory_copy(to + done, from->from + done, piece);
		done += got;
	}
	return done;
}

/* Copies the tables one after the other. Most are small, and are read at once. */
static void copy_tables(struct debug *debug, const struct memory_piece tables[TABLES], size_t bytes)
{
	struct copy *const copies[TABLES] = {&debug->pcs, &debug->scopes, &debug->metadata, &debug->others};
	bool is_small = bytes <= MEMORY_COPY_MAX;
	size_t got = is_small ? memory_copy_pieces(debug->memory, tables, TABLES) : 0, at = 0;

	for (int i = 0; i < TABLES; i++) {
		size_t left = got > at ? got - at : 0;

		copies[i]->data = debug->memory + at;
		copies[i]->bytes = is_small ? (left < tables[i].bytes ? left : tables[i].bytes)
					    : copy_large(copies[i]->data, &tables[i]);
		at += tables[i].bytes;
	}
}

/* Returns the memory of a table, which is empty if it is not sound. */
static struct memory_piece piece_of(const struct range *range)
{
	size_t bytes = range->end > range->begin ? range->end - range->begin : 0;

	return (struct memory_piece){range->begin, bytes <= MAX_COPY ? bytes : 0};
}

/* Compilers put rare code, without entries, behind the last entry. The metadata may follow it in the blob. */
static uintptr_t code_end(const struct code_blob *blob, const struct range *metadata)
{
	uintptr_t end = blob->start + blob->bytes;

	return metadata->begin > blob->code_begin && metadata->begin < end ? metadata->begin : end;
}

static bool debug_copy(struct debug *debug, const struct code_blob *blob)
{
	struct tables tables = find_tables(blob);
	const struct memory_piece pieces[TABLES] = {
		[TABLE_PCS] = piece_of(&tables.pcs),
		[TABLE_SCOPES] = piece_of(&tables.scopes),
		[TABLE_METADATA] = piece_of(&tables.metadata),
		[TABLE_OTHERS] = piece_of(&tables.others),
	};
	size_t bytes = 0;

	debug->code_bytes = code_end(blob, &tables.metadata) - blob->code_begin;
	for (int i = 0; i < TABLES; i++)
		bytes += pieces[i].bytes;
	debug->memory = malloc(bytes + 1);
	debug->keys = calloc(pieces[TABLE_METADATA].bytes / sizeof(uintptr_t) + 1, sizeof(*debug->keys));
	if (!debug->memory || !debug->keys)
		return false;
	copy_tables(debug, pieces, bytes);
	return true;
}

/* ---- scopes ---- */

/* Returns the key of one of the metadata, which are counted from 1. Zeros: it is not a method, or no longer one. */
static struct metadata_key key_of(struct debug *debug, uint32_t index)
{
	struct metadata_key *key;
	uintptr_t address;

	if (!index || index > debug->metadata.bytes / sizeof(address))
		return (struct metadata_key){0};
	memcpy(&address, debug->metadata.data + (index - 1) * sizeof(address), sizeof(address));
	key = &debug->keys[index - 1];
	if (!key->method)
		*key = metadata_prove_key(address);
	return *key;
}

/*
 * Like ScopeDesc::decode_body(). A scope holds the offset of its caller's scope (0: none), the method, bci + 1, and the
 * offsets of the values of locals, operands and monitors (0: none). Returns the caller's offset.
 */
static uint32_t read_scope(struct debug *debug, uint32_t offset, struct duet_java_frame *ret, bool *ret_failed,
			   uint32_t *values)
{
	struct unsigned5 stream = {
		.at = debug->scopes.data + offset,
		.end = debug->scopes.data + debug->scopes.bytes,
		.excess = layout.excess,
	};
	uint32_t caller = unsigned5_read(&stream);
	struct metadata_key key = key_of(debug, unsigned5_read(&stream));

	ret->method = key.method;
	ret->check = key.check;
	ret->bci = (int32_t)unsigned5_read(&stream) - 1;
	*ret_failed = stream.failed || !ret->method;
	for (int i = 0; i < 3; i++)
		*values |= unsigned5_read(&stream);
	return caller;
}

/* Stores the frames at one pc, leaf first, after those stored already. Returns how many; 0: they cannot be read. */
static uint32_t read_scopes(struct debug *debug, uint32_t offset)
{
	struct duet_java_frame *frames = debug->record->frames + debug->record->load.frame_count;
	uint32_t depth = 0, values = 0;

	while (offset && offset < debug->scopes.bytes && depth < MAX_SCOPES) {
		struct duet_java_frame frame = {0};
		bool failed;
		uint32_t caller = read_scope(debug, offset, &frame, &failed, &values);

		if (failed || caller >= offset) /* a caller's scope is written before its callees' */
			return 0;
		frames[depth++] = frame;
		offset = caller;
	}
	debug->has_values = values;
	return offset ? 0 : depth;
}

/* Returns true if the frames just stored are equal to those of the previous pc. Then the two pcs share them. */
static bool is_repeated(const struct nmethod_record *record, uint32_t depth)
{
	const struct duet_code_load *load = &record->load;
	const struct duet_code_pc *previous = load->pc_count ? &record->pcs[load->pc_count - 1] : NULL;

	return previous && previous->depth == depth &&
	       !memcmp(&record->frames[previous->frame], &record->frames[load->frame_count],
		       depth * sizeof(*record->frames));
}

/* Adds a pc, whose frames have been stored after the first frame_count. */
static void add_pc(struct debug *debug, uint32_t offset, uint32_t depth)
{
	struct nmethod_record *record = debug->record;
	struct duet_code_load *load = &record->load;
	struct duet_code_pc pc = {
		.offset = offset,
		.frame = load->frame_count,
		.depth = depth,
		.flags = debug->has_values ? SCOPES_SAFEPOINT : 0,
	};

	if (load->pc_count && record->pcs[load->pc_count - 1].offset >= offset)
		return;
	if (is_repeated(record, depth))
		pc.frame = record->pcs[load->pc_count - 1].frame;
	else
		load->frame_count += depth;
	record->pcs[load->pc_count++] = pc;
	debug->without_values += !debug->has_values;
}

static bool has_room(const struct debug *debug, size_t max_frames)
{
	const struct duet_code_load *load = &debug->record->load;

	return load->frame_count + MAX_SCOPES <= max_frames &&
	       (load->pc_count + 1) * sizeof(struct duet_code_pc) + load->frame_count * sizeof(struct duet_java_frame) +
			       MAX_SCOPES * sizeof(struct duet_java_frame) <=
		       debug->most_bytes;
}

/* The first and the last pc are sentinels, whose offsets are outside of the code. */
static bool read_pcs(struct debug *debug)
{
	struct nmethod_record *record = debug->record;
	size_t count = debug->pcs.bytes / layout.pc_bytes;
	size_t max_frames = debug->most_bytes / sizeof(*record->frames);

	record->pcs = malloc((count + 1) * sizeof(*record->pcs));
	/* far more than most compilations need, so the memory is not cleared */
	record->frames = malloc((max_frames + 1) * sizeof(*record->frames));
	if (!record->pcs || !record->frames)
		return false;
	for (size_t i = 0; i < count && has_room(debug, max_frames); i++) {
		int32_t words[2]; /* _pc_offset, _scope_decode_offset */
		uint32_t depth;

		memcpy(words, debug->pcs.data + i * layout.pc_bytes, sizeof(words));
		if (words[0] < 0 || (uint32_t)words[0] > record->load.code_bytes || words[1] <= 0)
			continue;
		depth = read_scopes(debug, (uint32_t)words[1]);
		if (depth)
			add_pc(debug, (uint32_t)words[0], depth);
	}
	return true;
}

/*
 * Compiled code without safepoints has no entries, also where methods are inlined into it. Gives it one that stands for
 * the method, if that calls others.
 */
static void add_entry_for_all(struct debug *debug, const struct metadata_method *method)
{
	struct nmethod_record *record = debug->record;
	struct duet_code_load *load = &record->load;
	uint32_t bytes = 0, bci = 0;
	uint8_t *code = load->pc_count ? NULL : metadata_code(method, &bytes);

	while (bci < bytes && (code[bci] < OP_INVOKEVIRTUAL || code[bci] > OP_INVOKEINTERFACE))
		bci += bytecode_length(code, bytes, bci);
	free(code);
	if (bci >= bytes)
		return;
	record->frames[0] = (struct duet_java_frame){.method = load->method, .check = record->check, .bci = -1};
	record->pcs[0] = (struct duet_code_pc){.offset = load->code_bytes, .depth = 1, .flags = SCOPES_NOTHING};
	load->pc_count = load->frame_count = 1;
}

/* ---- between two entries ---- */

/*
 * With -XX:+DebugNonSafepoints, or if an agent was there when the code was compiled, there is an entry wherever the
 * scope changes. Those that are no calls have no values: with it 40 % of all, without it next to none.
 */
static bool is_exact(const struct debug *debug)
{
	return debug->without_values * 4 > debug->record->load.pc_count;
}

/* A letter for each byte code, 16 a row: 'i' invokes a method; 'c' may call the runtime or a stub; unknown: nop. */
static const char calling[] = "c..............." /* constants */
			      "..ccc..........." /* ldc; loads */
			      "................"
			      "..c............." /* aaload */
			      "................"
			      "...c............" /* aastore */
			      "................"
			      "..cc............" /* frem, drem */
			      "...........ccccc" /* conversions */
			      "................"
			      "............cccc" /* returns of synchronized methods, and their polls */
			      "cccccciiiiiccc.c" /* fields, invoke, new; not arraylength */
			      "cccc.c....c....."; /* checkcast, instanceof, monitors, multianewarray; breakpoint */

static enum scopes_calls calls_of(const struct duet_java_frame *frame)
{
	struct metadata_method method;
	uint8_t opcode = metadata_find(frame->method, &method) ? metadata_bytecode(&method, frame->bci) : 0;

	if (opcode >= sizeof(calling) - 1 || calling[opcode] == 'c')
		return SCOPES_CALLS_RUNTIME;
	return calling[opcode] == 'i' ? SCOPES_CALLS_METHOD : SCOPES_CALLS_NOTHING;
}

/* Where the clock is not known, a call may be one of it. */
static int runtime_kind(uint64_t address)
{
	if (!address || !runtime.nanos || !runtime.millis)
		return 0;
	if (address == runtime.nanos || address == runtime.millis)
		return stub_callers_kind(address == runtime.nanos ? STUB_CALLERS_NANOS : STUB_CALLERS_MILLIS);
	return runtime.other_kind;
}

static int stub_at(uint64_t address)
{
	struct known_stub *known = &known_stubs[address / 32 % (sizeof(known_stubs) / sizeof(*known_stubs))];
	char name[STUB_NAME_BYTES];
	struct duet_stub stub;

	if (!jvmstructs_is_code((uintptr_t)address))
		return runtime_kind(address);
	if (known->address != address && stub_find((uintptr_t)address, &stub, name))
		*known = (struct known_stub){address, stub_callers_kind(name)};
	return known->address == address ? known->kind : 0;
}

/* Those of objects that the code checks for, makes or reads. */
static uint32_t find_classes(const struct scopes *scopes, uintptr_t classes[SCOPES_CLASSES])
{
	uint32_t count = 0;
	uintptr_t address;

	for (size_t at = 0; at + sizeof(address) <= scopes->metadata_bytes && count < SCOPES_CLASSES;
	     at += sizeof(address)) {
		memcpy(&address, scopes->metadata + at, sizeof(address));
		if (metadata_is_class(address))
			classes[count++] = address;
	}
	return count;
}

/* Without memory, room for more entries, or all of the code, the table stays as it is. */
static void estimate_scopes(struct debug *debug)
{
	struct nmethod_record *record = debug->record;
	struct duet_code_load *load = &record->load;
	size_t bytes = load->pc_count ? debug->code_bytes : 0;
	size_t room = debug->most_bytes - load->frame_count * sizeof(*record->frames);
	size_t room_of_frames = room / 4;
	struct memory_piece from = {load->address, bytes};
	unsigned char *code = bytes <= MAX_COPY ? malloc(bytes + 1) : NULL;
	struct scopes scopes = {
		.address = load->address,
		.code = code,
		.tables = debug->others.data,
		.table_bytes = debug->others.bytes,
		.pcs = record->pcs,
		.pc_count = load->pc_count,
		.frames = record->frames,
		.frame_count = load->frame_count,
		.most_frames = load->frame_count + (uint32_t)(room_of_frames / sizeof(*record->frames)),
		.metadata = debug->metadata.data,
		.metadata_bytes = debug->metadata.bytes,
		.is_exact = is_exact(debug),
		.calls = calls_of,
		.stub_at = stub_at,
		.find_classes = find_classes,
		.find_callers = stub_callers_find,
	};
	struct duet_code_pc *table = NULL;
	uint32_t count;

	if (!code)
		return;
	scopes.code_bytes = copy_large(code, &from);
	if (scopes.code_bytes == bytes)
		table = scopes_estimate(&scopes, (uint32_t)((room - room_of_frames) / sizeof(*table)), &count);
	if (table) {
		free(record->pcs);
		record->pcs = table;
		load->pc_count = count;
		load->frame_count = scopes.frame_count;
	}
	free(code);
}

/* ---- one compilation ---- */

static bool find_compiled(uintptr_t pc, struct code_blob *ret)
{
	char name[16] = "";

	if (!layout.pc_bytes || !jvmstructs_blob_at(pc, ret) || !ret->code_begin)
		return false;
	jvmstructs_blob_name(ret, name, sizeof(name));
	return jvmstructs_is_nmethod(name);
}

bool nmethods_method(uintptr_t pc, struct metadata_method *ret)
{
	struct code_blob blob;

	return find_compiled(pc, &blob) && metadata_prove(load_address(blob.start, &layout.method), ret);
}

static bool read_once(struct nmethod_record *record, const struct code_blob *blob, size_t most_bytes)
{
	struct debug debug = {.record = record, .most_bytes = most_bytes - sizeof(record->load)};
	struct metadata_method method;
	bool done = metadata_prove(load_address(blob->start, &layout.method), &method);
	struct metadata_key key = done ? metadata_key(&method) : (struct metadata_key){0};

	record->load.method = key.method;
	record->check = key.check;
	if (done) {
		record->load.address = blob->code_begin;
		record->load.code_bytes = (uint32_t)(blob->start + blob->bytes - blob->code_begin);
		done = debug_copy(&debug, blob) && read_pcs(&debug);
		if (done) {
			add_entry_for_all(&debug, &method);
			estimate_scopes(&debug);
		}
	}
	free(debug.memory);
	free(debug.keys);
	return done;
}

/* Reads again what is at pc. No id is used twice: with the same id, the compilation existed while it was read. */
static bool is_still_there(uintptr_t pc, const struct code_blob *blob, struct nmethod_record *record)
{
	struct code_blob again;

	if (!jvmstructs_blob_at(pc, &again) || again.start != blob->start ||
	    jvmstructs_blob_id(&again) != record->load.id)
		return false;
	if (is_purged(&again)) /* perhaps purged while it was read; the method is still known */
		record->load.pc_count = record->load.frame_count = 0;
	return true;
}

static enum nmethod_result find_once(uintptr_t pc, uint32_t id, size_t most_bytes, struct nmethod_record *record)
{
	struct code_blob blob;

	if (!find_compiled(pc, &blob))
		return NMETHOD_NONE;
	record->load.id = jvmstructs_blob_id(&blob);
	if (!record->load.id || (id && record->load.id != id) || !read_once(record, &blob, most_bytes))
		return NMETHOD_GONE;
	memory_renew();
	return is_still_there(pc, &blob, record) ? NMETHOD_FOUND : NMETHOD_GONE;
}

/* Memory may be cached, so it is proven afterwards. The last try is for a compilation too large to be noted. */
enum nmethod_result nmethods_find(uintptr_t pc, uint32_t id, uint64_t now_ns, size_t most_bytes,
				  struct nmethod_record *ret)
{
	struct nmethod_record record = {0};
	enum nmethod_result result = NMETHOD_GONE;
	bool is_proven = false;

	for (int i = 0; i < TRIES && !is_proven; i++) {
		nmethods_release(&record);
		record = (struct nmethod_record){.load = {.time_ns = now_ns}};
		if (i + 1 < TRIES)
			memory_note_all();
		else
			memory_forget();
		memory_renew();
		result = find_once(pc, id, most_bytes, &record);
		is_proven = i + 1 < TRIES && memory_is_as_noted();
	}
	if (result == NMETHOD_FOUND)
		*ret = record;
	else
		nmethods_release(&record);
	return result;
}

void nmethods_release(struct nmethod_record *record)
{
	free(record->pcs);
	free(record->frames);
}
