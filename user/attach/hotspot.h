/* SPDX-License-Identifier: MIT */
/* HotSpot's dynamic attach, JDK 8 to 27: its socket, the trigger that makes it, the `load` command. */
#ifndef ATTACH_HOTSPOT_H
#define ATTACH_HOTSPOT_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/visit.h"
#include "attach/vm_options.h"

#define HOTSPOT_REPLY_MAX 4096

/* The answer to `load`. */
struct hotspot_reply {
	int status; /* of the command: 0, or HotSpot's error (100 bad request, 101 protocol version, -1…) */
	bool attached; /* Agent_OnAttach ran; then `code` is what it returned */
	int code;
	char message[160]; /* first line of words, "" without */
};

/* 0 or -EBADMSG: no complete reply in any JDK's dialect. */
int hotspot_parse_reply(const char *text, size_t len, struct hotspot_reply *ret);
/* The sentence for a reply, in visit->why, and its -errno; 0 when the agent is in, -EBUSY when it may be soon. */
int hotspot_judge(struct visit *visit, const struct hotspot_reply *reply);

/*
 * Makes the JVM load the library at `path` (in its own root) and call Agent_OnAttach
 * with `control=NAME,secret=HEX`. 0, or -errno with its sentence. Leaves no file of its own behind.
 */
int hotspot_load(struct visit *visit, const struct vm_options *options, const char *path,
		 const struct attach_control *control);

#endif
