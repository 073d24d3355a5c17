/* SPDX-License-Identifier: MIT */
/*
 * What a program says of itself to whoever looks from outside: OpenTelemetry's "Process Context", whose layout
 * headers/duet_context.h has. It is the process's to write and may be anything: a helper reads it, a parser parses it,
 * and the loader gets short texts.
 */
#pragma once

#include "base/buf.h"
#include "proc/helper.h"
#include "proc/process.h"

#define PUBLISHED_MAX 65536 /* bytes of protobuf; more is refused */
#define PUBLISHED_TEXT_MAX 8000 /* bytes of the attributes; a profile keeps no longer strings */

struct published {
	uint64_t address; /* of its mapping; 0: the process has none */
	uint64_t published_ns; /* changes with each change; 0: it could not be read */
	bool is_new; /* the attributes are those of published_ns; otherwise there are none, and nothing has changed */
	struct buf attributes; /* of the resource, as profile/attributes.h */
	struct buf keys; /* names of the attributes of threads' contexts, a line each; what has no room is left out */
	uint32_t key_count;
};

/*
 * Reads what the process publishes, with `address` 0 after a look for it among its mappings. If its published_ns is
 * `known_ns`, only that is read. Returns 0 or -errno: -ENOENT if it publishes nothing, -EAGAIN if it changed each time,
 * -EPROTO if it is not as it should be. Release `ret` in any case.
 */
int published_read(struct published *ret, const struct charge *charge, const struct process *process, uint64_t address,
		   uint64_t known_ns);
void published_release(struct published *published);

/* In the parser: sets the texts. What is too long or too much is left out. Returns 0, or -EPROTO. */
int published_parse(struct published *ret, const void *payload, size_t bytes);

enum context_loss {
	CONTEXT_WHOLE,
	CONTEXT_CUT, /* something is left out: it is not all there, or too long */
	CONTEXT_NO_KEY, /* the same: it has a name that `keys` does not have */
};

/*
 * Appends the attributes of a thread's context, as profile/attributes.h, clean and in the order of `keys`, which are
 * those of its process. At most PUBLISHED_TEXT_MAX bytes.
 */
enum context_loss context_text(const void *attributes, size_t bytes, const char *keys, struct buf *out);
