/* SPDX-License-Identifier: MIT */
/* What the attach child must share with the JVM: network namespace and credentials. Never called in the loader. */
#ifndef ATTACH_NAMESPACES_H
#define ATTACH_NAMESPACES_H

#include "attach/visit.h"

/*
 * Abstract sockets live in a network namespace. Nothing else is entered: files
 * are reached below visit->root, whatever the mount namespace, and unix sockets in
 * the file system work across all of them. 0, or -errno with its sentence.
 */
int namespaces_enter(struct visit *visit);
/*
 * HotSpot (SO_PEERCRED) accepts its own user and group only, JDK 11 and later
 * also root; and what the child writes into the target's file system it writes with the
 * target's rights, not the loader's: capabilities go too, also when that user
 * is root. Irrevocable. 0, or -errno with its sentence.
 */
int namespaces_become_user(struct visit *visit);

#endif
