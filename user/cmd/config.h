/* SPDX-License-Identifier: MIT */
/*
 * The daemon's configuration, duet.conf(5): each line is "word = value", a word is a long option of `duet record`.
 * '#' and ';' begin a line that is a comment.
 */
#pragma once

#include "event/options.h"

struct config {
	char *text; /* the file's text, cut into words */
	struct options options; /* points into `text` */
	uint64_t sampling; /* hash of all words except those of the output files: equal if only the output differs */
};

/*
 * Reads and checks the file. Reports the first line that is wrong, or that contradicts lines before it, as
 * "file:line: why". `is_optional`: a file that does not exist counts as empty. Returns 0, or -errno: then there is
 * nothing to release.
 */
int config_read(struct config *config, const char *path, const char *folder, bool is_optional);
void config_release(struct config *config);
