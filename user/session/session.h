/* SPDX-License-Identifier: MIT */
/* One recording from start to finished file: the pipeline that headers/README.md describes. */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

struct options;

/* Reports to the user on stderr. Returns the exit code: 0 done, 1 failed; of a command that ended, its own. */
int session_run(const struct options *options);

#endif
