/* SPDX-License-Identifier: MIT */
/*
 * The daemon's configuration, duet.conf(5): a line is "word = value", with the words of `duet record`'s long options.
 * '#' and ';' begin a line that is a comment.
 */
#ifndef CMD_CONFIG_H
#define CMD_CONFIG_H

#include "session.h"

struct config {
	char *text; /* of the file, cut into words */
	struct record_options *options;
	struct session_options session; /* points into both */
	uint64_t sampling; /* equal in two that differ only in what is written where and how */
};

/*
 * Reads and checks it; the first line that is wrong, or not possible with those before it, is told as "file:line: why".
 * `is_optional`: a file that is not there says nothing. 0, or -errno and there is nothing to release.
 */
int config_read(struct config *config, const char *path, const char *folder, bool is_optional);
void config_release(struct config *config);

#endif
