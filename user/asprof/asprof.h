/* SPDX-License-Identifier: MIT */
/*
 * The command `asprof`: async-profiler's command line. Its samples, walks and files are those of `duet record` and
 * `duet convert`.
 */
#ifndef ASPROF_ASPROF_H
#define ASPROF_ASPROF_H

/*
 * Returns the exit code: 0; 1 for a wrong command line or process; or ASPROF_NOT_UNDERSTOOD or ASPROF_REFUSED, as
 * async-profiler does.
 */
int asprof_main(int argc, char **argv);

#endif
