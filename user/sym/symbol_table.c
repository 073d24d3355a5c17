/* SPDX-License-Identifier: MIT */
#include "sym/symbol_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE 0x7fffffffu
#define MAX_NESTING 16 /* symbols that start inside another one, as hand-written assembly has them */

void symbol_table_init(struct symbol_table *table)
{
	*table = (struct symbol_table){0};
	buf_init(&table->text);
}

void symbol_table_release(struct symbol_table *table)
{
	if (!table)
		return;
	vec_release(&table->rows);
	buf_release(&table->text);
}

int symbol_table_add(struct symbol_table *table, uint64_t start, uint64_t size, uint64_t limit, const char *name,
		     size_t len)
{
	uint64_t bytes = size ? size : limit;
	struct symbol_row row = {
		.start = start,
		.name = (uint32_t)table->text.len,
		.size = bytes < MAX_SIZE ? (uint32_t)bytes : MAX_SIZE,
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

		err = symbol_table_add(table, row->start, row->is_open ? 0 : row->size, row->size, name, strlen(name));
	}
	return err;
}

/* In the order of adding among equals, which makes qsort() stable. */
static int compare_rows(const void *a, const void *b)
{
	const struct symbol_row *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static bool is_plainer(const struct symbol_table *table, const struct symbol_row *a, const struct symbol_row *b)
{
	if (a->is_open != b->is_open)
		return !a->is_open;
	return strspn(table->text.data + a->name, "_") < strspn(table->text.data + b->name, "_");
}

void symbol_table_sort(struct symbol_table *table, enum symbol_choice choice)
{
	struct symbol_row *rows = table->rows.items;
	size_t kept = 0;

	if (!table->rows.len)
		return;
	qsort(rows, table->rows.len, sizeof(*rows), compare_rows);
	for (size_t i = 1; i < table->rows.len; i++) {
		if (rows[i].start != rows[kept].start)
			rows[++kept] = rows[i];
		else if (choice == SYMBOL_NEWEST || is_plainer(table, &rows[i], &rows[kept]))
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

const char *symbol_table_find(const struct symbol_table *table, uint64_t address)
{
	const struct symbol_row *rows = table->rows.items;
	size_t low = 0, high = table->rows.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* rows[low - 1] is the last that starts at or before the address. */
	for (size_t i = low; i > 0 && low - i < MAX_NESTING; i--)
		if (address - rows[i - 1].start < rows[i - 1].size)
			return table->text.data + rows[i - 1].name;
	return NULL;
}
