/* SPDX-License-Identifier: MIT */
/* The two forms of an annotation: for a terminal, and one HTML file. Both walk the same rows. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "writers/text/annotation.h"
#include "writers/writer.h"

#define CONTEXT_LINES 3 /* lines of source shown above and below those with samples */

struct annotation_writing {
	const struct annotation_view *view;
	bool is_html;
	FILE *out;
	struct buf text;
};

static double percent_of(const struct annotation_writing *w, const struct tree_weight *weight)
{
	double all = (double)tree_value(&w->view->annotation->all, w->view->options);

	return all ? 100 * (double)tree_value(weight, w->view->options) / all : 0;
}

/* Writes clean text as the form needs it. */
static void put_text(const struct annotation_writing *w, const char *text)
{
	BUF(html);

	if (w->is_html)
		text_add_html(&html, text);
	fputs(w->is_html ? html.data : text, w->out);
}

static void put_title(const struct annotation_writing *w, const char *text)
{
	if (!w->is_html) {
		fprintf(w->out, "%s\n", text);
		return;
	}
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
	      "'unsafe-inline'\">\n"
	      "<title>",
	      w->out);
	put_text(w, text);
	fputs("</title>\n<style>\nbody { font: 13px/18px system-ui, sans-serif; margin: 12px; }\nh1 { font-size: 15px; "
	      "}\n"
	      "h2 { font-size: 13px; }\ntable { border-collapse: collapse; font: 12px/17px ui-monospace, monospace; }\n"
	      "td, th { padding: 0 8px; text-align: right; white-space: pre; }\ntd:last-child { text-align: left; }\n"
	      "</style>\n</head>\n<body>\n<h1>",
	      w->out);
	put_text(w, text);
	fputs("</h1>\n", w->out);
}

static void begin_table(const struct annotation_writing *w, const char *heading, const char *where)
{
	fputs(w->is_html ? "<h2>" : "\n", w->out);
	put_text(w, heading);
	fprintf(w->out,
		w->is_html ? "</h2>\n<table>\n<tr><th>self</th><th>total</th><th>%s</th><th></th></tr>\n"
			   : "\n   self    total %8s\n",
		where);
}

static void end_table(const struct annotation_writing *w)
{
	if (w->is_html)
		fputs("</table>\n", w->out);
}

static void put_gap(const struct annotation_writing *w)
{
	fputs(w->is_html ? "<tr><td></td><td></td><td>…</td><td></td></tr>\n" : "              ...\n", w->out);
}

static void put_percent(char text[16], double percent)
{
	if (percent)
		snprintf(text, 16, "%.2f%%", percent);
}

/* `text` is clean. `row` NULL: a line without samples. The hotter the line, the redder. */
static void put_row(struct annotation_writing *w, const struct annotation_row *row, const char *where, const char *text)
{
	char self[16] = "", total[16] = "";
	double share = row ? percent_of(w, &row->self) : 0;

	if (row) {
		put_percent(self, share);
		put_percent(total, percent_of(w, &row->total));
	}
	if (!w->is_html) {
		fprintf(w->out, "%7s  %7s %8s%s%s\n", self, total, where, *text ? "  " : "", text);
		return;
	}
	if (share > 0)
		fprintf(w->out, "<tr style=\"background:rgba(229,72,77,%.2f)\">", share > 20 ? 0.8 : share / 25);
	else
		fputs("<tr>", w->out);
	fprintf(w->out, "<td>%s</td><td>%s</td><td>%s</td><td>", self, total, where);
	put_text(w, text);
	fputs("</td></tr>\n", w->out);
}

static const char *line_of(struct annotation_writing *w, const struct source_text *source, int32_t line)
{
	const char *begin, *end;

	buf_clear(&w->text);
	if (!source || line < 1 || (size_t)line > source->len)
		return "";
	begin = source->text.data + source->items[line - 1];
	end = strchrnul(begin, '\n');
	for (; begin < end; begin++)
		if (*begin == '\t')
			buf_add_str(&w->text, "        ");
		else if (*begin != '\r')
			buf_add_char(&w->text, *begin);
	return w->text.data;
}

