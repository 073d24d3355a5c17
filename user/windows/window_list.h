/* SPDX-License-Identifier: MIT */
/* The windows in a folder, as the names of their files say: profile_<UTC end>.<ext>. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_NAME_BYTES 128
#define WINDOW_PREFIX "profile_"
#define WINDOW_FIRST_COLON                                                                                             \
	(sizeof(WINDOW_PREFIX) - 1 + sizeof("dddd-dd-ddTdd") - 1) /* the other is three bytes later */

struct window_file {
	char name[WINDOW_NAME_BYTES];
	char key[WINDOW_NAME_BYTES]; /* the name, without colons: equal for all files of a window up to the "." */
	uint64_t end_ns; /* of the window, CLOCK_REALTIME in whole seconds */
	uint64_t bytes;
	uint64_t changed_ns; /* CLOCK_REALTIME */
	bool is_ahead; /* changed later than now: before the clock was set back */
};

/* A vec, oldest first. */
struct window_list {
	struct window_file *items;
	size_t len;
	size_t size;
};

/* Returns true if window_files_write() gives files such a name. */
bool window_list_named(const char *name);
/* Opens the folder as base/out_path.h does: no other user's link leads elsewhere. The descriptor or -errno. */
int window_folder_open(const char *folder, int flags);
/* Appends the windows' regular files, at most 2^20. Returns 0 or -errno; vec_release() in both cases. */
int window_list_read(int dir, struct window_list *list);
