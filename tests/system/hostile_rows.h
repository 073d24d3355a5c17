/* SPDX-License-Identifier: MIT */
/* What hostile_recordings.c draws from a seed: numbers, texts, and which row refers to which. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"

static uint64_t seed;
static struct buf about = BUF_NONE;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return below ? seed % below : 0;
}

static bool one_in(unsigned int n)
{
	return !draw(n);
}

/* From 1 to `most`, small ones as often as large ones. */
static size_t size_to(size_t most)
{
	size_t least = 1ull << draw(64 - (unsigned int)__builtin_clzll(most)), size = least + draw(least);

	return size < most ? size : most;
}

static size_t pick(const char *what, size_t most)
{
	size_t size = size_to(most);

	buf_printf(&about, " %s=%zu", what, size);
	return size;
}

static uint64_t edge(void)
{
	static const uint64_t edges[] = {0,
					 1,
					 UINT32_MAX,
					 UINT32_MAX + 1ull,
					 (1ull << 53) - 1,
					 1ull << 53,
					 INT64_MAX,
					 INT64_MAX - 1,
					 1ull << 63,
					 UINT64_MAX,
					 1000000000ull,
					 1ull << 62,
					 10000000};

	return one_in(3) ? draw(1000000) : edges[draw(sizeof(edges) / sizeof(*edges))];
}

/* ---- texts: of one file, they have a length and a form ---- */

static size_t text_len;
static unsigned int text_form;

static void choose_texts(void)
{
	text_form = (unsigned int)draw(8);
	text_len = one_in(2) ? size_to(40) : size_to(20000);
	buf_printf(&about, " text=%zu/%u", text_len, text_form);
}

/* The text of a number; equal numbers have equal texts. */
static void add_text(struct buf *to, size_t number)
{
	static const char *const forms[] = {"%zu",    "com/acme/C%zu.m", "[%zu tid=1]", "java.lang.Thread.run%zu(I)V",
					    "_ZN%zu", "libjvm.so`f%zu",	 "[CPU-%zu]",	"\x01\xff/%zu;<!"};
	static const char fillers[] = "AA[(./;\xc3";
	size_t start = to->len;

	buf_printf(to, forms[text_form], number);
	while (to->len - start < text_len)
		buf_add_char(to, fillers[text_form]);
}

static void add_number(struct buf *to, uint64_t number, size_t bytes)
{
	buf_add(to, &number, bytes);
}

/* Which row a row refers to: all to one, each to its own, or any. */
static unsigned int reference_form;

static size_t reference(size_t row, size_t rows)
{
	return !rows ? 0 : reference_form == 0 ? 0 : reference_form == 1 ? row % rows : draw(rows);
}

/* Numbers of rows of what a file has; the rows of all are below the limit of a section. */
struct counts {
	size_t texts, events, frames, owners, threads, nodes, samples, losses, facts, notes, usages;
};

static struct counts draw_counts(void)
{
	struct counts n = {
		.texts = pick("texts", text_len > 1000 ? 3000 : 100000),
		.events = one_in(3) ? pick("events", 60000) : 1 + draw(3),
		.frames = pick("frames", 1000000),
		.owners = pick("owners", one_in(3) ? 100000 : 10),
		.threads = pick("threads", one_in(2) ? 300000 : 20),
		.nodes = pick("nodes", 1000000),
		.samples = pick("samples", 500000),
		.losses = one_in(4) ? pick("losses", 80000) : 1,
		.facts = one_in(4) ? pick("facts", 100000) : 1,
		.notes = one_in(3) ? pick("notes", 200000) : 1,
		.usages = one_in(3) ? pick("usages", 100000) : 1,
	};

	reference_form = (unsigned int)draw(3);
	buf_printf(&about, " references=%u", reference_form);
	return n;
}

/* A file of some MB at most, so that it is made in little time. */
static struct counts draw_few(void)
{
	struct counts n = draw_counts();

	n.frames = n.frames % 60000 + 1;
	n.nodes = n.nodes % 20000 + 1;
	n.samples = n.samples % 100000 + 1;
	n.texts = n.texts % 20000 + 1;
	return n;
}
