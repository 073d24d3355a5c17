/* SPDX-License-Identifier: MIT */
/* One recording from start to finished file: the pipeline that headers/README.md describes. */
#pragma once

struct options;

/* Reports to the user on stderr. Returns the exit code: 0 done, 1 failed; of a command that ended, its own. */
int session_run(const struct options *options);
