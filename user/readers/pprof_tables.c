/* SPDX-License-Identifier: MIT */
#include "readers/pprof_tables.h"

#include <errno.h>
#include <string.h>

#include "base/varint.h"
#include "duet_jvm.h"

int wire_varint(struct wire *wire, uint64_t *ret)
{
	size_t left = wire->len - wire->at, used;

	if (!left) /* an empty message may have no bytes to point to */
		return 0;
	used = varint_get(wire->bytes + wire->at, left < VARINT_BYTES ? left : VARINT_BYTES, ret);
	wire->at += used;
	return used ? 1 : -EINVAL;
}

static int fixed(struct wire *wire, size_t bytes, struct wire_field *ret)
{
	if (wire->len - wire->at < bytes)
		return -EINVAL;
	ret->value = 0;
	memcpy(&ret->value, wire->bytes + wire->at, bytes); /* little-endian, as duet's machines are */
	wire->at += bytes;
	return 1;
}

static int bytes_of(struct wire *wire, struct wire_field *ret)
{
	uint64_t len;

	if (wire_varint(wire, &len) <= 0 || len > wire->len - wire->at)
		return -EINVAL;
	ret->bytes = wire->bytes + wire->at;
	ret->len = (size_t)len;
	wire->at += (size_t)len;
	return 1;
}

static int value_of(struct wire *wire, struct wire_field *ret)
{
	switch (ret->type) {
	case WIRE_VARINT:
		return wire_varint(wire, &ret->value) > 0 ? 1 : -EINVAL;
	case WIRE_FIXED64:
		return fixed(wire, 8, ret);
	case WIRE_FIXED32:
		return fixed(wire, 4, ret);
	case WIRE_BYTES:
		return bytes_of(wire, ret);
	}
	return -EINVAL;
}

int wire_next(struct wire *wire, struct wire_field *ret)
{
	size_t start = wire->at;
	uint64_t tag;
	int got = wire_varint(wire, &tag);

	if (got <= 0)
		return got;
	*ret = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = (enum wire_type)(tag & 7)};
	got = tag >> 3 && tag <= UINT32_MAX ? value_of(wire, ret) : -EINVAL;
	if (got < 0)
		wire->at = start;
	return got;
}

#define MESSAGE_MAX ((size_t)1 << 20)
#define FILE_NAME_MAX 255
#define FRAMES_PER_ROW 16 /* of the stacks of all samples: a byte can refer to many */
#define VALUES_MAX 256 /* value types; the sum of so many values below 2^53 fits into 64 bits */

/* ---- fields ---- */

int pprof_refuse(struct pprof_file *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!p->why->len)
		buf_vprintf(p->why, format, args);
	va_end(args);
	return -EINVAL;
}

int pprof_has_room(struct pprof_file *p, uint64_t rows)
{
	return rows <= p->rows_max ? 0
				   : pprof_refuse(p, "a table has more than %llu rows, too many for so short a file",
						  (unsigned long long)p->rows_max);
}

int pprof_each(struct pprof_file *p, pprof_visitor visit)
{
	struct wire_field field;
	int got, err = 0;

	p->file.at = 0;
	while ((got = wire_next(&p->file, &field)) > 0) {
		err = visit(p, &field);
		if (err < 0)
			break;
	}
	if (got < 0)
		return pprof_refuse(p, "byte %zu of the contents begins no complete field", p->file.at);
	if (err == -EINVAL && !p->why->len)
		return pprof_refuse(p, "the message before byte %zu of the contents is damaged", p->file.at);
	return err;
}

void *pprof_unpack(struct pprof_file *p, const struct wire_field *field, const ProtobufCMessageDescriptor *type)
{
	if (field->type != WIRE_BYTES)
		return NULL;
	if (field->len > MESSAGE_MAX) {
		pprof_refuse(p, "the message before byte %zu of the contents has more than %zu MB", p->file.at,
			     MESSAGE_MAX >> 20);
		return NULL;
	}
	return protobuf_c_message_unpack(type, NULL, field->len, field->bytes);
}

void pprof_drop(void *message)
{
	protobuf_c_message_free_unpacked(*(ProtobufCMessage **)message, NULL);
}

