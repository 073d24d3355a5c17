/* SPDX-License-Identifier: MIT */
/*
 * hostile_recordings FORMAT SEED FILE: writes a recording in a format that duet reads, from the seed. It is formed as
 * the format wants it, but its sizes are hostile: many rows, long texts that many rows refer to, tables that are all
 * alike, deep and wide stacks, weights and times at the edges. Prints what it has made in one line.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/varint.h"
#include "hostile_jfr.h"
#include "hostile_rows.h"

/* ---- .duet ---- */

static void deflate_to(struct buf *to, const struct buf *from)
{
	uLongf len = compressBound(from->len);

	buf_reserve(to, len);
	compress2((Bytef *)to->data + to->len, &len, (const Bytef *)from->data, from->len, 6);
	to->len += len;
}

static void add_section(struct buf *body, unsigned int type, const struct buf *rows, size_t row_bytes)
{
	struct buf columns = BUF_NONE, packed = BUF_NONE;
	size_t count = row_bytes ? rows->len / row_bytes : 0;

	for (size_t column = 0; column < row_bytes; column++)
		for (size_t i = 0; i < count; i++)
			buf_add_char(&columns, rows->data[i * row_bytes + column]);
	deflate_to(&packed, row_bytes ? &columns : rows);
	add_number(body, type | 1u << 16, 4);
	add_number(body, row_bytes, 4);
	add_number(body, rows->len, 4);
	add_number(body, packed.len, 4);
	buf_add(body, packed.data, packed.len);
	buf_release(&columns);
	buf_release(&packed);
}

static void add_chunk(struct buf *file, const struct buf *body, unsigned int sections, bool is_last)
{
	struct buf head = BUF_NONE;

	add_number(&head, 0x6b6e6863, 4);
	add_number(&head, 0, 4);
	add_number(&head, is_last, 4);
	add_number(&head, sections, 4);
	add_number(&head, body->len, 8);
	add_number(&head, crc32(0, (const Bytef *)body->data, (uInt)body->len), 4);
	add_number(&head, crc32(0, (const Bytef *)head.data, (uInt)head.len), 4);
	buf_add(file, head.data, head.len);
	buf_add(file, body->data, body->len);
	buf_release(&head);
}

static void add_rows(struct buf *body, unsigned int type, size_t count, size_t row_bytes, size_t texts,
		     const char *fields, const struct counts *n)
{
	struct buf rows = BUF_NONE;

	if (count > ((size_t)24 << 20) / row_bytes)
		count = ((size_t)24 << 20) / row_bytes;
	for (size_t i = 0; i < count; i++)
		for (const char *field = fields; *field; field++)
			switch (*field) {
			case 't':
				add_number(&rows, 1 + reference(i * 7 + (size_t)(field - fields), texts), 4);
				break;
			case 'k':
				add_number(&rows, draw(17), 4);
				break;
			case 'e':
			case 'E':
				add_number(&rows, edge(), *field == 'e' ? 4 : 8);
				break;
			case 'n':
				add_number(&rows, draw(1ull << 20), 8);
				break;
			case '1':
				add_number(&rows, 1, 4);
				break;
			case 's':
				add_number(&rows, i * 1000000, 8);
				break;
			case 'u':
				add_number(&rows,
					   reference_form == 0	 ? 1
					   : reference_form == 1 ? i + 1
								 : 1 + draw(i + 1),
					   4);
				break;
			case 'f':
				add_number(&rows, reference(i, n->frames), 4);
				break;
			case 'o':
				add_number(&rows, reference(i, n->owners), 4);
				break;
			case 'T':
				add_number(&rows, reference(i, n->threads), 4);
				break;
			case 'N':
				add_number(&rows, n->nodes - reference(i, n->nodes), 4);
				break;
			case 'v':
				add_number(&rows, reference(i, n->events), 4);
				break;
			default:
				add_number(&rows, 0, 4);
			}
	add_section(body, type, &rows, row_bytes);
	buf_release(&rows);
}

