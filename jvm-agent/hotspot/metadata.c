/* SPDX-License-Identifier: MIT */
#include "hotspot/metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotspot/bytecodes.h"
#include "hotspot/unsigned5.h"
#include "hotspot/vmstructs.h"
#include "memory.h"

#define WORD sizeof(uintptr_t)
#define NUMBERED_IDS 26 /* since this JDK a jmethodID is not an address (JDK-8268406) */
#define EXCESS_SINCE 20 /* struct unsigned5 */
#define HAS_LINES 1 /* ConstMethod::_has_linenumber_table, in all JDKs */
#define SYMBOL_BYTES 64 /* most symbols are shorter */
#define LARGEST_COMPILED 8000 /* bytes of byte code (HugeMethodLimit) */
#define TABLE_MOST UINT16_MAX /* virtual methods of a class */
#define COMPARED_MOST 512 /* methods of a class that are compared with one that it implements */
#define MAX_LINES 8192
#define LINES_MAX_BYTES 32768

static struct {
	struct offset method_const, method_flags;
	struct offset const_pool, const_id, const_flags, const_words, const_code_bytes, const_name, const_signature;
	struct offset pool_holder, pool_length, pool_source;
	struct offset holder_pool, holder_ids, holder_source;
	struct offset klass_name, symbol_length, symbol_body;
	struct offset pool_cache, pool_classes, cache_calls, cache_fields, field_constant; /* for callees */
	struct offset class_methods, table_length, super_offset, other_super, other_supers; /* for implementations */
	size_t const_bytes, pool_bytes, cache_bytes, call_bytes, field_bytes, klass_bytes; /* sizes */
	size_t method_bytes, holder_bytes; /* up to the last field that is read */
	uint16_t pool_version; /* struct duet_jvm_layout::pool_version */
	int version;
	bool by_address;
} layout;

static const struct vmstructs_row wanted[] = {
	{"Method", "_constMethod", &layout.method_const, NULL},
	{"Method", "_access_flags", &layout.method_flags, NULL},
	{"ConstMethod", "_constants", &layout.const_pool, NULL},
	{"ConstMethod", "_method_idnum", &layout.const_id, NULL},
	{"ConstMethod", "_flags", &layout.const_flags, NULL}, /* JDK 8-20 */
	{"ConstMethod", "_flags._flags", &layout.const_flags, NULL}, /* JDK 21+ */
	{"ConstMethod", "_constMethod_size", &layout.const_words, NULL},
	{"ConstMethod", "_code_size", &layout.const_code_bytes, NULL},
	{"ConstMethod", "_name_index", &layout.const_name, NULL},
	{"ConstMethod", "_signature_index", &layout.const_signature, NULL},
	{"ConstantPool", "_pool_holder", &layout.pool_holder, NULL},
	{"ConstantPool", "_length", &layout.pool_length, NULL},
	{"ConstantPool", "_source_file_name_index", &layout.pool_source, NULL}, /* JDK 17+ */
	{"InstanceKlass", "_constants", &layout.holder_pool, NULL},
	{"InstanceKlass", "_methods_jmethod_ids", &layout.holder_ids, NULL},
	{"InstanceKlass", "_source_file_name_index", &layout.holder_source, NULL}, /* JDK 8-16 */
	{"Klass", "_name", &layout.klass_name, NULL},
	{"Symbol", "_length", &layout.symbol_length, NULL},
	{"Symbol", "_body", &layout.symbol_body, NULL},
};

static const struct vmstructs_row for_callees[] = {
	{"ConstantPool", "_cache", &layout.pool_cache, NULL},
	{"ConstantPool", "_resolved_klasses", &layout.pool_classes, NULL}, /* JDK 9+ */
	{"ConstantPoolCache", "_resolved_method_entries", &layout.cache_calls, NULL}, /* JDK 22+ */
	{"ConstantPoolCache", "_resolved_field_entries", &layout.cache_fields, NULL}, /* JDK 22+ */
	{"ResolvedFieldEntry", "_cpool_index", &layout.field_constant, NULL},
	{"InstanceKlass", "_methods", &layout.class_methods, NULL},
	{"InstanceKlass", "_vtable_len", &layout.table_length, NULL}, /* JDK 8 */
	{"Klass", "_vtable_len", &layout.table_length, NULL},
	{"Klass", "_super_check_offset", &layout.super_offset, NULL},
	{"Klass", "_secondary_super_cache", &layout.other_super, NULL},
	{"Klass", "_secondary_supers", &layout.other_supers, NULL},
};