static void put_line(struct annotation_writing *w, const struct source_text *source, int32_t line,
		     const struct annotation_row *row)
{
	BUF(clean);
	char where[16] = "-";

	if (line > 0)
		snprintf(where, sizeof(where), "%d", line);
	text_add_line(&clean, line_of(w, source, line));
	put_row(w, row, where, clean.data);
}

static bool is_same_file(const struct annotation_row *a, const struct annotation_row *b)
{
	return a->module == b->module && a->class_name == b->class_name && a->name == b->name;
}

/* Lines of source around those of the rows [first, end); without source only the rows. */
static void put_file(struct annotation_writing *w, const struct annotation_row *rows, size_t count,
		     const struct source_text *source)
{
	int32_t shown = 0; /* the last line that was written */

	for (size_t i = 0; i < count; i++) {
		int32_t line = rows[i].line, from = source ? line - CONTEXT_LINES : line;
		int32_t until = source ? line + CONTEXT_LINES : line;

		from = from > shown ? from : shown + 1;
		if (source && line > 0 && from > shown + 1 && shown)
			put_gap(w);
		for (int32_t at = from; line > 0 && at < line; at++)
			if (at > 0)
				put_line(w, source, at, NULL);
		put_line(w, source, line, &rows[i]);
		if (line <= 0)
			continue;
		if (i + 1 < count && rows[i + 1].line - 1 < until)
			until = rows[i + 1].line - 1;
		shown = line;
		for (int32_t at = line + 1; source && at <= until && (size_t)at <= source->len; at++, shown++)
			put_line(w, source, at, NULL);
	}
}

static void put_lines(struct annotation_writing *w)
{
	const struct annotation *a = w->view->annotation;
	size_t end;

	for (size_t first = 0; first < a->lines.len; first = end) {
		const struct annotation_row *row = &a->lines.items[first];
		const char *package = row->name ? "" : intern_text(&a->packages, row->class_name);
		const char *file = profile_text(w->view->annotation->profile, row->module);
		const struct source_text *source = NULL;
		BUF(where);

		for (end = first; end < a->lines.len && is_same_file(row, &a->lines.items[end]); end++)
			;
		if (w->view->source && !row->name)
			source = w->view->source(w->view->source_context, package, file);
		text_add_line(&where, package);
		buf_add_str(&where, *package ? "/" : "");
		text_add_line(&where, *file ? file : "(no file is known)");
		if (row->name) {
			buf_add_str(&where, ": ");
			text_add_line(&where, profile_text(w->view->annotation->profile, row->name));
		}
		begin_table(w, where.data, "line");
		put_file(w, row, end - first, source);
		end_table(w);
	}
}

static bool is_same_method(const struct annotation_row *a, const struct annotation_row *b)
{
	return a->class_name == b->class_name && a->name == b->name && a->signature == b->signature &&
	       a->module == b->module;
}

static bool has_index(const struct annotation_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].bci >= 0)
			return true;
	return false;
}

static bool is_java(const struct annotation_row *row)
{
	return row->class_name || row->signature;
}

static void put_bytecode(struct annotation_writing *w, const struct annotation_row *row)
{
	char where[16] = "-", line[32] = "";

	if (row->bci >= 0)
		snprintf(where, sizeof(where), "@%d", row->bci);
	if (row->line > 0)
		snprintf(line, sizeof(line), "line %d", row->line);
	put_row(w, row, where, line);
}

/* `row` NULL: an instruction without samples. */
static void put_instruction(struct annotation_writing *w, const struct annotation_row *row, int64_t offset,
			    const char *text)
{
	char where[24] = "-";
	BUF(clean);

	if (offset >= 0)
		snprintf(where, sizeof(where), "+0x%" PRIx64, (uint64_t)offset);
	text_add_line(&clean, text);
	put_row(w, row, where, clean.data);
}

/* True if an instruction near this one has samples. `row` is the first whose offset is not before the instruction's. */
static bool is_near(const struct code_text *code, size_t at, const struct annotation_row *row,
		    const struct annotation_row *first, const struct annotation_row *end)
{
	size_t from = at > CONTEXT_LINES ? at - CONTEXT_LINES : 0;
	size_t until = at + CONTEXT_LINES < code->len ? at + CONTEXT_LINES : code->len - 1;

	if (row < end && (int64_t)row->bci <= (int64_t)code->items[until].offset)
		return true;
	return row > first && (int64_t)row[-1].bci >= (int64_t)code->items[from].offset;
}