static void make_duet(struct buf *file)
{
	size_t chunks = one_in(3) ? pick("chunks", 20) : 1;
	struct counts n = draw_counts();
	struct buf texts = BUF_NONE, body = BUF_NONE;

	buf_add(file,
		"\x89"
		"duet\r\n\x1a\1\0\0\0\x10\0\0\0",
		16);
	for (size_t i = 0; i < n.texts && texts.len < 30u << 20; i++) {
		struct buf text = BUF_NONE;

		add_text(&text, i);
		add_number(&texts, text.len, 4);
		buf_add(&texts, text.data, text.len);
		buf_release(&text);
	}
	add_section(&body, 1, &texts, 0);
	add_rows(&body, 2, 1, 24, 0, "EE00", &n);
	add_rows(&body, 4, n.events, 16, n.texts, "t1E", &n);
	add_rows(&body, 5, n.frames, 28, n.texts, "kttttee", &n);
	add_rows(&body, 6, n.owners, 72, n.texts, "Eeetttttttttttttt", &n);
	add_rows(&body, 7, n.threads, 32, n.texts, one_in(4) ? "eettoes0" : "eetto0s0", &n);
	add_rows(&body, 8, n.nodes, 8, 0, "uf", &n);
	add_rows(&body, 9, n.samples, 64, 0, one_in(2) ? "sETN1vEEEE" : "EsTNevEEEE", &n);
	add_rows(&body, 10, n.losses, 12, n.texts, "Et", &n);
	add_rows(&body, 11, n.facts, 8, n.texts, "tt", &n);
	add_rows(&body, 12, n.notes, 56, n.texts, "sEEEE0ett", &n);
	add_rows(&body, 13, n.usages, 140, n.texts, "sEEEEEEEEEEEEEEeeeeett", &n);
	for (size_t i = 0; i < chunks; i++)
		add_chunk(file, &body, 12, i + 1 == chunks);
	buf_release(&body);
	buf_release(&texts);
}

/* ---- pprof and OTLP ---- */

static void put_number(struct buf *to, unsigned int field, uint64_t number)
{
	varint_add(to, field << 3);
	varint_add(to, number);
}

static void put_bytes(struct buf *to, unsigned int field, const struct buf *bytes)
{
	varint_add(to, field << 3 | 2);
	varint_add(to, bytes->len);
	buf_add(to, bytes->data, bytes->len);
}

static void put_text(struct buf *to, unsigned int field, const char *text)
{
	struct buf bytes = BUF_NONE;

	buf_add_str(&bytes, text);
	put_bytes(to, field, &bytes);
	buf_release(&bytes);
}

/* Adds a message of these numbers, and empties it. */
static void put_message(struct buf *to, unsigned int field, struct buf *message)
{
	put_bytes(to, field, message);
	buf_clear(message);
}

static void make_pprof(struct buf *file)
{
	static const char *const keys[] = {"",	      "samples", "count", "cpu",       "nanoseconds",	 "thread",
					   "process", "pid",	 "tid",	  "container", "virtual_thread", "seconds"};
	struct counts n = draw_few();
	size_t depth = pick("depth", one_in(3) ? 5000 : 30), labels = draw(6), named = sizeof(keys) / sizeof(*keys);
	uint64_t weight = one_in(2) ? edge() : draw(100);
	struct buf m = BUF_NONE, inner = BUF_NONE;

	for (size_t i = 0; i < named; i++)
		put_text(file, 6, keys[i]);
	for (size_t i = 0; i < n.texts && file->len < 8u << 20; i++) {
		add_text(&m, i);
		put_message(file, 6, &m);
	}
	n.texts += named;
	for (int i = 0; i < 2; i++) {
		put_number(&m, 1, i ? 3 : 1);
		put_number(&m, 2, i ? one_in(3) ? 11 : 4 : 2);
		put_message(file, 1, &m);
	}
	for (size_t i = 0; i < n.frames; i++) {
		put_number(&m, 1, i + 1);
		put_number(&m, 5, reference(i, n.texts));
		put_message(file, 3, &m);
		put_number(&m, 1, i + 1);
		put_number(&m, 2, reference(i, n.texts));
		put_number(&m, 4, reference(i * 3, n.texts));
		put_message(file, 5, &m);
		put_number(&inner, 1, 1 + reference(i, n.frames));
		put_number(&inner, 2, edge());
		put_number(&m, 1, i + 1);
		put_number(&m, 2, 1 + reference(i, n.frames));
		put_number(&m, 3, edge());
		if (!one_in(3))
			put_message(&m, 4, &inner);
		buf_clear(&inner);
		put_message(file, 4, &m);
	}
	for (size_t i = 0; i < n.samples && file->len < 12u << 20; i++) {
		for (size_t j = 0, most = 1 + draw(depth); j < most; j++)
			put_number(&m, 1, 1 + reference(i + j, n.frames));
		put_number(&m, 2, 1 + draw(3));
		put_number(&m, 2, weight);
		for (size_t j = 0; j < labels; j++) {
			put_number(&inner, 1, 5 + draw(6));
			put_number(&inner, 2, reference(i + j, n.texts));
			put_number(&inner, 3, draw(1000));
			put_message(&m, 3, &inner);
		}
		put_message(file, 2, &m);
	}
	for (size_t i = 0; i < n.facts; i++)
		put_number(file, 13, reference(i, n.texts));
	put_number(file, 9, edge());
	put_number(file, 10, edge());
	put_number(file, 12, edge());
	buf_release(&m);
	buf_release(&inner);
}