/* ---- strings ---- */

int pprof_add_string(struct pprof_file *p, struct pprof_text text)
{
	if (pprof_has_room(p, p->strings.len))
		return -EINVAL;
	if (p->strings.len >= UINT32_MAX - 1 || vec_push(&p->strings, text) < 0)
		return -ENOMEM;
	if (vec_push(&p->meanings, (struct pprof_meaning){0}) < 0)
		return -ENOMEM;
	return vec_push(&p->ids, UINT32_MAX);
}

static int read_string(struct pprof_file *p, const struct wire_field *field)
{
	if (field->number != PPROF_STRINGS)
		return 0;
	if (field->type != WIRE_BYTES)
		return -EINVAL;
	return pprof_add_string(p, (struct pprof_text){field->bytes, field->len});
}

struct pprof_text pprof_text(const struct pprof_file *p, int64_t string)
{
	return string >= 0 && (size_t)string < p->strings.len ? p->strings.items[string] : (struct pprof_text){NULL, 0};
}

bool pprof_is_text(const struct pprof_file *p, int64_t string, const char *text)
{
	return pprof_text_is(pprof_text(p, string), text);
}

bool pprof_text_is(struct pprof_text have, const char *text)
{
	return have.len == strlen(text) && !memcmp(have.bytes ? (const char *)have.bytes : "", text, have.len);
}

uint32_t pprof_thread(struct pprof_file *p, struct profile_thread row, const uint64_t *virtual_id)
{
	const uint64_t about[] = {
		row.pid, row.tid, row.name, row.process, row.owner, !virtual_id, virtual_id ? *virtual_id : 0};
	uint64_t key = hash_bytes(about, sizeof(about), 0), index;

	if (map_get(&p->threads, key, &index))
		return (uint32_t)index;
	row.tid = virtual_id ? PROFILE_VIRTUAL : row.tid;
	index = profile_thread_row(p->profile, row, virtual_id);
	(void)map_put(&p->threads, key, index); /* out of memory: it is looked for again */
	return (uint32_t)index;
}

uint32_t pprof_intern(struct pprof_file *p, int64_t string)
{
	struct pprof_text text = pprof_text(p, string);

	if (!text.len)
		return 0;
	if (p->ids.items[string] == UINT32_MAX)
		p->ids.items[string] = intern_bytes(&p->profile->strings, (const char *)text.bytes,
						    text.len < MESSAGE_MAX ? text.len : MESSAGE_MAX);
	return p->ids.items[string];
}

bool pprof_has_strings(const struct pprof_file *p, const int64_t *strings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strings[i] < 0 || (size_t)strings[i] >= p->strings.len)
			return false;
	return true;
}

static int check_strings(struct pprof_file *p, const int64_t *strings, size_t count, const char *what)
{
	return pprof_has_strings(p, strings, count)
		       ? 0
		       : pprof_refuse(p, "a %s refers to a string that the file does not have", what);
}

/* ---- tables ---- */

static int read_value_type(struct pprof_file *p, const struct wire_field *field)
{
	PPROF_OWNED Pprof__ValueType *type = pprof_unpack(p, field, &pprof__value_type__descriptor);
	int err = type ? 0 : -EINVAL;

	if (!err)
		err = check_strings(p, (int64_t[]){type->type, type->unit}, 2, "value type");
	if (!err && p->values.len >= VALUES_MAX)
		err = pprof_refuse(p, "the file has more than %d value types", VALUES_MAX);
	if (err)
		return err;
	return vec_push(&p->values, (struct pprof_value){.type = type->type, .unit = type->unit, .scale = 1});
}

int pprof_add_mapping(struct pprof_file *p, const Pprof__Mapping *mapping)
{
	int err = check_strings(p, &mapping->file, 1, "mapping");

	if (!err)
		err = map_put(&p->mapping_ids, mapping->id, p->mappings.len);
	return err ? err : vec_push(&p->mappings, *mapping);
}

static int read_mapping(struct pprof_file *p, const struct wire_field *field)
{
	PPROF_OWNED Pprof__Mapping *mapping = pprof_unpack(p, field, &pprof__mapping__descriptor);

	return mapping ? pprof_add_mapping(p, mapping) : -EINVAL;
}

