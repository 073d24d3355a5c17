/* SPDX-License-Identifier: MIT */
#include "sym/symbol_table.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MAX_ROWS (SYMBOL_TABLE_MAX_TEXT / 2) /* with a name of one letter each */
#define MAX_SIZE 0x1fffffffu
#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define MAX_NESTING 16 /* symbols that start inside another one, as in hand-written assembly */

size_t symbol_table_bytes(const struct symbol_table *table)
{
	return table->rows.size * sizeof(*table->rows.items) + table->text.size;
}

void symbol_table_release(struct symbol_table *table)
{
	if (!table)
		return;
	vec_release(&table->rows);
	buf_release(&table->text);
}

int symbol_table_add(struct symbol_table *table, uint64_t start, uint64_t size, uint64_t limit,
		     enum symbol_linkage linkage, const char *name, size_t len)
{
	uint64_t bytes = size ? size : limit;
	struct symbol_row row = {
		.start = start,
		.name = (uint32_t)table->text.len,
		.size = bytes < MAX_SIZE ? (uint32_t)bytes : MAX_SIZE,
		.linkage = linkage,
		.is_open = !size,
	};

	if (len > SYMBOL_TABLE_MAX_NAME)
		len = SYMBOL_TABLE_MAX_NAME;
	if (table->text.len + len + 1 > SYMBOL_TABLE_MAX_TEXT)
		return -EFBIG;
	buf_add(&table->text, name, len);
	buf_add_char(&table->text, '\0');
	return table->text.failed ? -ENOMEM : vec_push(&table->rows, row);
}

int symbol_table_add_all(struct symbol_table *table, const struct symbol_table *other)
{
	int err = 0;

	for (size_t i = 0; !err && i < other->rows.len; i++) {
		const struct symbol_row *row = &other->rows.items[i];
		const char *name = other->text.data + row->name;

		err = symbol_table_add(table, row->start, row->is_open ? 0 : row->size, row->size, row->linkage, name,
				       strlen(name));
	}
	return err;
}

/* Sorts by one digit of the start, from `rows` to `to`. Rows with equal digits stay in their order. */
static void sort_by_digit(const struct symbol_row *rows, struct symbol_row *to, size_t count, unsigned int shift,
			  size_t *ends)
{
	size_t end = 0;

	for (size_t digit = 0; digit < DIGITS; digit++)
		end = ends[digit] += end;
	for (size_t i = count; i-- > 0;)
		to[--ends[rows[i].start >> shift & (DIGITS - 1)]] = rows[i];
}

/*
 * Sorts by start. Rows with equal starts stay in the order in which they were added. The time is proportional to the
 * number of rows: a file can have millions, and a hostile one in any order. -ENOMEM: nothing was changed.
 */
static int sort_rows(struct symbol_row *rows, size_t count)
{
	struct symbol_row *from = rows, *to = malloc(count * sizeof(*rows)), *other = to;
	int err = to ? 0 : -ENOMEM;

	for (unsigned int shift = 0; !err && shift < 64; shift += DIGIT_BITS) {
		size_t counts[DIGITS] = {0};

		for (size_t i = 0; i < count; i++)
			counts[from[i].start >> shift & (DIGITS - 1)]++;
		if (counts[from[0].start >> shift & (DIGITS - 1)] == count)
			continue;
		sort_by_digit(from, to, count, shift, counts);
		other = from;
		from = to;
		to = other;
	}
	if (!err && from != rows)
		memcpy(rows, from, count * sizeof(*rows));
	free(from == rows ? to : from);
	return err;
}

/* True for names like foo_alias_2. */
static bool is_numbered_alias(const char *name)
{
	static const char mark[] = "_alias_";
	size_t len = strlen(name), digits = 0;

	while (digits < len && isdigit((unsigned char)name[len - digits - 1]))
		digits++;
	return digits && len - digits >= strlen(mark) &&
	       !strncmp(name + len - digits - strlen(mark), mark, strlen(mark));
}

