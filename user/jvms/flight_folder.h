/* SPDX-License-Identifier: MIT */
/*
 * A folder in a JVM's root directory for the files that the JVM's flight recorder reads and writes by their paths. A
 * child makes it, so only the JVM's user can enter it, and removes it with all files when it is released or when the
 * loader dies.
 */
#pragma once

#include "attach/user_child.h"

struct flight_folder {
	struct user_child child;
	char path[64]; /* as the JVM sees it; empty: there is no folder */
};

#define FLIGHT_FOLDER_NONE {.child = USER_CHILD_NONE}
#define FLIGHT_SETTINGS "duet.jfc" /* in the folder */
#define FLIGHT_FILE "duet.jfr" /* the recording; the JVM writes it there */

/* Makes the folder, with FLIGHT_SETTINGS. 0, or -errno as user_child_start() and user_child_await(). */
int flight_folder_open(struct flight_folder *folder, pid_t pid, uint64_t start_ticks, const char *settings);
/* Moves FLIGHT_FILE's contents to the end of `to`. The JVM may have ended. 0 or -errno: -ENODATA: none. */
int flight_folder_take(const struct flight_folder *folder, int to);
void flight_folder_release(struct flight_folder *folder);