int pprof_add_function(struct pprof_file *p, const Pprof__Function *function)
{
	int err = check_strings(p, (int64_t[]){function->name, function->system_name, function->file}, 3, "function");

	if (!err)
		err = map_put(&p->function_ids, function->id, p->functions.len);
	return err ? err : vec_push(&p->functions, *function);
}

static int read_function(struct pprof_file *p, const struct wire_field *field)
{
	PPROF_OWNED Pprof__Function *function = pprof_unpack(p, field, &pprof__function__descriptor);

	return function ? pprof_add_function(p, function) : -EINVAL;
}

static int read_table(struct pprof_file *p, const struct wire_field *field)
{
	if (pprof_has_room(p, p->mappings.len) || pprof_has_room(p, p->functions.len))
		return -EINVAL;
	switch (field->number) {
	case PPROF_VALUE_TYPES:
		return read_value_type(p, field);
	case PPROF_MAPPINGS:
		return read_mapping(p, field);
	case PPROF_FUNCTIONS:
		return read_function(p, field);
	case PPROF_TIME:
		p->head.time_ns = (int64_t)field->value;
		break;
	case PPROF_DURATION:
		p->head.duration_ns = (int64_t)field->value;
		break;
	case PPROF_PERIOD:
		p->head.period = (int64_t)field->value;
		break;
	case PPROF_DEFAULT_TYPE:
		p->head.default_type = (int64_t)field->value;
		break;
	}
	return 0;
}

/* ---- frames ---- */

/* The kind that the mapping's name shows, see profile/pprof.h. */
static enum frame_kind kind_of_mapping(const char *file)
{
	size_t len = strlen(file);

	if (!strncmp(file, "[kernel", 7))
		return FRAME_KERNEL;
	if (duet_is_libjvm(file))
		return FRAME_JVM;
	for (enum frame_kind kind = FRAME_KERNEL; len > 2 && kind < FRAME_KIND_MAX; kind++) {
		const char *name = frame_kind_name(kind);

		if (strlen(name) == len - 2 && file[0] == '[' && file[len - 1] == ']' &&
		    !memcmp(file + 1, name, len - 2))
			return kind;
	}
	return FRAME_NATIVE;
}

/* The file name of a path; duet writes names only. */
static const char *file_name(const char *path)
{
	return *path == '/' && *basename(path) ? basename(path) : path;
}

/* Splits "java.lang.String.charAt(I)C". */
static void find_method(struct intern *strings, struct pprof_meaning *meaning, const char *text)
{
	size_t len = strlen(text);
	const char *signature = text[len ? len - 1 : 0] ? strrchr(text, '(') : NULL;
	const char *end = signature && strchr(signature, ')') ? signature : text + len;
	const char *dot = memrchr(text, '.', (size_t)(end - text));

	meaning->has_method = true;
	if (dot)
		meaning->class_name = intern_bytes(strings, text, (size_t)(dot - text));
	meaning->name = intern_bytes(strings, dot ? dot + 1 : text, (size_t)(end - (dot ? dot + 1 : text)));
	meaning->signature = intern_str(strings, end);
}

static const char *module_of(enum frame_kind kind, const char *file)
{
	if (kind == FRAME_KERNEL)
		return !strncmp(file, PPROF_KERNEL " ", strlen(PPROF_KERNEL) + 1) ? file + strlen(PPROF_KERNEL) + 1
										  : "";
	return kind != FRAME_NATIVE && file[0] == '[' ? "" : file_name(file);
}

static void find_mapping(struct intern *strings, struct pprof_meaning *meaning, const char *file)
{
	const char *name = file_name(file);

	meaning->has_mapping = true;
	meaning->kind = kind_of_mapping(file);
	meaning->module = intern_str(strings, module_of(meaning->kind, file));
	meaning->file = intern_bytes(strings, name, strnlen(name, FILE_NAME_MAX));
}

static const struct pprof_meaning *method_of(struct pprof_file *p, int64_t string)
{
	struct pprof_meaning *meaning = &p->meanings.items[string];

	if (!meaning->has_method)
		find_method(&p->profile->strings, meaning, intern_text(&p->profile->strings, pprof_intern(p, string)));
	return meaning;
}

