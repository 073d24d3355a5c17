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
#pragma once

#include <stdbool.h>
#include <sys/types.h>

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
/* Writes the library below the target's root. Returns 0, or -errno with visit->why and no file left behind. */
int place_library(struct visit *visit, struct place *ret_place);
void place_remove(struct place *place);

/*
 * Makes a new folder in the directory `parent`. The caller must already have the file rights of the user `owner`. An
 * existing folder is never used. Folders that killed attaches have left are removed first, for any JVM of this user. If
 * the usual name is taken all the same, it picks a random one. Stores the name in `name`. Returns an O_PATH descriptor
 * of a folder that `owner` owns, nobody else can write to, and that is on the same mount as `parent`; or -errno.
 */
int place_folder(const struct visit *visit, int parent, uid_t owner, char name[PLACE_NAME_MAX]);

/*
 * A place for the library in a container that has none: hardened containers mount everything writable noexec. It is a
 * tmpfs, mounted over a new folder in the target's /tmp for as long as the attach takes. A helper process makes and
 * removes the mount: mounting needs the loader's rights, which the attach child gives up, and the mount is removed
 * however the attach ends.
 *
 * In the target's mount namespace any path may lead anywhere, also to files that the target's user may not open. So the
 * tmpfs is filled while it is mounted nowhere (fsopen(2), Linux 5.2), the folder is made with the rights of the
 * target's user, and no file is written and no mode changed by a path through the target's files.
 */
struct place_mount {
	pid_t helper; /* 0 = no mount is open */
	int socket; /* closing it makes the helper remove the mount */
	char path[128]; /* the library's path in the target's root */
};

/* Needs the loader's rights. 0 or -errno with nothing left: -EPERM without CAP_SYS_ADMIN, -ENOSYS before Linux 5.2. */
int place_mount_open(const struct visit *visit, struct place_mount *ret_mount);
void place_mount_close(struct place_mount *mount);
