/* SPDX-License-Identifier: MIT */
/* The text after `-agentpath:libduet.so=`, or what dynamic attach passes: `control=NAME,secret=HEX[,wait=MS]`. */
#pragma once

#include "duet_agent.h"

#define OPTIONS_WAIT_MAX_MS 60000

struct agent_options {
	char control[DUET_NAME_MAX + 1]; /* abstract socket name, not empty */
	char secret[DUET_SECRET_DIGITS]; /* not a string */
	bool persists; /* after a loader has left, the next one may come; never set by options_parse() */
	unsigned int wait_ms; /* how long the JVM's start waits for the loader; 2000 unless given */
};

/*
 * Returns 0, or -EINVAL and one sentence in *ret_why (constant text). NULL text is an error: there is no default name.
 * All users can read a command line, so an agent on one gets the secret in the environment variable DUET_SECRET.
 */
int options_parse(struct agent_options *ret_options, const char *text, const char **ret_why);
