/* SPDX-License-Identifier: MIT */
#include "readers/jfr/types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS_DEEP 16 /* depth of elements: root, metadata, class, field, annotation */
#define VALUES_DEEP 8 /* depth of structures in structures */
#define DIGITS_MAX 20

int jfr_types_init(struct jfr_types *types)
{
	*types = (struct jfr_types){0};
	return intern_init(&types->names);
}

void jfr_types_release(struct jfr_types *types)
{
	intern_release(&types->names);
	vec_release(&types->strings);
	vec_release(&types->types);
	vec_release(&types->fields);
	map_release(&types->ids);
	map_release(&types->named);
}

struct metadata {
	struct jfr_types *types;
	struct jfr_cursor cursor;
	int err;
};

/* The attributes of an element, as pairs of numbers of strings. */
struct attribute_list {
	uint32_t name, id, class_id, of_pool, dimension;
};

static uint32_t read_string(struct metadata *m)
{
	uint64_t number = jfr_number(&m->cursor);

	if (number < m->types->strings.len)
		return m->types->strings.items[number];
	m->cursor.failed = true;
	return 0;
}

static bool is_text(const struct metadata *m, uint32_t string, const char *text)
{
	return !strcmp(intern_text(&m->types->names, string), text);
}

static void read_attributes(struct metadata *m, struct attribute_list *ret)
{
	const struct {
		const char *key;
		uint32_t *value;
	} known[] = {{"name", &ret->name},
		     {"id", &ret->id},
		     {"class", &ret->class_id},
		     {"constantPool", &ret->of_pool},
		     {"dimension", &ret->dimension}};

	for (uint64_t left = jfr_number(&m->cursor); left && !m->cursor.failed; left--) {
		uint32_t key = read_string(m), value = read_string(m);

		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
			if (is_text(m, key, known[i].key))
				*known[i].value = value;
	}
}

/* Many elements may share a text that is long. */
static uint64_t number_of(const struct metadata *m, uint32_t string)
{
	const char *text = intern_text(&m->types->names, string);

	return strnlen(text, DIGITS_MAX + 1) <= DIGITS_MAX ? strtoull(text, NULL, 10) : 0;
}

static enum jfr_primitive primitive_of(const char *name)
{
	static const struct {
		const char *name;
		enum jfr_primitive primitive;
	} primitives[] = {
		{"boolean", JFR_ONE_BYTE}, {"byte", JFR_ONE_BYTE},	{"char", JFR_NUMBER},
		{"short", JFR_NUMBER},	   {"int", JFR_NUMBER},		{"long", JFR_NUMBER},
		{"float", JFR_FOUR_BYTES}, {"double", JFR_EIGHT_BYTES}, {"java.lang.String", JFR_STRING},
	};

	for (size_t i = 0; i < sizeof(primitives) / sizeof(*primitives); i++)
		if (!strcmp(primitives[i].name, name))
			return primitives[i].primitive;
	return JFR_STRUCTURE;
}

static void add_type(struct metadata *m, const struct attribute_list *a)
{
	uint64_t index = m->types->types.len;
	struct jfr_type type = {
		.id = number_of(m, a->id),
		.name = a->name,
		.first = m->types->fields.len,
		.primitive = primitive_of(intern_text(&m->types->names, a->name)),
	};

	if ((!map_get(&m->types->named, a->name, &index) && map_put(&m->types->named, a->name, index) < 0) ||
	    map_put(&m->types->ids, type.id, m->types->types.len) < 0 || vec_push(&m->types->types, type) < 0)
		m->err = -ENOMEM;
	else if (type.id < JFR_TYPES_NEAR)
		m->types->near[type.id] = (uint32_t)m->types->types.len;
}

