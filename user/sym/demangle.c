/* SPDX-License-Identifier: MIT */
#include "sym/demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

struct demangle_output {
	struct buf *out;
	size_t max_len;
	jmp_buf full;
};

/*
 * A few hundred hostile bytes can expand to gigabytes of text, since every substitution may double it, and the
 * demangler cannot be asked to stop. In callback mode it holds only stack memory, so leaving it by longjmp() is safe.
 */
static void take_text(const char *text, size_t len, void *cookie)
{
	struct demangle_output *output = cookie;
	size_t room = output->max_len - output->out->len;

	buf_add(output->out, text, len < room ? len : room);
	if (len >= room || output->out->failed)
		longjmp(output->full, 1);
}

static bool demangle_plain(const char *name, struct buf *out)
{
	size_t start = out->len;
	struct demangle_output output = {.out = out, .max_len = start + DEMANGLE_MAX_OUTPUT};

	if (setjmp(output.full))
		return true;
	/* Rust first: its older names are also valid C++ names, with a hash at the end that is of no use. */
	if (rust_demangle_callback(name, DMGL_NO_OPTS, take_text, &output))
		return true;
	buf_cut(out, start);
	if (cplus_demangle_v3_callback(name, DMGL_NO_OPTS, take_text, &output))
		return true;
	buf_cut(out, start);
	return false;
}

/*
 * In a Rust name, "G", a number in base 62 and "_" bind that many lifetimes plus one. rust_demangle_callback() counts
 * them one by one even if it prints none, so a hostile name could keep it busy for years. In real names such a number
 * has one digit. Replaces "G" before longer ones by `letter`. Returns false if there are none.
 */
static bool replace_binders(char *name, char letter)
{
	size_t digits = 0;
	bool is_number = false, is_replaced = false;

	for (size_t i = strlen(name); i-- > 0;) {
		if (!isalnum((unsigned char)name[i])) {
			is_number = name[i] == '_';
			digits = 0;
			continue;
		}
		if (is_number && digits++ > 1 && name[i] == 'G') {
			name[i] = letter;
			is_replaced = true;
		}
	}
	return is_replaced;
}

/*
 * A crate's hash and an identifier may contain the text of such a binder. Then any other letter in the place of "G"
 * gives a name too, which differs at most in that letter, and no tag of the grammar is "H" or "J".
 */
static bool demangle_rust(const char *name, struct buf *out)
{
	char with_h[DEMANGLE_MAX_INPUT + 1], with_j[DEMANGLE_MAX_INPUT + 1];
	size_t start = out->len, same = 0;
	BUF(other);

	strcpy(with_h, name);
	strcpy(with_j, name);
	if (!replace_binders(with_h, 'H'))
		return demangle_plain(name, out);
	replace_binders(with_j, 'J');
	if (demangle_plain(with_h, out) && demangle_plain(with_j, &other) && out->len - start == other.len)
		for (; same < other.len; same++)
			if (out->data[start + same] != other.data[same])
				out->data[start + same] = 'G';
	if (!same)
		buf_cut(out, start);
	return same;
}

static bool demangle_name(const char *name, struct buf *out)
{
	if (name[0] != '_' || strnlen(name, DEMANGLE_MAX_INPUT + 1) > DEMANGLE_MAX_INPUT)
		return false;
	return name[1] == 'R' ? demangle_rust(name, out) : name[1] == 'Z' && demangle_plain(name, out);
}

bool demangle(const char *name, struct buf *out)
{
	const char *suffix = strstr(name, DEMANGLE_PLT_SUFFIX);
	BUF(plain);
	bool done;

	if (!suffix || suffix[strlen(DEMANGLE_PLT_SUFFIX)])
		return demangle_name(name, out);
	buf_add(&plain, name, (size_t)(suffix - name));
	done = demangle_name(plain.data, out);
	if (done)
		buf_add_str(out, suffix);
	return done;
}