#define OTLP_ATTRIBUTES 2000

/* Strings, locations and functions. */
static void put_otlp_names(struct buf *tables, const struct counts *n)
{
	static const char *const keys[] = {"",
					   "thread.name",
					   "thread.id",
					   "process.executable.name",
					   "process.pid",
					   "profile.frame.type",
					   "duet.samples",
					   "cpu",
					   "nanoseconds"};
	struct buf m = BUF_NONE, inner = BUF_NONE;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		put_text(tables, 5, keys[i]);
	for (size_t i = 0; i < n->texts && tables->len < 4u << 20; i++) {
		add_text(&m, i);
		put_message(tables, 5, &m);
	}
	for (size_t i = 0; i < n->frames; i++) {
		put_number(&m, 4, reference(i, n->texts));
		put_message(tables, 1, &m);
		put_number(&m, 1, reference(i, n->texts));
		put_number(&m, 3, reference(i * 3, n->texts));
		put_message(tables, 3, &m);
		put_number(&inner, 1, reference(i, n->frames));
		put_number(&m, 1, reference(i, n->frames));
		put_number(&m, 2, edge());
		put_message(&m, 3, &inner);
		put_message(tables, 2, &m);
	}
	buf_release(&m);
	buf_release(&inner);
}

static void put_otlp_attributes(struct buf *tables)
{
	struct buf m = BUF_NONE, inner = BUF_NONE;

	for (size_t i = 0; i < OTLP_ATTRIBUTES; i++) {
		add_text(&m, i);
		put_message(&inner, 1, &m);
		if (one_in(2)) {
			buf_clear(&inner);
			put_number(&inner, 3, edge());
		}
		put_number(&m, 1, 1 + draw(6));
		put_message(&m, 2, &inner);
		put_message(tables, 6, &m);
	}
	buf_release(&m);
	buf_release(&inner);
}

static void put_otlp_stacks(struct buf *tables, const struct counts *n, size_t depth)
{
	struct buf m = BUF_NONE;

	for (size_t i = 0; i < n->nodes && tables->len < 8u << 20; i++) {
		for (size_t j = 0, most = 1 + draw(depth); j < most; j++)
			put_number(&m, 1, reference(i + j, n->frames));
		put_message(tables, 7, &m);
	}
	buf_release(&m);
}

static void put_otlp_resource(struct buf *file, const struct counts *n, size_t number, size_t samples)
{
	struct buf m = BUF_NONE, profile = BUF_NONE, scope = BUF_NONE, resource = BUF_NONE;

	put_number(&m, 1, one_in(2) ? 7 : reference(number, n->texts));
	put_number(&m, 2, 8);
	put_message(&profile, 1, &m);
	for (size_t i = 0; i < samples && file->len + profile.len < 12u << 20; i++) {
		put_number(&m, 1, reference(i, n->nodes));
		for (size_t k = draw(6); k; k--)
			put_number(&m, 2, reference(i + k, OTLP_ATTRIBUTES));
		put_number(&m, 4, one_in(20) ? edge() : draw(1000));
		put_message(&profile, 2, &m);
	}
	put_message(&scope, 2, &profile);
	put_message(&resource, 2, &scope);
	put_message(file, 1, &resource);
	buf_release(&m);
	buf_release(&profile);
	buf_release(&scope);
	buf_release(&resource);
}

static void make_otlp(struct buf *file)
{
	struct counts n = draw_few();
	size_t depth = pick("depth", one_in(3) ? 5000 : 30);
	size_t resources = one_in(3) ? pick("resources", 20000) : 1 + draw(3);
	struct buf tables = BUF_NONE;

	put_otlp_names(&tables, &n);
	put_otlp_attributes(&tables);
	put_otlp_stacks(&tables, &n, depth);
	put_message(file, 2, &tables);
	for (size_t i = 0; i < resources; i++)
		put_otlp_resource(file, &n, i, n.samples / resources + 1);
	buf_release(&tables);
}

static void add_quoted(struct buf *to, size_t number)
{
	size_t start = to->len;

	buf_add_char(to, '"');
	add_text(to, number);
	for (size_t i = start + 1; i < to->len; i++)
		if ((unsigned char)to->data[i] < ' ' || to->data[i] == '"' || to->data[i] == '\\')
			to->data[i] = '_';
	buf_add_char(to, '"');
}

