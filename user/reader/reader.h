/* SPDX-License-Identifier: MIT */
/*
 * Reads a JVM from outside, without an agent in it: the layout of its code and methods, and the names that samples ask
 * for. Each JVM has its own process for that. It speaks the agent's protocol (duet_agent.h): for the loader it is an
 * agent that takes no samples. The JVM's memory is its user's claim, and reading it may take for ever, because pages
 * may lie in a file whose server does not answer. Then only this process waits. It ends by an alarm, when the loader
 * closes the socket, or with the JVM.
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/allowance.h"

/* The error in STARTED for a program of another kind than duet, into which no agent could be loaded either. */
#define READER_FOREIGN ELIBBAD

/* The error of a reader whose process has no JVM: it may create one later, and its mappings change then. */
#define READER_NO_JVM ENOMEDIUM

/*
 * Starts the reader of the charge's process, which must have started at start_ticks. Stores the reader's pid. Returns a
 * SOCK_SEQPACKET socket (O_NONBLOCK) to it, which the caller owns, or -errno.
 */
int reader_start(const struct charge *charge, uint64_t start_ticks, pid_t *ret_reader);
