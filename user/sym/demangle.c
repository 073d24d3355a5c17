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

/*
 * In a Rust name, "G", a number in base 62 and "_" bind that many lifetimes plus one. rust_demangle_callback() counts
 * them one by one even if it prints none, so a hostile name could keep it busy for years. Real names bind a few. The
 * same text inside an identifier counts too, since a back reference may point there.
 */
static bool binds_many_lifetimes(const char *name)
{
	for (const char *at = name; (at = strchr(at, 'G'));) {
		const char *digits = ++at;

		while (isalnum((unsigned char)*at))
			at++;
		if (*at == '_' && at - digits > 1)
			return true;
	}
	return false;
}

static bool demangle_plain(const char *name, struct buf *out)
{
	size_t start = out->len;
	struct demangle_output output = {.out = out, .max_len = start + DEMANGLE_MAX_OUTPUT};

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') ||
	    strnlen(name, DEMANGLE_MAX_INPUT + 1) > DEMANGLE_MAX_INPUT ||
	    (name[1] == 'R' && binds_many_lifetimes(name)))
		return false;
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

bool demangle(const char *name, struct buf *out)
{
	const char *suffix = strstr(name, DEMANGLE_PLT_SUFFIX);
	struct buf plain;
	bool done;

	if (!suffix || suffix[strlen(DEMANGLE_PLT_SUFFIX)])
		return demangle_plain(name, out);
	buf_init(&plain);
	buf_add(&plain, name, (size_t)(suffix - name));
	done = demangle_plain(plain.data, out);
	if (done)
		buf_add_str(out, suffix);
	buf_release(&plain);
	return done;
}