/* The instructions with samples, and those around them. The rows are sorted by offset. */
static void put_instructions(struct annotation_writing *w, const struct annotation_row *row,
			     const struct annotation_row *end, const struct code_text *code)
{
	const struct annotation_row *first = row;
	bool is_shown = true;

	for (; row < end && row->bci < 0; row++)
		put_instruction(w, row, -1, "");
	for (size_t i = 0; i < code->len; i++) {
		const struct code_line *line = &code->items[i];
		const char *text = code->text.data + line->text_at;
		bool is_hit = row < end && row->bci == (int64_t)line->offset, was_shown = is_shown;

		is_shown = is_hit || is_near(code, i, row, first, end);
		if (is_shown && !was_shown)
			put_gap(w);
		if (is_shown)
			put_instruction(w, is_hit ? row : NULL, line->offset, text);
		row += is_hit;
	}
	for (; row < end; row++) /* behind the code that was read */
		put_instruction(w, row, row->bci, "");
}

static void put_native(struct annotation_writing *w, const struct annotation_row *row, const struct annotation_row *end)
{
	const struct annotation *a = w->view->annotation;
	const struct code_text *code = NULL;

	if (a->code)
		code = a->code(a->code_context, profile_text(w->view->annotation->profile, row->module),
			       profile_text(w->view->annotation->profile, row->name));
	if (code)
		return put_instructions(w, row, end, code);
	for (; row < end; row++)
		put_instruction(w, row, row->bci, "");
}

static void put_code_heading(struct annotation_writing *w, const struct annotation_row *row)
{
	BUF(name);

	text_add_line(&name, profile_text(w->view->annotation->profile, is_java(row) ? row->class_name : row->module));
	buf_add_str(&name, is_java(row) ? "." : ": ");
	text_add_line(&name, profile_text(w->view->annotation->profile, row->name));
	text_add_line(&name, profile_text(w->view->annotation->profile, row->signature));
	begin_table(w, name.data, is_java(row) ? "bytecode" : "code");
}

static void put_codes(struct annotation_writing *w)
{
	const struct annotation_rows *codes = &w->view->annotation->codes;
	size_t end;

	for (size_t first = 0; first < codes->len; first = end) {
		const struct annotation_row *row = &codes->items[first];

		for (end = first; end < codes->len && is_same_method(row, &codes->items[end]); end++)
			;
		if (!has_index(row, end - first))
			continue;
		put_code_heading(w, row);
		for (size_t i = first; is_java(row) && i < end; i++)
			put_bytecode(w, &codes->items[i]);
		if (!is_java(row))
			put_native(w, row, &codes->items[end]);
		end_table(w);
	}
}

static int put_all(const struct annotation_view *view, bool is_html, FILE *out)
{
	struct annotation_writing w = {.view = view, .is_html = is_html, .out = out};
	const struct annotation *a = view->annotation;
	const char *event = writer_event(a->profile, view->options);
	BUF(title);

	buf_init(&w.text);
	text_add_line(&title, a->target);
	buf_printf(&title, ": %.2f%% of %" PRIu64 " %s", percent_of(&w, &a->total), tree_value(&a->all, view->options),
		   view->options->total ? writer_unit(a->profile, view->options) : "samples");
	if (strcmp(event, "samples") != 0) { /* the file says what was sampled */
		buf_add_str(&title, " of ");
		text_add_line(&title, event);
	}
	buf_printf(&title, " pass through it, %.2f%% end in it", percent_of(&w, &a->self));
	put_title(&w, title.data);
	put_lines(&w);
	put_codes(&w);
	if (is_html)
		fputs("</body>\n</html>\n", out);
	buf_release(&w.text);
	return writer_finish(out);
}

int annotation_write_text(const struct annotation_view *view, FILE *out)
{
	return put_all(view, false, out);
}

int annotation_write_html(const struct annotation_view *view, FILE *out)
{
	return put_all(view, true, out);
}
