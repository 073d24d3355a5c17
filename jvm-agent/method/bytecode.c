/* SPDX-License-Identifier: MIT */
#include "method/bytecode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The padding of a switch at `bci`: its numbers lie at multiples of 4. */
static uint32_t padding(uint32_t bci)
{
	return 3 - bci % 4;
}

static int32_t s4_at(const uint8_t *at)
{
	return (int32_t)class_u4_at(at);
}

/* Returns the number of targets that follow the fixed part of a switch, or -1. */
static int64_t switch_count(const uint8_t *fixed, uint8_t op)
{
	if (op == OP_LOOKUPSWITCH)
		return s4_at(fixed + 4);
	return (int64_t)s4_at(fixed + 8) - s4_at(fixed + 4) + 1;
}

static bool is_short_jump(uint8_t op)
{
	return (op >= OP_IFEQ && op <= OP_JSR) || op == OP_IFNULL || op == OP_IFNONNULL;
}

static bool is_long_jump(uint8_t op)
{
	return op == OP_GOTO_W || op == OP_JSR_W;
}

/* Calls `see` with the target of each jump and switch of this instruction, which must be valid. */
static void bytecode_targets(const uint8_t *code, uint32_t bci,
			     void (*see)(void *context, uint32_t bci, int64_t target), void *context)
{
	const uint8_t *at = code + bci + 1;
	uint8_t op = code[bci];

	if (is_short_jump(op))
		return see(context, bci, (int64_t)bci + (int16_t)class_u2_at(at));
	if (is_long_jump(op))
		return see(context, bci, (int64_t)bci + s4_at(at));
	if (op != OP_TABLESWITCH && op != OP_LOOKUPSWITCH)
		return;
	at += padding(bci);
	see(context, bci, (int64_t)bci + s4_at(at));
	for (int64_t i = 0, count = switch_count(at, op); i < count; i++)
		see(context, bci, (int64_t)bci + s4_at(op == OP_LOOKUPSWITCH ? at + 12 + 8 * i : at + 12 + 4 * i));
}

uint32_t bytecode_map_at(const struct bytecode_map *map, int64_t bci)
{
	return bci >= 0 && bci <= map->len ? map->at[bci] : BYTECODE_NOWHERE;
}

static bool same_text(struct class_text one, struct class_text other)
{
	return one.len == other.len && !memcmp(one.at, other.at, one.len);
}

/* Returns true for a call of a constructor, and in *ret_of its class. */
static bool calls_constructor(const struct class_file *class, const uint8_t *at, struct class_text *ret_of)
{
	struct class_text name;

	return *at == OP_INVOKESPECIAL && class_method_ref(class, class_u2_at(at + 1), ret_of, &name) &&
	       class_text_is(name, "<init>");
}

/* Each `new` has a call of its constructor, inner ones first. The call that has no `new` is super() or this(). */
static int find_call(const struct class_file *class, const uint8_t *code, uint32_t len)
{
	uint32_t made = 0;
	struct class_text of;

	for (uint32_t bci = 0, bytes; bci < len; bci += bytes) {
		bytes = bytecode_length(code, len, bci);
		if (!bytes)
			return -ENOENT;
		if (code[bci] == OP_NEW)
			made++;
		if (!calls_constructor(class, code + bci, &of))
			continue;
		if (!made)
			return same_text(of, class->this_name) || same_text(of, class->super_name) ? (int)(bci + bytes)
												   : -ENOENT;
		made--;
	}
	return -ENOENT;
}

struct crossing {
	uint32_t begin;
	bool is_crossed;
};

static void see_target(void *context, uint32_t bci, int64_t target)
{
	struct crossing *crossing = context;

	crossing->is_crossed |= (bci < crossing->begin) != (target < crossing->begin);
}

int constructor_begin(const struct class_file *class, const uint8_t *code, uint32_t len)
{
	int begin = class->super_name.len ? find_call(class, code, len) : 0;
	struct crossing crossing = {.begin = begin > 0 ? (uint32_t)begin : 0};

	for (uint32_t bci = 0; begin > 0 && bci < len; bci += bytecode_length(code, len, bci))
		bytecode_targets(code, bci, see_target, &crossing);
	return crossing.is_crossed ? -ENOENT : begin;
}

/* Returns the bytes of an instruction that is written at `new_at`: the padding of switches depends on it. */
static uint32_t new_length(const uint8_t *code, uint32_t bci, uint32_t bytes, uint32_t new_at)
{
	if (code[bci] == OP_TABLESWITCH || code[bci] == OP_LOOKUPSWITCH)
		return bytes - padding(bci) + padding(new_at);
	return bytes;
}

