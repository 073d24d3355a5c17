/* SPDX-License-Identifier: MIT */
/* Walks into a file, as tests/fixtures/walk/README.md describes it. */
#pragma once

#include "corpus/shot.h"

static void write_layout(void)
{
	if (!memcmp(&capture.written_layout, &shot->walk.java.layout, sizeof(shot->walk.java.layout)))
		return;
	capture.written_layout = shot->walk.java.layout;
	for (size_t i = 0; i < CORPUS_FIELD_COUNT; i++) {
		const struct corpus_field *field = &corpus_fields[i];

		fprintf(capture.file, "layout %s", field->name);
		for (uint32_t k = 0; k < field->count; k++) {
			uint64_t value = 0;

			memcpy(&value, corpus_field_at(&capture.written_layout, field, k), field->width);
			fprintf(capture.file, " %llx", (unsigned long long)value);
		}
		fputc('\n', capture.file);
	}
}

static bool is_written(const struct walk_native *code)
{
	for (size_t i = 0; i < capture.written_natives.len; i++)
		if (capture.written_natives.items[i].pc == code->pc)
			return true;
	return false;
}

static void write_natives(void)
{
	for (size_t i = 0; i < shot->natives.len; i++) {
		const struct walk_native *code = &shot->natives.items[i];

		if (is_written(code) || vec_push(&capture.written_natives, *code) < 0)
			continue;
		fprintf(capture.file, "native %llx %d", (unsigned long long)code->pc, code->is_file);
		if (code->has_row)
			fprintf(capture.file, " %d %d %x", code->row.cfa, code->row.saved, code->row.rule);
		fputc('\n', capture.file);
	}
}

/* Returns true for memory that the file does not have yet. */
static bool is_news(const struct corpus_page *page, size_t at)
{
	uint8_t known;

	return page->is_known[at] &&
	       !(corpus_get(&capture.written, page->address + at, &known, 1) && known == page->bytes[at]);
}

static void write_page(const struct corpus_page *page)
{
	for (size_t at = 0, count; at < CORPUS_PAGE; at += count ? count : 1) {
		for (count = 0; at + count < CORPUS_PAGE && count < CORPUS_LINE_BYTES && is_news(page, at + count);)
			count++;
		if (!count)
			continue;
		fprintf(capture.file, "memory %llx ", (unsigned long long)(page->address + at));
		for (size_t i = 0; i < count; i++)
			fprintf(capture.file, "%02x", page->bytes[at + i]);
		fputc('\n', capture.file);
		(void)corpus_put(&capture.written, page->address + at, page->bytes + at, count);
	}
}

static void write_memory(void)
{
	struct corpus_memory memory = {0};

	for (size_t i = 0; i < shot->reads.len; i++)
		(void)corpus_put(&memory, shot->reads.items[i].address, shot->bytes.items + shot->reads.items[i].at,
				 shot->reads.items[i].bytes);
	for (size_t i = 0; i < memory.pages.len; i++)
		write_page(&memory.pages.items[i]);
	corpus_forget(&memory);
}

static const char *text_of(uint32_t id)
{
	return intern_text(&capture.strings, id);
}

static void name_method(char *name, size_t size, uint64_t id)
{
	const struct jvm_method *method = jvm_method(capture.agent->jvm, id, (struct jvm_moment){.time_ns = 0});

	if (method)
		snprintf(name, size, "%s.%s", text_of(method->class_name), text_of(method->name));
	else
		snprintf(name, size, "?");
}

/* For people. */
static void name_frame(char *name, size_t size, uint32_t index)
{
	uint64_t address = shot->walk.sample.stack[index], pc = address - (index > 0);
	const struct mapping *mapping = maps_find(&capture.process->maps, pc);
	uint32_t id = shot->walk.ids[index];
	const struct jvm_code *code =
		jvm_code_at(capture.agent->jvm, pc, shot->time_ns, id & DUET_ID_INTERPRETED ? 0 : id);

	if (id & DUET_ID_INTERPRETED)
		return name_method(name, size, address);
	if (code && code->method)
		return name_method(name, size, code->method);
	if (jvm_is_call_stub(capture.agent->jvm, address))
		snprintf(name, size, "call stub");
	else if (code)
		snprintf(name, size, "%s", text_of(code->stub_name));
	else if (mapping && strrchr(mapping->path, '/'))
		snprintf(name, size, "%s", strrchr(mapping->path, '/') + 1);
	else
		snprintf(name, size, "%s", mapping && *mapping->path ? mapping->path : "?");
}

static void write_walk(const char *why)
{
	char name[160];

	write_layout();
	write_natives();
	write_memory();
	name_frame(name, sizeof(name), 0);
	fprintf(capture.file, "walk in %s: %s\nregs %llx", name, why, (unsigned long long)shot->regs.pc);
	for (int i = 0; i < DUET_FRAME_REGISTERS; i++)
		fprintf(capture.file, " %llx", (unsigned long long)shot->regs.general[i]);
	fputc('\n', capture.file);
	for (uint32_t i = 0; i < shot->walk.walked; i++) {
		name_frame(name, sizeof(name), i);
		fprintf(capture.file, "frame %llx %x %s\n", (unsigned long long)shot->walk.sample.stack[i],
			shot->walk.ids[i], name);
	}
	fprintf(capture.file, "end %s %u\n", corpus_ends[shot->walk.sample.walk_end], shot->walk.sample.guessed_depth);
	capture.kept++;
}
