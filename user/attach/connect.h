/* SPDX-License-Identifier: MIT */
/* Connects to the agent's control socket, from inside the JVM's network namespace. */
#ifndef ATTACH_CONNECT_H
#define ATTACH_CONNECT_H

#include "attach/visit.h"

/*
 * Retries until the agent listens on its abstract name, checks that the peer is the target, and sends the secret.
 * Returns a connected SOCK_SEQPACKET socket, owned by the caller, or -errno with the reason in visit->why.
 */
int connect_control(struct visit *visit, const struct attach_control *control);

#endif