/* Adds a field to the type that was added last. */
static void add_field(struct metadata *m, const struct attribute_list *a)
{
	struct jfr_field field = {
		.name = a->name,
		.class_id = number_of(m, a->class_id),
		.slot = -1,
		.is_of_pool = is_text(m, a->of_pool, "true"),
		.is_array = a->dimension && !is_text(m, a->dimension, "0"),
	};

	if (vec_push(&m->types->fields, field) < 0)
		m->err = -ENOMEM;
	else
		m->types->types.items[m->types->types.len - 1].count++;
}

/* Reads an element: its name, attributes, and elements. `is_class`: the element around it describes a type. */
static void read_element(struct metadata *m, int depth, bool is_class)
{
	struct attribute_list a = {0};
	uint32_t name;
	bool is_type;

	if (depth > ELEMENTS_DEEP)
		m->cursor.failed = true;
	if (m->cursor.failed || m->err)
		return;
	name = read_string(m);
	is_type = depth == 2 && is_text(m, name, "class");
	read_attributes(m, &a);
	if (is_type)
		add_type(m, &a);
	else if (is_class && is_text(m, name, "field"))
		add_field(m, &a);
	for (uint64_t left = jfr_number(&m->cursor); left && !m->cursor.failed && !m->err; left--)
		read_element(m, depth + 1, is_type);
}

static void read_strings(struct metadata *m)
{
	BUF(text);

	for (uint64_t left = jfr_number(&m->cursor); left && !m->cursor.failed && !m->err; left--) {
		struct jfr_text string = jfr_text(&m->cursor);

		buf_clear(&text);
		jfr_add_text(&text, &string);
		if (vec_push(&m->types->strings, intern_bytes(&m->types->names, text.data, text.len)) < 0)
			m->err = -ENOMEM;
	}
}

static void resolve_fields(struct jfr_types *types)
{
	for (size_t i = 0; i < types->fields.len; i++) {
		struct jfr_field *field = &types->fields.items[i];
		uint64_t index;
		bool is_known = map_get(&types->ids, field->class_id, &index);

		field->type = is_known ? (uint32_t)index : UINT32_MAX;
		field->is_number = field->is_of_pool || (is_known && types->types.items[index].primitive == JFR_NUMBER);
		field->is_number = field->is_number && !field->is_array;
	}
}

int jfr_types_read(struct jfr_types *types, struct jfr_cursor cursor, struct buf *why)
{
	struct metadata m = {.types = types, .cursor = cursor};

	jfr_types_release(types);
	if (jfr_types_init(types) < 0)
		return -ENOMEM;
	(void)jfr_number(&m.cursor); /* size */
	if (jfr_number(&m.cursor) != JFR_METADATA)
		m.cursor.failed = true;
	for (int i = 0; i < 3; i++)
		(void)jfr_number(&m.cursor); /* start, duration, id */
	read_strings(&m);
	read_element(&m, 0, false);
	resolve_fields(types);
	if (!m.cursor.failed || m.err)
		return m.err;
	return buf_explain(why, -EINVAL, "the description of its types, at byte %zu of a chunk, is damaged", cursor.at);
}

struct jfr_type *jfr_type_by_id(const struct jfr_types *types, uint64_t id)
{
	uint64_t index;

	if (id < JFR_TYPES_NEAR)
		return types->near[id] ? &types->types.items[types->near[id] - 1] : NULL;
	return map_get(&types->ids, id, &index) ? &types->types.items[index] : NULL;
}

struct jfr_type *jfr_type_named(const struct jfr_types *types, const char *name)
{
	uint32_t id = intern_known(&types->names, name);
	uint64_t index;

	return id && map_get(&types->named, id, &index) ? &types->types.items[index] : NULL;
}

const struct jfr_type *jfr_type_wanted(struct jfr_types *types, const struct jfr_wanted *wanted)
{
	const struct jfr_type *type = jfr_type_named(types, wanted->type);

	for (int slot = 0; type && slot < JFR_SLOTS_WIDE; slot++)
		(void)jfr_want(types, type, wanted->fields[slot], slot);
	return type;
}

