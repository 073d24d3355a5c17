/* SPDX-License-Identifier: MIT */
/*
 * The commands `asprof` and `jfrconv`: async-profiler's command lines. Samples, walks and files are those of
 * `duet record` and `duet convert`.
 */
#pragma once

/*
 * Returns the exit code: 0; 1 for a command line or process that is none; DUET_ANSWER_NOT_UNDERSTOOD and
 * DUET_ANSWER_REFUSED as async-profiler has them.
 */
int asprof_main(int argc, char **argv);
/* The converter. Returns the exit code: 0 done, 1 failed, 2 wrong usage. */
int jfrconv_main(int argc, char **argv);