static int lay_out(const uint8_t *code, const struct bytecode_insertion *insertion, struct bytecode_map *map)
{
	uint32_t new_at = (uint32_t)insertion->entry.len;

	for (uint32_t bci = 0, bytes; bci < map->len; bci += bytes) {
		bytes = bytecode_length(code, map->len, bci);
		if (!bytes)
			return -EINVAL;
		map->at[bci] = new_at;
		if (bytecode_is_return(code[bci]))
			new_at += (uint32_t)insertion->exit.len;
		new_at += new_length(code, bci, bytes, new_at);
		if (new_at > BYTECODE_MAX)
			return -ERANGE;
	}
	map->at[map->len] = map->handler_at = new_at;
	map->new_len = new_at + (uint32_t)insertion->handler.len;
	return map->new_len > BYTECODE_MAX ? -ERANGE : 0;
}

int bytecode_lay_out(const uint8_t *code, uint32_t len, const struct bytecode_insertion *insertion,
		     struct bytecode_map *ret)
{
	struct bytecode_map map = {.len = len};
	int err;

	if (!len || len > BYTECODE_MAX)
		return -EINVAL;
	map.at = malloc((len + 1) * sizeof(*map.at));
	if (!map.at)
		return -ENOMEM;
	memset(map.at, 0xff, (len + 1) * sizeof(*map.at));
	err = lay_out(code, insertion, &map);
	if (err)
		free(map.at);
	else
		*ret = map;
	return err;
}

struct writing {
	const uint8_t *code;
	const struct bytecode_map *map;
	struct class_writer *to;
	size_t begin; /* of the new code in `to` */
	int error;
};

/* Returns the distance from the instruction that is written at `new_at` to a target of the one at `bci`. */
static int32_t distance(struct writing *w, uint32_t new_at, int64_t target)
{
	uint32_t at = bytecode_map_at(w->map, target);

	if (at != BYTECODE_NOWHERE && target < w->map->len)
		return (int32_t)at - (int32_t)new_at;
	w->error = -EINVAL;
	return 0;
}

static void write_short_jump(struct writing *w, uint32_t bci, uint32_t new_at)
{
	int32_t far = distance(w, new_at, (int64_t)bci + (int16_t)class_u2_at(w->code + bci + 1));

	if (far != (int16_t)far)
		w->error = -ERANGE;
	class_write_u1(w->to, w->code[bci]);
	class_write_u2(w->to, (uint16_t)far);
}

static void write_switch(struct writing *w, uint32_t bci, uint32_t new_at)
{
	static const uint8_t zeros[3];
	const uint8_t *at = w->code + bci + 1 + padding(bci);
	bool has_keys = w->code[bci] == OP_LOOKUPSWITCH;
	int64_t count = switch_count(at, w->code[bci]);

	class_write_u1(w->to, w->code[bci]);
	class_write_bytes(w->to, zeros, padding(new_at));
	class_write_u4(w->to, (uint32_t)distance(w, new_at, (int64_t)bci + s4_at(at)));
	class_write_bytes(w->to, at + 4, has_keys ? 4 : 8);
	at += has_keys ? 8 : 12;
	for (int64_t i = 0; i < count; i++, at += 4) {
		if (has_keys) {
			class_write_bytes(w->to, at, 4);
			at += 4;
		}
		class_write_u4(w->to, (uint32_t)distance(w, new_at, (int64_t)bci + s4_at(at)));
	}
}

static void write_instruction(struct writing *w, uint32_t bci, uint32_t bytes)
{
	uint32_t new_at = (uint32_t)(w->to->len - w->begin);
	uint8_t op = w->code[bci];

	if (is_short_jump(op))
		write_short_jump(w, bci, new_at);
	else if (op == OP_TABLESWITCH || op == OP_LOOKUPSWITCH)
		write_switch(w, bci, new_at);
	else
		class_write_bytes(w->to, w->code + bci, is_long_jump(op) ? 1 : bytes);
	if (is_long_jump(op))
		class_write_u4(w->to, (uint32_t)distance(w, new_at, (int64_t)bci + s4_at(w->code + bci + 1)));
}

int bytecode_write(const uint8_t *code, const struct bytecode_insertion *insertion, const struct bytecode_map *map,
		   struct class_writer *to)
{
	struct writing w = {.code = code, .map = map, .to = to, .begin = to->len};

	class_write_bytes(to, insertion->entry.bytes, insertion->entry.len);
	for (uint32_t bci = 0, bytes; bci < map->len && !w.error; bci += bytes) {
		bytes = bytecode_length(code, map->len, bci);
		if (bytecode_is_return(code[bci]))
			class_write_bytes(to, insertion->exit.bytes, insertion->exit.len);
		write_instruction(&w, bci, bytes);
	}
	class_write_bytes(to, insertion->handler.bytes, insertion->handler.len);
	return w.error;
}
