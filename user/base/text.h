/* SPDX-License-Identifier: MIT */
/*
 * Makes text safe to print. Names come from symbol tables, class files, /proc and other processes, and may hold any
 * byte. The functions here turn them into text that a terminal displays and does not interpret. Everything that people
 * read goes through them: reports, messages, lists.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Appends valid UTF-8 on one line: '?' for each byte that controls, is ill-formed, reorders or breaks lines. */
void text_add_line(struct buf *out, const char *text);
/* The same for several lines: '\n' and tabs are kept. */
void text_add_lines(struct buf *out, const char *text);
/* Replaces the text by what text_add_lines() makes of it. */
void text_clean_lines(struct buf *text);
/* The same for one token of a collapsed stack: ';' becomes '|' too. */
void text_add_token(struct buf *out, const char *text);
/* Appends what is such text already as text, or as an attribute's value, of HTML. */
void text_add_html(struct buf *out, const char *text);

void text_add_utf8(struct buf *out, uint32_t character);
/*
 * Writes the value of a java.lang.String as UTF-8 with a NUL: at most `bytes` * 2 + 1 bytes for Latin-1, and `bytes` *
 * 3 / 2 + 1 for UTF-16. A NUL, a lone surrogate, or half a character at the end becomes '?'.
 */
void text_from_java(char *to, const uint8_t *value, size_t bytes, bool is_utf16);

/*
 * Class files, JNI and JVMTI have a character above U+FFFF as two surrogates of three bytes each ("modified UTF-8").
 * Replaces each such pair by the character's four bytes, in place. Returns the new length; adds no NUL.
 */
size_t text_join_surrogates(char *text, size_t len);
/* Appends UTF-8 as class files have it. */
void text_add_surrogates(struct buf *out, const char *text);
void text_copy_surrogates(char *to, size_t size, const char *text); /* the same; cut where it does not fit */

/* Percent, for people: 0 of nothing. */
static inline double text_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Returns true if the text is one of the words, between which there are spaces. */
bool text_is_word(const char *text, const char *words);
/* Returns true if the text begins with one of them. */
bool text_begins_with(const char *text, const char *words);

/* Returns the letters to change, insert or remove (edit distance); SIZE_MAX if one text has more than 32. */
size_t text_distance(const char *a, const char *b);

#define TEXT_DISTANCE_MAX 32

/* Finds the word that a mistyped one may have been meant to be. */
struct text_guess {
	const char *typed;
	size_t changes; /* that turn it into `word` */
	char word[TEXT_DISTANCE_MAX + 1]; /* "": none is near */
};

/* Compares `typed` with one more word, of which it may be the beginning. */
void text_guess(struct text_guess *guess, const char *word);
/* Appends ": did you mean PREFIX+WORD?", or, if no word is near, ": OTHERWISE" unless that is NULL. */
void text_add_guess(const struct text_guess *guess, const char *prefix, const char *otherwise, struct buf *out);
