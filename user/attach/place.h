/* SPDX-License-Identifier: MIT */
/*
 * The agent library as a file, where the JVM can map it.
 *
 * Its path is the same on every attach of one duet build to one JVM. HotSpot
 * never unloads an agent whose Agent_OnAttach succeeded; a second dlopen() of the same path
 * finds the library by name, although the file was removed and made anew, and
 * maps nothing (glibc; musl compares inodes and maps one more copy). For the same
 * reason JDK 21+ prints its "agent has been loaded dynamically" warning to the
 * JVM's stderr only for the first attach; only -XX:+EnableDynamicAgentLoading
 * on the JVM's command line prevents that one: the flag is not manageable, and HotSpot asks
 * whether it came from the command line (jvmtiAgent.cpp).
 */
#ifndef ATTACH_PLACE_H
#define ATTACH_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/visit.h"

#define PLACE_LIBRARY "libduet.so"
#define PLACE_NAME_MAX 64

struct place {
	int parent; /* the world-writable directory, or -1 */
	int folder; /* ours in it */
	char name[PLACE_NAME_MAX]; /* of the folder */
	char path[128]; /* of the library, in the target's root */
};

/* Has the target a place to which its user may write, and from which code may be mapped? */
bool place_exists(const struct visit *visit);
/* Writes the library below the target's root. 0, or -errno with its sentence; then nothing is left behind. */
int place_library(struct visit *visit, struct place *ret_place);
void place_remove(struct place *place);

/*
 * Makes a new folder in the directory `parent`, with the rights of the user `owner` of files. What has its name already
 * is never entered: a folder that a duet left which was killed is removed, beside any other an unpredictable name is
 * taken. A descriptor (O_PATH) of a folder of `owner`, writable by nobody else, on the mount of `parent`; or -errno.
 */
int place_folder(const struct visit *visit, int parent, uid_t owner, char name[PLACE_NAME_MAX]);
int place_write(int folder); /* a new file PLACE_LIBRARY; 0 or -errno, then nothing is left behind */

#endif