static const struct pprof_meaning *mapping_of(struct pprof_file *p, int64_t string)
{
	struct pprof_meaning *meaning = &p->meanings.items[string];

	if (!meaning->has_mapping)
		find_mapping(&p->profile->strings, meaning, intern_text(&p->profile->strings, pprof_intern(p, string)));
	return meaning;
}

static struct frame frame_of(struct pprof_file *p, const Pprof__Function *function, int64_t line, int64_t string)
{
	struct pprof_text file = pprof_text(p, string);
	const struct pprof_meaning *mapping = mapping_of(p, string), *method;
	struct frame frame = {.kind = mapping->kind, .bci = -1};
	int64_t name = function->name;

	/* other programs keep the linker's name there */
	if (file.len && file.bytes[0] == '[' && function->system_name)
		name = function->system_name;
	if (frame_kind_is_java(frame.kind)) {
		method = method_of(p, name);
		frame.class_name = method->class_name;
		frame.name = method->name;
		frame.signature = method->signature;
		frame.module = pprof_intern(p, function->file);
		frame.line = line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
	} else {
		frame.module = mapping->module;
		frame.name = pprof_intern(p, name);
	}
	return frame;
}

/* The address in the mapping's file, as far as it is in the mapping. Programs that know only that have no range. */
static uint64_t address_in_file(const Pprof__Mapping *mapping, uint64_t address)
{
	bool is_inside = mapping->file && mapping->start <= address && address < mapping->end;

	return is_inside ? address - mapping->start + mapping->file_offset : address;
}

/* Code without a name: "file+0x1234". */
static struct frame frame_of_address(struct pprof_file *p, uint64_t address, int64_t string)
{
	const struct pprof_meaning *mapping = mapping_of(p, string);
	const char *file = intern_text(&p->profile->strings, mapping->file);
	struct frame frame = {.kind = mapping->kind, .module = mapping->module, .bci = -1};
	BUF(name);

	if (frame_kind_is_java(frame.kind))
		frame.kind = FRAME_NATIVE;
	buf_printf(&name, "%s%s0x%llx", file, *file ? "+" : "", (unsigned long long)address);
	frame.name = intern_str(&p->profile->strings, name.data);
	return frame;
}

static int add_frame(struct pprof_file *p, const struct frame *frame)
{
	uint32_t index = profile_frame(p->profile, frame);

	return index == UINT32_MAX ? -ENOMEM : vec_push(&p->frames, index);
}

static int add_lines(struct pprof_file *p, const Pprof__Location *location, int64_t file)
{
	int err = 0;

	for (size_t i = location->n_lines; !err && i-- > 0;) {
		const Pprof__Line *line = location->lines[i];
		uint64_t index;
		struct frame frame;

		if (!map_get(&p->function_ids, line->function, &index))
			return pprof_refuse(p, "a location refers to function %llu, which the file does not have",
					    (unsigned long long)line->function);
		frame = frame_of(p, &p->functions.items[index], line->line, file);
		err = add_frame(p, &frame);
	}
	return err;
}

int pprof_add_location(struct pprof_file *p, const Pprof__Location *location)
{
	struct pprof_place place = {.first = (uint32_t)p->frames.len};
	static const Pprof__Mapping none = PPROF__MAPPING__INIT;
	const Pprof__Mapping *mapping = &none;
	uint64_t index;
	int err;

	if (location->mapping && !map_get(&p->mapping_ids, location->mapping, &index))
		return pprof_refuse(p, "a location refers to mapping %llu, which the file does not have",
				    (unsigned long long)location->mapping);
	if (location->mapping)
		mapping = &p->mappings.items[index];
	if (location->n_lines) {
		err = add_lines(p, location, mapping->file);
	} else {
		struct frame frame = frame_of_address(p, address_in_file(mapping, location->address), mapping->file);

		err = add_frame(p, &frame);
	}
	if (p->frames.len > UINT32_MAX)
		return -ENOMEM;
	if (!err && (pprof_has_room(p, p->frames.len) || pprof_has_room(p, p->places.len)))
		return -EINVAL;
	place.count = (uint32_t)p->frames.len - place.first;
	if (!err)
		err = map_put(&p->location_ids, location->id, p->places.len);
	return err ? err : vec_push(&p->places, place);
}