const char *jfr_type_name(const struct jfr_types *types, const struct jfr_type *type)
{
	return intern_text(&types->names, type->name);
}

bool jfr_want(struct jfr_types *types, const struct jfr_type *type, const char *field, int slot)
{
	uint32_t name = field ? intern_known(&types->names, field) : 0;

	for (size_t i = 0; name && i < type->count; i++)
		if (types->fields.items[type->first + i].name == name) {
			types->fields.items[type->first + i].slot = slot;
			return true;
		}
	return false;
}

static bool skip_structure(const struct jfr_types *types, const struct jfr_type *type, struct jfr_cursor *cursor,
			   int depth);

/* Reads a value of this type that is in the event itself. */
static bool read_one(const struct jfr_types *types, const struct jfr_type *type, struct jfr_cursor *cursor, int depth,
		     struct jfr_value *ret)
{
	switch (type->primitive) {
	case JFR_NUMBER:
		ret->number = jfr_number(cursor);
		break;
	case JFR_ONE_BYTE:
		ret->number = jfr_byte(cursor);
		break;
	case JFR_FOUR_BYTES:
		ret->number = jfr_four_bytes(cursor);
		break;
	case JFR_EIGHT_BYTES:
		jfr_skip(cursor, 8);
		break;
	case JFR_STRING:
		ret->text = jfr_text(cursor);
		break;
	case JFR_STRUCTURE:
		return skip_structure(types, type, cursor, depth + 1);
	}
	return !cursor->failed;
}

static bool read_field(const struct jfr_types *types, const struct jfr_field *field, struct jfr_cursor *cursor,
		       int depth, struct jfr_value *ret)
{
	uint64_t left = 1;

	ret->at = cursor->at;
	if (field->is_number) {
		ret->number = jfr_number(cursor);
		ret->end = cursor->at;
		return !cursor->failed;
	}
	if (field->is_array)
		left = jfr_number(cursor);
	if (field->type == UINT32_MAX && !field->is_of_pool)
		cursor->failed = true;
	for (; left && !cursor->failed; left--) {
		if (field->is_of_pool)
			ret->number = jfr_number(cursor);
		else if (!read_one(types, &types->types.items[field->type], cursor, depth, ret))
			return false;
	}
	ret->end = cursor->at;
	return !cursor->failed;
}

/* Skips a structure. Refuses one without fields: it takes no bytes, so an event could hold any number of them. */
static bool skip_structure(const struct jfr_types *types, const struct jfr_type *type, struct jfr_cursor *cursor,
			   int depth)
{
	struct jfr_value ignored;

	if (!type->count || depth > VALUES_DEEP)
		cursor->failed = true;
	for (size_t i = 0; i < type->count && !cursor->failed; i++)
		(void)read_field(types, &types->fields.items[type->first + i], cursor, depth, &ignored);
	return !cursor->failed;
}

bool jfr_read(const struct jfr_types *types, const struct jfr_type *type, struct jfr_cursor *cursor,
	      struct jfr_value *values, int slots)
{
	struct jfr_value ignored = {0};

	memset(values, 0, (size_t)slots * sizeof(*values));
	if (type->primitive != JFR_STRUCTURE)
		return read_one(types, type, cursor, 0, &values[0]);
	for (size_t i = 0; i < type->count; i++) {
		const struct jfr_field *field = &types->fields.items[type->first + i];
		bool is_wanted = field->slot >= 0 && field->slot < slots;

		if (!read_field(types, field, cursor, 0, is_wanted ? &values[field->slot] : &ignored))
			return false;
	}
	return true;
}

bool jfr_skip_value(const struct jfr_types *types, const struct jfr_type *type, struct jfr_cursor *cursor)
{
	struct jfr_value ignored;

	if (type->primitive != JFR_STRUCTURE)
		return read_one(types, type, cursor, 0, &ignored);
	return !type->count || skip_structure(types, type, cursor, 0);
}