/* Where a class's source file is named depends on the JDK. All else is needed. */
static bool layout_is_whole(void)
{
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!wanted[i].offset->known && wanted[i].offset != &layout.pool_source &&
		    wanted[i].offset != &layout.holder_source)
			return false;
	return layout.const_bytes && layout.pool_bytes;
}

/* Makes `bytes` at least those up to the end of the field. */
static void extend(size_t *bytes, const struct offset *field)
{
	if (field->known && field->value + WORD > *bytes)
		*bytes = field->value + WORD;
}

bool metadata_open(int version, bool by_address)
{
	memset(&layout, 0, sizeof(layout));
	if (vmstructs_read(wanted, sizeof(wanted) / sizeof(wanted[0])))
		return false;
	layout.const_bytes = vmstructs_type_bytes("ConstMethod");
	layout.pool_bytes = vmstructs_type_bytes("ConstantPool");
	(void)vmstructs_read(for_callees, sizeof(for_callees) / sizeof(for_callees[0]));
	layout.cache_bytes = vmstructs_type_bytes("ConstantPoolCache");
	layout.call_bytes = vmstructs_type_bytes(layout.cache_calls.known ? "ResolvedMethodEntry"
									  : "ConstantPoolCacheEntry");
	layout.field_bytes = vmstructs_type_bytes("ResolvedFieldEntry");
	layout.klass_bytes = vmstructs_type_bytes("InstanceKlass");
	layout.pool_version = vmstructs_pool_version(&layout.pool_length);
	layout.version = version;
	layout.by_address = by_address;
	extend(&layout.method_bytes, &layout.method_const);
	extend(&layout.method_bytes, &layout.method_flags);
	extend(&layout.holder_bytes, &layout.klass_name);
	extend(&layout.holder_bytes, &layout.holder_pool);
	extend(&layout.holder_bytes, &layout.holder_source);
	return layout_is_whole();
}

/* ---- reading ---- */

static bool read_bytes(void *to, uintptr_t from, size_t bytes)
{
	if (memory_take(to, from, bytes) < bytes)
		return false;
	memory_note(from, to, bytes);
	return true;
}

/*
 * Copies the object's first bytes, as far as they can be read. The agent copies more, which saves reads of what follows
 * the fields. For a reader from outside, who keeps pages, they would often be a page more. Returns false for no bytes.
 */
static bool read_object(struct metadata_object *object, uintptr_t address, size_t bytes)
{
	bytes = bytes < sizeof(object->data) && layout.by_address ? bytes : sizeof(object->data);
	object->address = address;
	object->bytes = address ? memory_take(object->data, address, bytes) : 0;
	return object->bytes;
}

static bool read_field(const struct metadata_object *object, size_t offset, void *to, size_t bytes)
{
	if (offset + bytes > object->bytes)
		return object->address && read_bytes(to, object->address + offset, bytes);
	memcpy(to, object->data + offset, bytes);
	memory_note(object->address + offset, to, bytes);
	return true;
}

/* Returns the address in a field; 0 when it cannot be read or is misaligned. */
static uintptr_t read_address(const struct metadata_object *object, const struct offset *field)
{
	uintptr_t address;

	if (!read_field(object, field->value, &address, sizeof(address)) || address % WORD)
		return 0;
	return address;
}

static uint32_t read_half(const struct metadata_object *object, const struct offset *field)
{
	uint16_t half;

	return field->known && read_field(object, field->value, &half, sizeof(half)) ? half : 0;
}

static uint32_t read_int(const struct metadata_object *object, const struct offset *field)
{
	uint32_t value;

	return read_field(object, field->value, &value, sizeof(value)) ? value : 0;
}

/* ---- methods ---- */

/* True if the class's own pool names the class. The method's may be another: method handle intrinsics have own ones. */
static bool leads_back(const struct metadata_method *method)
{
	uintptr_t own_pool = read_address(&method->holder, &layout.holder_pool);
	uintptr_t holder;

	if (!own_pool || own_pool == method->pool.address)
		return own_pool;
	return read_bytes(&holder, own_pool + layout.pool_holder.value, sizeof(holder)) &&
	       holder == method->holder.address;
}

