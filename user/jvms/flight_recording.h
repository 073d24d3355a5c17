/* SPDX-License-Identifier: MIT */
/*
 * A recording of the JVM's own flight recorder (JFR), which duet starts and stops by HotSpot's attach protocol, as jcmd
 * does: JFR.start, JFR.dump, JFR.stop. Its chunks are copied into duet's JFR file. It is stopped by the JVM alone, and
 * written to its file, when the JVM exits.
 */
#pragma once

#include "attach/attach.h"
#include "attach/children.h"
#include "base/buf.h"
#include "proc/process.h"

/*
 * A folder in a JVM's root directory for the files that the JVM's flight recorder reads and writes by their paths. A
 * child makes it, so only the JVM's user can enter it, and removes it with all files when it is released or when the
 * loader dies.
 */
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
int flight_folder_take(struct flight_folder *folder, int to);
void flight_folder_release(struct flight_folder *folder);

/* Events of the JDK that are left out, because duet records the same. The first bits are enum writer_jfr_without. */
enum flight_without {
	FLIGHT_WITHOUT_CPU = 1 << 8,
	FLIGHT_WITHOUT_ALLOC = 1 << 9,
	FLIGHT_WITHOUT_LOCK = 1 << 10,
};

struct flight_recording {
	struct attach_target target;
	struct flight_folder folder;
	char name[64]; /* that it has in the JVM */
	int file; /* what flight_recording_update() has read last: whole chunks of JFR; -1: nothing */
	bool is_running;
};

#define FLIGHT_RECORDING_NONE {.folder = FLIGHT_FOLDER_NONE, .file = -1}

/*
 * What such a recording has by default of the machine and the JVM, as bits of enum writer_jfr_without: nothing of which
 * secrets must be left out, as the JVM does not do that before JDK 27.
 */
unsigned int flight_recording_has(const char *settings);
/*
 * Starts a recording. `settings`: "default", "profile", the path of a .jfc file as the JVM sees it, or "+Event+Event",
 * which are the only events then. `without`: bits of enum flight_without. Returns 0, or -errno with one sentence in
 * `why`. Call flight_recording_release() in both cases.
 */
int flight_recording_start(struct flight_recording *recording, const struct process *process, const char *settings,
			   unsigned int without, struct buf *why);
/*
 * Reads all that was recorded until now into `file`. `is_end`: also stops the recording. `has_ended`: the JVM is ending
 * or has ended, and is not asked. Returns 0, or -errno with one sentence in `why`.
 */
int flight_recording_update(struct flight_recording *recording, bool is_end, bool has_ended, struct buf *why);
/* Stops a recording that runs, and closes the file. Does nothing for FLIGHT_RECORDING_NONE. */
void flight_recording_release(struct flight_recording *recording);
