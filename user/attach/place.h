/* SPDX-License-Identifier: MIT */
/*
 * Writes the agent library to a file that the JVM can map.
 *
 * One duet build uses the same path on every attach to one JVM. HotSpot never unloads an agent whose Agent_OnAttach
 * succeeded. A second dlopen() of the same path finds the loaded library by name and maps nothing, even though the file
 * was removed and made again (glibc; musl compares inodes and maps another copy). For the same reason JDK 21+ prints
 * its "agent has been loaded dynamically" warning to the JVM's stderr only for the first attach. Only
 * -XX:+EnableDynamicAgentLoading on the JVM's command line prevents that first warning: the flag is not manageable, and
 * HotSpot checks that it came from the command line (jvmtiAgent.cpp).
 */
#ifndef ATTACH_PLACE_H
#define ATTACH_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/visit.h"

#define PLACE_LIBRARY "libduet.so"
#define PLACE_NAME_MAX 64

struct place {
	int parent; /* the directory that holds `folder`, or -1 */
	int folder; /* the folder that duet made in `parent` */
	char name[PLACE_NAME_MAX]; /* the folder's name */
	char path[128]; /* the library's path in the target's root */
};

/* True if the target has a directory that its user can write to and that is not mounted noexec. */
bool place_exists(const struct visit *visit);
/*
 * Writes the library below the target's root. Returns 0, or -errno with the reason in visit->why and no file left
 * behind.
 */
int place_library(struct visit *visit, struct place *ret_place);
void place_remove(struct place *place);

/*
 * Makes a new folder in the directory `parent`. The caller must already have the file rights of the user `owner`. An
 * existing folder is never used. Folders that killed attaches have left are removed first, for any JVM of this user. If
 * the usual name is taken all the same, it picks a random one. Stores the name in `name`. Returns an O_PATH descriptor
 * of a folder that `owner` owns, nobody else can write to, and that is on the same mount as `parent`; or -errno.
 */
int place_folder(const struct visit *visit, int parent, uid_t owner, char name[PLACE_NAME_MAX]);
int place_write(int folder); /* writes a new file PLACE_LIBRARY; returns 0, or -errno and leaves no file behind */

#endif