bool metadata_prove(uintptr_t address, struct metadata_method *ret)
{
	if (!address || address % WORD || !layout.const_bytes)
		return false;
	return read_object(&ret->itself, address, layout.method_bytes) &&
	       read_object(&ret->const_method, read_address(&ret->itself, &layout.method_const), layout.const_bytes) &&
	       read_object(&ret->pool, read_address(&ret->const_method, &layout.const_pool), layout.pool_bytes) &&
	       read_object(&ret->holder, read_address(&ret->pool, &layout.pool_holder), layout.holder_bytes) &&
	       leads_back(ret);
}

/* Like InstanceKlass::jmethod_id_or_null(). The array of ids begins with their count. */
static uint64_t find_id(const struct metadata_method *method)
{
	size_t number = read_half(&method->const_method, &layout.const_id), count = 0;
	struct metadata_object ids;
	uint64_t id = 0;

	if (!read_object(&ids, read_address(&method->holder, &layout.holder_ids), sizeof(ids.data)) ||
	    !read_field(&ids, 0, &count, sizeof(count)) || number >= count ||
	    !read_field(&ids, (number + 1) * WORD, &id, sizeof(id)))
		return 0;
	return id;
}

/* Returns the key that java_read_const() of headers/walk/ makes. */
static struct metadata_key bare_key(const struct metadata_method *method)
{
	uint16_t names[3] = {0};
	uint32_t version = 0;
	uint64_t tag;

	(void)read_field(&method->const_method, layout.const_code_bytes.value, names, sizeof(names));
	if (layout.pool_version)
		(void)read_field(&method->pool, layout.pool_version, &version, sizeof(version));
	tag = duet_method_tag(method->const_method.address, method->pool.address,
			      names[0] | (uint64_t)names[1] << 16 | (uint64_t)names[2] << 32 | (uint64_t)version << 48);
	return (struct metadata_key){duet_method_key(method->itself.address, tag), duet_method_check(tag)};
}

struct metadata_key metadata_key(const struct metadata_method *method)
{
	uint64_t id = layout.by_address ? 0 : find_id(method);

	return id ? (struct metadata_key){id, 0} : bare_key(method);
}

uint32_t metadata_check(const struct metadata_method *method, uint64_t key)
{
	return key & DUET_METHOD_BARE ? bare_key(method).check : 0;
}

struct metadata_key metadata_prove_key(uintptr_t address)
{
	struct metadata_method method;

	return metadata_prove(address, &method) ? metadata_key(&method) : (struct metadata_key){0};
}

/* A jmethodID is proven when its slot holds the method, and the class has this id under the method's number. */
bool metadata_find(uint64_t key, struct metadata_method *ret)
{
	uintptr_t address;

	if (key & DUET_METHOD_BARE)
		return metadata_prove((uintptr_t)(key & DUET_METHOD_ADDRESS), ret) && bare_key(ret).method == key;
	if (layout.version >= NUMBERED_IDS || key % WORD || !read_bytes(&address, (uintptr_t)key, sizeof(address)))
		return false;
	return metadata_prove(address, ret) && find_id(ret) == key;
}

uint8_t metadata_bytecode(const struct metadata_method *method, int32_t bci)
{
	uint8_t opcode;

	if (bci < 0 || (uint32_t)bci >= read_half(&method->const_method, &layout.const_code_bytes) ||
	    !read_bytes(&opcode, method->const_method.address + layout.const_bytes + (uint32_t)bci, 1))
		return 0;
	return bytecode_original(opcode);
}

uint8_t *metadata_code(const struct metadata_method *method, uint32_t *ret_bytes)
{
	uint32_t bytes = read_half(&method->const_method, &layout.const_code_bytes), step = 1;
	uint8_t *code = bytes <= LARGEST_COMPILED ? malloc(bytes + 1u) : NULL;

	if (!code)
		return NULL;
	bytes = (uint32_t)memory_take(code, method->const_method.address + layout.const_bytes, bytes);
	for (*ret_bytes = 0; step && *ret_bytes < bytes; *ret_bytes += step) {
		code[*ret_bytes] = bytecode_original(code[*ret_bytes]);
		step = bytecode_length(code, bytes, *ret_bytes);
	}
	return code;
}

/* ---- callees ---- */

/*
 * Returns 0 for what cannot be read. These reads are not noted: what they lead to is proven. Memory that is kept may be
 * older than a field's value.
 */