/* True for names that a compiler makes from another function, or a macro for use in its own file. */
static bool is_decorated(const char *name)
{
	static const char *const parts[] = {".cold",	  ".part.",	".isra.", ".constprop.",
					    ".localalias", ".lto_priv.", ".llvm."};

	if (text_begins_with(name, "__GI_ __EI_ __pi_ __pfx_ __cfi_"))
		return true;
	for (size_t i = 0; strchr(name, '.') && i < sizeof(parts) / sizeof(*parts); i++)
		if (strstr(name, parts[i]))
			return true;
	return is_numbered_alias(name);
}

/* If one name has two sizes, the larger size is preferred, so that the order of adding does not matter. */
static bool is_more_usual(const struct symbol_table *table, const struct symbol_row *a, const struct symbol_row *b)
{
	const char *name_a = table->text.data + a->name, *name_b = table->text.data + b->name;
	uint32_t callers_a = a->linkage == SYMBOL_WEAK ? SYMBOL_GLOBAL : a->linkage;
	uint32_t callers_b = b->linkage == SYMBOL_WEAK ? SYMBOL_GLOBAL : b->linkage;
	size_t underscores_a = strspn(name_a, "_"), underscores_b = strspn(name_b, "_");
	size_t len_a = strlen(name_a), len_b = strlen(name_b);
	int order = strcmp(name_a, name_b);

	if (a->is_open != b->is_open)
		return b->is_open;
	if (is_decorated(name_a) != is_decorated(name_b))
		return is_decorated(name_b);
	if (callers_a != callers_b)
		return callers_a > callers_b;
	if (underscores_a != underscores_b)
		return underscores_a < underscores_b;
	if (a->linkage != b->linkage)
		return a->linkage > b->linkage;
	if (len_a != len_b)
		return len_a < len_b;
	return order < 0 || (!order && a->size > b->size);
}

void symbol_table_sort(struct symbol_table *table, enum symbol_choice choice)
{
	struct symbol_row *rows = table->rows.items;
	size_t kept = 0;

	if (table->rows.len && sort_rows(rows, table->rows.len) < 0)
		vec_clear(&table->rows);
	if (!table->rows.len)
		return;
	for (size_t i = 1; i < table->rows.len; i++) {
		if (rows[i].start != rows[kept].start)
			rows[++kept] = rows[i];
		else if (choice == SYMBOL_NEWEST || is_more_usual(table, &rows[i], &rows[kept]))
			rows[kept] = rows[i];
	}
	table->rows.len = kept + 1;
	vec_shrink(&table->rows);
	buf_shrink(&table->text);
	rows = table->rows.items;
	for (size_t i = 0; i < kept; i++)
		if (rows[i].is_open && rows[i].size > rows[i + 1].start - rows[i].start)
			rows[i].size = (uint32_t)(rows[i + 1].start - rows[i].start) & MAX_SIZE;
}

const char *symbol_table_find(const struct symbol_table *table, uint64_t address, uint64_t *ret_start)
{
	const struct symbol_row *rows = table->rows.items;
	size_t count = vec_up_to(&table->rows, address);

	for (size_t i = count; i > 0 && count - i < MAX_NESTING; i--) {
		if (address - rows[i - 1].start >= rows[i - 1].size)
			continue;
		if (ret_start)
			*ret_start = rows[i - 1].start;
		return table->text.data + rows[i - 1].name;
	}
	return NULL;
}

void symbol_table_pack(struct buf *buf, const struct symbol_table *table)
{
	parts_add_vec(buf, &table->rows);
	parts_add(buf, table->text.data, table->text.len);
}

void symbol_table_unpack(struct parts *parts, struct symbol_table *ret)
{
	bool ends;

	parts_read_vec(parts, &ret->rows, MAX_ROWS);
	parts_read_text(parts, &ret->text, SYMBOL_TABLE_MAX_TEXT);
	ends = ret->text.len && !ret->text.data[ret->text.len - 1];
	for (size_t i = 0; !parts->err && i < ret->rows.len; i++)
		if (!ends || ret->rows.items[i].name >= ret->text.len)
			parts->err = -EBADMSG;
}
