/* SPDX-License-Identifier: MIT */
/*
 * Gives the attach child what it must share with the JVM: network namespace and credentials. Never call this in the
 * loader.
 */
#ifndef ATTACH_NAMESPACES_H
#define ATTACH_NAMESPACES_H

#include "attach/visit.h"

/*
 * Enters the target's network namespace, which the agent's abstract socket belongs to. No mount namespace is entered:
 * files are reached below visit->root, and unix sockets in the file system work across namespaces. A user namespace is
 * entered only if the network namespace cannot be entered otherwise. Returns 0, or -errno with the reason in
 * visit->why.
 */
int namespaces_enter(struct visit *visit);
/*
 * Changes to the target's user and group and drops all capabilities, also when that user is root. HotSpot checks
 * SO_PEERCRED and accepts only its own user and group (JDK 11 and later also root). It also means that the child writes
 * into the target's file system with the target's rights, not the loader's. Cannot be undone. Returns 0, or -errno with
 * the reason in visit->why.
 */
int namespaces_become_user(struct visit *visit);

#endif