static int read_location(struct pprof_file *p, const struct wire_field *field)
{
	PPROF_OWNED Pprof__Location *location = NULL;

	if (field->number != PPROF_LOCATIONS)
		return 0;
	location = pprof_unpack(p, field, &pprof__location__descriptor);
	return location ? pprof_add_location(p, location) : -EINVAL;
}

/* ---- stacks and units ---- */

static int push_location(struct pprof_file *p, uint64_t id)
{
	const struct pprof_place *place;
	uint64_t index;
	int err = 0;

	if (!map_get(&p->location_ids, id, &index))
		return pprof_refuse(p, "a sample refers to location %llu, which the file does not have",
				    (unsigned long long)id);
	place = &p->places.items[index];
	if (p->stack.len + place->count > PPROF_DEPTH_MAX)
		return pprof_refuse(p, "a sample has more than %d frames", PPROF_DEPTH_MAX);
	p->total_frames += place->count;
	if (p->total_frames > FRAMES_PER_ROW * p->rows_max)
		return pprof_refuse(p, "all stacks have more than %llu frames, too many for so short a file",
				    (unsigned long long)(FRAMES_PER_ROW * p->rows_max));
	for (uint32_t i = 0; !err && i < place->count; i++)
		err = vec_push(&p->stack, p->frames.items[place->first + i]);
	return err;
}

int pprof_stack(struct pprof_file *p, const uint64_t *locations, size_t count, uint32_t *ret_node)
{
	int err = 0;

	vec_clear(&p->stack);
	for (size_t i = count; !err && i-- > 0;)
		err = push_location(p, locations[i]);
	if (!err)
		*ret_node = profile_stack(p->profile, p->stack.items, (uint32_t)p->stack.len);
	return err;
}

enum profile_unit pprof_unit(const struct pprof_file *p, struct pprof_value *value)
{
	static const struct {
		const char *name;
		enum profile_unit unit;
		uint64_t scale;
	} units[] = {
		{"nanoseconds", PROFILE_NS, 1},
		{"microseconds", PROFILE_NS, 1000},
		{"milliseconds", PROFILE_NS, 1000000},
		{"seconds", PROFILE_NS, 1000000000},
		{"ns", PROFILE_NS, 1},
		{"us", PROFILE_NS, 1000},
		{"ms", PROFILE_NS, 1000000},
		{"s", PROFILE_NS, 1000000000},
		{"bytes", PROFILE_BYTES, 1},
		{"kilobytes", PROFILE_BYTES, 1024},
		{"megabytes", PROFILE_BYTES, 1048576},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (pprof_is_text(p, value->unit, units[i].name)) {
			value->scale = units[i].scale;
			return units[i].unit;
		}
	return PROFILE_COUNT;
}

uint32_t pprof_event(struct pprof_file *p, struct pprof_value *value, uint64_t interval)
{
	enum profile_unit unit = pprof_unit(p, value);
	const char *name = intern_text(&p->profile->strings, pprof_intern(p, value->type));

	return profile_event(p->profile, *name ? name : READER_SAMPLES, unit, interval);
}

/* ---- all of them ---- */

int pprof_read_tables(struct pprof_file *p)
{
	int err = pprof_each(p, read_string);

	if (!err && (!p->strings.len || p->strings.items[0].len))
		err = pprof_refuse(p, "the file has no string table");
	if (!err)
		err = pprof_each(p, read_table);
	return err ? err : pprof_each(p, read_location);
}

void pprof_file_release(struct pprof_file *p)
{
	vec_release(&p->strings);
	vec_release(&p->ids);
	vec_release(&p->meanings);
	vec_release(&p->values);
	vec_release(&p->mappings);
	vec_release(&p->functions);
	vec_release(&p->places);
	vec_release(&p->frames);
	map_release(&p->mapping_ids);
	map_release(&p->function_ids);
	map_release(&p->location_ids);
	map_release(&p->threads);
	vec_release(&p->stack);
	vec_release(&p->sums);
}
