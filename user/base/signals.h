/* SPDX-License-Identifier: MIT */
/* Signals that end a process unless it does something about them, and are not its own fault. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Call first. From now on such a signal removes the temporary files of outputs (base/io.h), says in a sentence that it
 * ends the process, and ends it. A file that reaches its limit (SIGXFSZ) is a write that fails. Children can be waited
 * for, also if the parent of this process ignores its own.
 */
void signals_open(void);
void signals_end_with(int signo); /* the same for a signal that was handled otherwise; for a child, which is silent */
/* For a child that will run another program: what is ignored and blocked here is not so there. */
void signals_reset(void);
/* For those who take such signals from a descriptor: all but SIGPIPE and SIGXFSZ. */
void signals_ending(sigset_t *ret_set);

/*
 * Waits for another process, which an ordinary user may stop, have a deadline, and end within a second after SIGINT or
 * SIGTERM. Such a signal is one that is blocked and pending, or that signals_remember() has handled.
 */
void signals_remember(int signo);
void signals_forget(void); /* what was remembered; the next waits are as long as others */
bool signals_are_asked(void); /* true if this process was asked to end */
uint64_t signals_limit(uint64_t until_ns); /* the end of a wait, which is earlier once this process was asked to end */
/*
 * Waits for poll()'s `events` until a time (CLOCK_MONOTONIC; UINT64_MAX: for ever). Returns 0, -ETIMEDOUT, or -EINTR
 * if this process was asked to end.
 */
int signals_wait(int fd, short events, uint64_t until_ns);