static uint64_t peek(uintptr_t address, size_t bytes)
{
	uint64_t value = 0;

	if (!address)
		return 0;
	if (memory_take(&value, address, bytes) == bytes && value)
		return value;
	return memory_copy(&value, address, bytes) == bytes ? value : 0;
}

/* Returns the class that a call names. Since JDK 9 there is a number for it, before that there is the class itself. */
static uintptr_t class_of_call(uintptr_t pool, uint16_t constant)
{
	uintptr_t constants = pool + layout.pool_bytes, class;

	class = peek(constants + (peek(constants + constant * WORD, WORD) & UINT16_MAX) * WORD, WORD);
	if (!layout.pool_classes.known)
		return class;
	return peek(peek(pool + layout.pool_classes.value, WORD) + WORD + (class & UINT16_MAX) * WORD, WORD);
}

/* HotSpot notes the byte code when a call has been linked. */
static bool has_run(const uintptr_t words[3])
{
	return layout.cache_calls.known ? words[2] >> 48 : words[0] >> 16;
}

/*
 * HotSpot keeps of a call that it has linked: its constant, and the method or the number of the method in the class's
 * table, which follows the class. ConstantPoolCacheEntry: constant and byte codes, method, number or final method;
 * ResolvedMethodEntry: method, number, constant and byte codes.
 */
static bool read_call(uintptr_t pool, uint16_t operand, uintptr_t words[3])
{
	const size_t bytes = 3 * WORD;
	bool is_new = layout.cache_calls.known;
	uintptr_t cache = peek(pool + layout.pool_cache.value, WORD);
	uintptr_t calls = is_new ? peek(cache + layout.cache_calls.value, WORD) : cache;
	uintptr_t at = calls + (is_new ? WORD : layout.cache_bytes) + operand * layout.call_bytes;

	if (operand >= peek(calls, sizeof(uint32_t)) || layout.call_bytes < bytes)
		return false;
	if (memory_take(words, at, bytes) == bytes && has_run(words))
		return true;
	return memory_copy(words, at, bytes) == bytes; /* kept memory may be older than the first call */
}

bool metadata_callee(const struct metadata_method *method, uint16_t operand, struct metadata_method *ret)
{
	bool is_new = layout.cache_calls.known;
	uintptr_t pool = method->pool.address, words[3], called, number, constant;

	if (!read_call(pool, operand, words) || !has_run(words))
		return false;
	called = words[is_new ? 0 : 1];
	number = is_new ? (uint32_t)words[1] : words[2];
	constant = words[is_new ? 2 : 0];
	if (!called && number > TABLE_MOST)
		called = number;
	if (!called)
		called = peek(class_of_call(pool, (uint16_t)constant) + layout.klass_bytes + number * WORD, WORD);
	/* An interface's method comes after its class. */
	return metadata_prove(called, ret) || (number > TABLE_MOST && metadata_prove(number, ret));
}

bool metadata_is_class(uintptr_t address)
{
	return address && address % WORD == 0 &&
	       peek(peek(address + layout.holder_pool.value, WORD) + layout.pool_holder.value, WORD) == address;
}

/*
 * Like Klass::is_subtype_of(): each class has the offset of a field, in which its subclasses have its address. That of
 * an interface is the field of a cache: its subclasses have its address in a list.
 */
static bool is_subtype(uintptr_t class, uintptr_t of)
{
	uint32_t offset = (uint32_t)peek(of + layout.super_offset.value, sizeof(offset));
	uintptr_t list = peek(class + layout.other_supers.value, WORD);
	uint64_t count = offset == layout.other_super.value ? peek(list, sizeof(uint32_t)) : 0;

	for (uint64_t i = 0; i < count && i < COMPARED_MOST; i++)
		if (peek(list + (i + 1) * WORD, WORD) == of)
			return true;
	return !count && offset < layout.klass_bytes && peek(class + offset, WORD) == of;
}

/* The JVM has one symbol for each text: equal names are at equal addresses. */
struct signature {
	uintptr_t name, types;
};

static struct signature signature_of(uintptr_t method)
{
	uintptr_t const_method = peek(method + layout.method_const.value, WORD);
	uintptr_t constants = peek(const_method + layout.const_pool.value, WORD) + layout.pool_bytes;

