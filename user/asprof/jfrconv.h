/* SPDX-License-Identifier: MIT */
/* The command line of async-profiler's converter, jfrconv. */
#ifndef ASPROF_JFRCONV_H
#define ASPROF_JFRCONV_H

#include "base/buf.h"
#include "base/vec.h"

/* One call of `duet convert` or `duet diff`. The words are owned; items[0] is the command's name. A vec. */
struct jfrconv_words {
	char **items;
	size_t len;
	size_t size;
};

/* What the command line asks for. Several inputs and a folder are a call each. */
struct jfrconv {
	bool help, is_diff;
	struct jfrconv_words options; /* in duet's words */
	struct vec(const char *) files;
	const char *format; /* -o; NULL: by the output's extension */
	bool has_event;
};

/* Returns 0, or -errno with one sentence in `why`. Call jfrconv_release() in both cases. */
int jfrconv_parse(struct jfrconv *ret, int argc, char **argv, struct buf *why);
void jfrconv_release(struct jfrconv *jfrconv);

/* Returns the exit code: 0 done, 1 failed, 2 wrong usage. */
int jfrconv_main(int argc, char **argv);

#endif