/* Lists of empty objects, of tables and of values, as long as they can be. */
static void make_otlp_json(struct buf *file)
{
	static const char *const lists[] = {"mappingTable", "locationTable",  "functionTable",
					    "stackTable",   "attributeTable", "linkTable"};
	struct counts n = draw_few();
	size_t rows = pick("rows", 3000000);

	buf_add_str(file, "{\"resourceProfiles\":[");
	for (size_t i = one_in(2) ? rows : 1; i; i--)
		buf_add_str(file, i == 1 ? "{}" : "{},");
	buf_printf(file, "],\"dictionary\":{\"%s\":[", lists[draw(6)]);
	for (size_t i = one_in(2) ? rows : 1; i; i--)
		buf_add_str(file, i == 1 ? "{}" : "{},");
	buf_add_str(file, "],\"stringTable\":[\"\"");
	for (size_t i = 0; i < n.texts && file->len < 16u << 20; i++) {
		buf_add_char(file, ',');
		add_quoted(file, i);
	}
	buf_add_str(file, "]}}");
}

/* ---- texts ---- */

static void make_collapsed(struct buf *file)
{
	size_t lines = pick("lines", 100000), depth = pick("depth", one_in(3) ? 60000 : 30);
	struct counts n = draw_few();
	bool is_chain = one_in(3);

	for (size_t i = 0; i < lines && file->len < 12u << 20; i++) {
		for (size_t j = 0, most = is_chain ? i + 1 : 1 + draw(depth); j < most && j < 65000; j++) {
			add_text(file, reference(i + j, n.texts));
			if (j + 1 < most)
				buf_add_char(file, ';');
		}
		for (size_t at = file->len; at-- && file->data[at] != '\n';)
			if (!file->data[at] || file->data[at] == '\1')
				file->data[at] = '_';
		if (one_in(20))
			buf_printf(file, " %llu\n", (unsigned long long)(edge() & ((1ull << 40) - 1)));
		else
			buf_printf(file, " %s\n", one_in(9) ? "0.0000000000001" : one_in(9) ? "1e3" : "7");
	}
}

static void make_perf(struct buf *file)
{
	size_t samples = pick("samples", 100000), depth = pick("depth", one_in(3) ? 20000 : 30);
	struct counts n = draw_few();
	bool has_lines = one_in(3), has_counts = one_in(3);

	for (size_t i = 0; i < samples && file->len < 12u << 20; i++) {
		if (has_counts)
			buf_printf(file, "# count: %llu\n", (unsigned long long)(edge() & UINT32_MAX));
		buf_printf(file, "java %zu/%zu %llu.%09zu: %10llu ev%zu:\n", reference(i, n.owners),
			   reference(i, n.threads), (unsigned long long)(one_in(9) ? edge() % 10000000000 : 5), i,
			   (unsigned long long)(one_in(9) ? edge() >> 12 : 1), reference(i, n.events) % 2000);
		for (size_t j = 0, most = 1 + draw(depth); j < most && file->len < 12u << 20; j++) {
			size_t start = file->len;

			buf_add_str(file, "\t               0 ");
			add_text(file, reference(i + j, n.texts));
			for (size_t at = start + 1; at < file->len; at++)
				if ((unsigned char)file->data[at] < ' ')
					file->data[at] = '_';
			buf_printf(file, " (%s)\n", one_in(3) ? "[kernel.kallsyms]" : "/lib/libc.so.6");
			if (has_lines)
				buf_printf(file, "  a.c:%llu\n", (unsigned long long)draw(1u << 30));
		}
		buf_add_char(file, '\n');
	}
}

/* ---- pages ---- */

static void add_column(struct buf *file, const char *name, size_t count, unsigned int form, size_t rows)
{
	buf_printf(file, ",\"%s\":[", name);
	for (size_t i = 0; i < count; i++)
		buf_printf(file, "%s%llu", i ? "," : "",
			   (unsigned long long)(form == 0   ? 1
						: form == 1 ? reference(i, rows)
							    : count - i + 5));
	buf_add_char(file, ']');
}