	return (struct signature){
		peek(constants + peek(const_method + layout.const_name.value, 2) * WORD, WORD),
		peek(constants + peek(const_method + layout.const_signature.value, 2) * WORD, WORD),
	};
}

/* Returns the one of `count` methods at `from` that has this signature; 0: none. */
static uintptr_t find_signature(uintptr_t from, uint64_t count, const struct signature *sought, uint32_t *budget)
{
	for (uint64_t i = 0; i < count && i < COMPARED_MOST && *budget > 1; i++) {
		uintptr_t method = peek(from + i * WORD, WORD);
		struct signature signature = method ? signature_of(method) : (struct signature){0};

		--*budget;
		if (signature.name == sought->name && signature.types == sought->types)
			return method;
	}
	return 0;
}

/* Methods of a final class are not in its table, and those that it inherits are in the table alone. */
bool metadata_implementation(uintptr_t class, const struct metadata_method *method, uint32_t *budget,
			     struct metadata_method *ret)
{
	struct signature sought = signature_of(method->itself.address);
	uintptr_t own = peek(class + layout.class_methods.value, WORD), found;

	if (!layout.class_methods.known || !layout.table_length.known || !layout.super_offset.known ||
	    !layout.other_super.known || !layout.other_supers.known || !is_subtype(class, method->holder.address))
		return false;
	found = find_signature(own + WORD, peek(own, sizeof(uint32_t)), &sought, budget);
	if (!found)
		found = find_signature(class + layout.klass_bytes,
				       peek(class + layout.table_length.value, sizeof(uint32_t)), &sought, budget);
	return found != method->itself.address && metadata_prove(found, ret);
}

/* ---- names ---- */

static char *read_symbol(uintptr_t address)
{
	struct metadata_object symbol;
	uint32_t length = read_object(&symbol, address, SYMBOL_BYTES) ? read_half(&symbol, &layout.symbol_length) : 0;
	char *text = length ? malloc(length + 1u) : NULL;

	if (!text)
		return NULL;
	text[length] = '\0';
	if (read_field(&symbol, layout.symbol_body.value, text, length) && strlen(text) == length)
		return text;
	free(text);
	return NULL;
}

/* Returns the text of a constant, which the caller frees, or NULL. */
static char *read_constant(const struct metadata_object *pool, uint32_t index)
{
	uintptr_t symbol = 0;

	if (!index || index >= read_int(pool, &layout.pool_length) ||
	    !read_field(pool, layout.pool_bytes + index * WORD, &symbol, sizeof(symbol)) || symbol % WORD)
		return NULL;
	return read_symbol(symbol);
}

/* Returns the class signature as JVMTI gives it. Of a hidden class, HotSpot has "Name+0x…", JVMTI "LName.0x…;". */
static char *read_class(const struct metadata_object *holder)
{
	char *name = read_symbol(read_address(holder, &layout.klass_name));
	size_t length = name ? strlen(name) : 0;
	char *signature = name ? malloc(length + 3) : NULL;
	char *suffix = name ? strrchr(name, '+') : NULL;

	if (suffix && !strncmp(suffix, "+0x", 3))
		*suffix = '.';
	if (signature) {
		signature[0] = 'L';
		memcpy(signature + 1, name, length);
		memcpy(signature + 1 + length, ";", 2);
	}
	free(name);
	return signature;
}

/* Returns the constant of a field or call; 0: not known. The byte code of fields named them as calls before JDK 22. */
static uint32_t constant_of(uintptr_t pool, uint8_t opcode, uint16_t operand)
{
	bool is_new = layout.cache_calls.known, is_field = opcode < OP_INVOKEVIRTUAL;
	uintptr_t fields = peek(pool + layout.pool_cache.value, WORD) + layout.cache_fields.value, words[3];

	if (!is_field || !is_new)
		return read_call(pool, operand, words) ? words[is_new ? 2 : 0] & UINT16_MAX : 0;
	fields = layout.cache_fields.known && layout.field_constant.known ? peek(fields, WORD) : 0;
	if (operand >= peek(fields, sizeof(uint32_t)))
		return 0;
	return (uint32_t)peek(fields + WORD + operand * layout.field_bytes + layout.field_constant.value, 2);
}

