/* SPDX-License-Identifier: MIT */
/*
 * The control socket, and the only thread of the agent, which serves it.
 *
 *   attach:  control_open(), control_run()                  the thread listens, serves one loader, ends
 *   start:   control_open() in Agent_OnLoad                 a loader may connect from here on
 *            control_run_at_start() in VMInit, before main()
 *                                                    starts the same thread, waits for the handler to be live
 */
#pragma once

#include "options.h"

/* Claims the agent and binds the socket. Returns an enum duet_attach_code. */
int control_open(const struct agent_options *options);
/* Starts the agent's thread on the socket of control_open(). Returns an enum duet_attach_code. */
int control_run(void);
bool control_listens(void); /* true if a loader can come, now or when the one that is there has left */
/* On the thread that will run main(): calls control_run(), then waits at most options.wait_ms for START. */
void control_run_at_start(void);
/* Called before the JVM goes down: the loader asks for what will be lost, for 0.1 s, or 0.3 s while answers are due. */
void control_last_words(void);
/* Called when the JVM goes down and handlers do nothing more. Sends STOPPED, so that the loader stops signalling. */
void control_goodbye(void);
/*
 * Called when the JVM goes down, last. Ends the agent's thread if it listens only, and waits a tenth of a second at
 * most until it has detached. The JVM's end waits 300 ms for a thread that is attached and in native code
 * (VM_Exit::wait_for_threads_in_native_to_block(), JDK 8 to 27).
 */
void control_leave(void);
