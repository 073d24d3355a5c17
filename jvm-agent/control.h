/* SPDX-License-Identifier: MIT */
/*
 * The control socket and the agent's one thread, which serves it.
 *
 *   attach:  control_open(), control_run()                  the thread listens, serves one loader, ends
 *   start:   control_open() in Agent_OnLoad                 a loader may connect from here on
 *            control_run_at_start() in VMInit, before main()
 *                                                    starts the same thread, waits for the handler to be live
 */
#ifndef CONTROL_H
#define CONTROL_H

#include "options.h"

/* Claims the agent and binds the socket. An enum duet_attach_code. */
int control_open(const struct agent_options *options);
/* Starts the thread on what control_open() made. An enum duet_attach_code. */
int control_run(void);
/* On the thread that will run main(): control_run(), then waits for the loader's START at most options.wait_ms. */
void control_run_at_start(void);
/* The JVM is about to go down: the loader may ask for what is gone with it, for a tenth of a second. */
void control_last_words(void);
/* The JVM goes down and handlers do nothing any more: tells the loader, which stops signalling. */
void control_goodbye(void);

#endif
