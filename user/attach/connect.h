/* SPDX-License-Identifier: MIT */
/* Connecting to the agent's control socket, from inside the JVM's network namespace. */
#ifndef ATTACH_CONNECT_H
#define ATTACH_CONNECT_H

#include "attach/visit.h"

/*
 * Tries until the agent listens on the abstract name, then proves who it is. A connected
 * SOCK_SEQPACKET socket whose peer is the target, owned by the caller, or -errno
 * with its sentence.
 */
int connect_control(struct visit *visit, const struct attach_control *control);

#endif