char *metadata_types(const struct metadata_method *method, uint8_t opcode, uint16_t operand)
{
	uintptr_t constants = method->pool.address + layout.pool_bytes;
	uint32_t constant;

	if (!opcode)
		return read_constant(&method->pool, read_half(&method->const_method, &layout.const_signature));
	constant = constant_of(method->pool.address, opcode, operand);
	constant = constant ? (uint32_t)peek(constants + constant * WORD, 4) >> 16 : 0; /* its name and type */
	return read_constant(&method->pool, constant ? (uint32_t)peek(constants + constant * WORD, 4) >> 16 : 0);
}

char *metadata_name(const struct metadata_method *method)
{
	char *holder = read_class(&method->holder);
	char *name = read_constant(&method->pool, read_half(&method->const_method, &layout.const_name));
	size_t bytes = holder && name ? strlen(holder) + strlen(name) + 2 : 0;
	char *both = bytes ? malloc(bytes) : NULL;

	if (both)
		snprintf(both, bytes, "%s%s ", holder, name);
	free(holder);
	free(name);
	return both;
}

static int compare_lines(const void *left, const void *right)
{
	const struct duet_line *a = left, *b = right;

	return (a->bci > b->bci) - (a->bci < b->bci);
}

void metadata_sort_lines(struct duet_line *lines, size_t count)
{
	qsort(lines, count, sizeof(*lines), compare_lines);
}

/* CompressedLineNumberReadStream: a byte with the steps of bci and line; or 0xff and both packed; 0: the end. */
static uint32_t unpack_lines(struct unsigned5 *stream, struct duet_line *lines)
{
	struct duet_line line = {0, 0};
	uint32_t count = 0;
	unsigned int byte;

	while (count < MAX_LINES && (byte = unsigned5_byte(stream)) != 0) {
		if (byte == 0xff) {
			line.bci += (uint32_t)unsigned5_read_signed(stream);
			line.line += (uint32_t)unsigned5_read_signed(stream);
		} else {
			line.bci += byte >> 3;
			line.line += byte & 7;
		}
		if (stream->failed)
			break;
		lines[count++] = line;
	}
	return count;
}

/* Copies the line table, which follows the byte code and ends with the ConstMethod at most. Returns its bytes, or 0. */
static size_t copy_table(const struct metadata_method *method, unsigned char *table)
{
	const struct metadata_object *from = &method->const_method;
	size_t begin = layout.const_bytes + read_half(from, &layout.const_code_bytes);
	size_t end = read_int(from, &layout.const_words) * WORD;

	if (!(read_half(from, &layout.const_flags) & HAS_LINES) || end <= begin)
		return 0;
	end = end - begin < LINES_MAX_BYTES ? end - begin : LINES_MAX_BYTES;
	end = memory_take(table, from->address + begin, end);
	memory_note(from->address + begin, table, end);
	return end;
}

/* Unpacks into memory that is reused: few methods have more than a hundred lines. */
static void read_lines(const struct metadata_method *method, struct metadata_names *names)
{
	static unsigned char table[LINES_MAX_BYTES];
	static struct duet_line lines[MAX_LINES];
	struct unsigned5 stream = {
		.at = table, .end = table + copy_table(method, table), .excess = layout.version >= EXCESS_SINCE};
	uint32_t count = unpack_lines(&stream, lines);

	names->lines = malloc((count + 1u) * sizeof(*lines));
	if (!names->lines)
		return;
	metadata_sort_lines(lines, count);
	memcpy(names->lines, lines, count * sizeof(*lines));
	names->line_count = count;
}

bool metadata_names_read(const struct metadata_method *method, struct metadata_names *ret)
{
	struct metadata_names names = {
		.class_signature = read_class(&method->holder),
		.name = read_constant(&method->pool, read_half(&method->const_method, &layout.const_name)),
		.signature = read_constant(&method->pool, read_half(&method->const_method, &layout.const_signature)),
		.modifiers = read_half(&method->itself, &layout.method_flags),
		.bare = bare_key(method).method,
	};

	if (!names.class_signature || !names.name || !names.signature) {
		metadata_names_release(&names);
		return false;
	}
	names.source = read_constant(&method->pool, layout.pool_source.known
							    ? read_half(&method->pool, &layout.pool_source)
							    : read_half(&method->holder, &layout.holder_source));
	read_lines(method, &names);
	*ret = names;
	return true;
}

void metadata_names_release(struct metadata_names *names)
{
	free(names->class_signature);
	free(names->name);
	free(names->signature);
	free(names->source);
	free(names->lines);
}
