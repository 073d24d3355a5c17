/* SPDX-License-Identifier: MIT */
/* Signals that end a process unless it does something about them, and are not its own fault. */
#pragma once

#include <signal.h>

/*
 * Call first. From now on such a signal removes the temporary files of outputs (base/io.h), says in a sentence that it
 * ends the process, and ends it. A file that reaches its limit (SIGXFSZ) is a write that fails. Children can be waited
 * for, also if the parent of this process ignores its own.
 */
void signals_open(void);
/* For a child that will run another program: what is ignored and blocked here is not so there. */
void signals_reset(void);
/* For those who take such signals from a descriptor: all but SIGPIPE and SIGXFSZ. */
void signals_ending(sigset_t *ret_set);
