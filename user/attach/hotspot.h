/* SPDX-License-Identifier: MIT */
/* HotSpot's dynamic attach, JDK 8 to 27: its socket, the trigger file that makes it open that, and `load`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "attach/visit.h"
#include "attach/vm_options.h"

#define HOTSPOT_REPLY_MAX 4096

/* The answer to `load`. */
struct hotspot_reply {
	int status; /* status of the command: 0, or HotSpot's error (100 bad request, 101 protocol version, -1…) */
	bool attached; /* Agent_OnAttach ran, and `code` is what it returned */
	int code;
	char message[160]; /* first line of HotSpot's error text, "" if there is none */
};

/* Returns 0, or -EBADMSG when the text is no complete reply of any JDK. */
int hotspot_parse_reply(const char *text, size_t len, struct hotspot_reply *ret);
/* Returns 0 when the agent has started, or -errno with visit->why: -EBUSY when another attempt may soon succeed. */
int hotspot_judge(struct visit *visit, const struct hotspot_reply *reply);

/*
 * Makes the JVM load the library at `path` (a path in the JVM's root) and call Agent_OnAttach with
 * `control=NAME,secret=HEX`. Returns 0, or -errno with the reason in visit->why. Leaves no file behind.
 */
int hotspot_load(struct visit *visit, const struct vm_options *options, const char *path,
		 const struct attach_control *control);

/*
 * Sends a command with three arguments. Returns the connected socket, from which the reply can be read up to its end:
 * a line with the status, then text. Or -errno with the reason in visit->why.
 */
int hotspot_command(struct visit *visit, const struct vm_options *options, const char *const words[4]);