/* duet's own: a chain, or leaves of one root. Labels share their beginnings. */
static void make_page(struct buf *file)
{
	size_t rows = pick("rows", one_in(2) ? 60000 : 300000), labels = pick("labels", 300000);
	bool is_chain = one_in(2);
	struct counts n = draw_few();
	const char *sample = one_in(2) ? "true" : "false";

	if (is_chain && rows > 65000)
		rows = 65000;
	buf_printf(
		file,
		"<!DOCTYPE html>\n<script type=\"application/json\" "
		"id=\"profiles\">[{\"event\":\"cpu\",\"unit\":\"ns\","
		"\"samples\":%zu,\"amount\":%llu,\"period\":%llu,\"start\":%llu,\"reverse\":%s,\"kinds\":[\"native\","
		"\"compiled\",\"thread\"],\"facts\":[",
		rows + 10, (unsigned long long)(edge() & INT64_MAX), (unsigned long long)(edge() >> 8),
		(unsigned long long)draw(1ull << 40), sample);
	for (size_t i = 0; i < n.facts; i++)
		buf_printf(file, "%s[\"k%zu\",\"v\"]", i ? "," : "", i);
	buf_add_str(file, "],\"labels\":[0");
	for (size_t i = 0; i < labels; i++) {
		buf_add_char(file, ',');
		if (i)
			buf_printf(file, "%zu,\"%zu\"", text_len / 2, i);
		else
			add_quoted(file, i);
	}
	buf_add_str(file, "],\"modules\":[\"libc.so\"]");
	add_column(file, "depth", rows, 0, 0);
	for (size_t at = file->len; !is_chain && rows > 1 && at--;)
		if (file->data[at] == '[') {
			for (size_t i = at + 3; i < file->len; i += 2)
				file->data[i] = '0';
			break;
		}
	add_column(file, "label", rows, 1, labels);
	if (is_chain)
		add_column(file, "width", rows, 2, 0);
	else
		add_column(file, "width", rows, 0, 0);
	buf_add_str(file, ",\"kind\":\"");
	for (size_t i = 0; i < rows; i++)
		buf_add_char(file, (char)('a' + reference(i, 3)));
	buf_add_char(file, '"');
	if (one_in(2)) {
		size_t samples = pick("samples", 300000);

		add_column(file, "times", samples, 0, 0);
		add_column(file, "leaves", samples, 1, 2 * rows);
		buf_printf(file, ",\"threads\":[\"java 1/2 main\",%zu]", samples);
	}
	buf_add_str(file, "}]</script>");
}

static void make_async_page(struct buf *file)
{
	size_t rows = pick("rows", 300000), names = pick("names", 100000);
	bool is_chain = one_in(2);

	buf_add_str(file, "<!DOCTYPE html>\nconst cpool = [\n'all',\n'");
	if (is_chain && rows > 65000)
		rows = 65000;
	buf_add_char(file, ' ');
	for (size_t i = 0; i < text_len; i++)
		buf_add_char(file, 'A');
	buf_add_str(file, "'");
	for (size_t i = 0; i < names; i++)
		buf_printf(file, ",\n'%c%zu'", text_len > 94 ? '~' : ' ', i);
	buf_printf(file, "\n];\n\nf(3,0,0,%zu)\n", rows + 1);
	for (size_t i = 0; i < rows; i++)
		if (is_chain || !i)
			buf_printf(file, "u(%llu)\n", (unsigned long long)(8 * (1 + reference(i, names)) + draw(6)));
		else
			buf_printf(file, "n(%llu,1)\n", (unsigned long long)(8 * (1 + reference(i, names)) + draw(6)));
	buf_add_str(file, "\n</script>\n");
}

static const struct {
	const char *name;
	void (*make)(struct buf *file);
	bool is_packed; /* it is compressed already */
} formats[] = {{"duet", make_duet, true},  {"jfr", make_jfr, false},	    {"pprof", make_pprof, false},
	       {"otlp", make_otlp, false}, {"json", make_otlp_json, false}, {"collapsed", make_collapsed, false},
	       {"perf", make_perf, false}, {"page", make_page, false},	    {"async", make_async_page, false}};

static int write_file(const char *path, const struct buf *file, bool is_packed)
{
	gzFile out = gzopen(path, is_packed ? "wb6" : "wbT");
	int written = out ? gzwrite(out, file->data, (unsigned int)file->len) : 0;

	return out && gzclose(out) == Z_OK && written == (int)file->len ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct buf file = BUF_NONE;
	int err = 2;

	if (argc != 4)
		return 2;
	seed = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15ull + 1;
	for (const char *letter = argv[1]; *letter; letter++)
		seed = (seed ^ (unsigned char)*letter) * 0xff51afd7ed558ccdull | 1;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(argv[1], formats[i].name)) {
			bool is_packed = !formats[i].is_packed && one_in(3);

			choose_texts();
			formats[i].make(&file);
			buf_printf(&about, "%s", is_packed ? " gzip" : "");
			err = write_file(argv[3], &file, is_packed);
		}
	printf("%s%s\n", argv[1], about.data);
	buf_release(&file);
	buf_release(&about);
	return err;
}
