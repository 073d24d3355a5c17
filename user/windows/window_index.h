/* SPDX-License-Identifier: MIT */
/* index.html in the folder of a continuous recording: its windows, newest first, with a link to each file. */
#ifndef WINDOWS_WINDOW_INDEX_H
#define WINDOWS_WINDOW_INDEX_H

#define WINDOW_INDEX "index.html"

struct window_files;

/*
 * Writes it anew. An index.html that is not duet's stays, and there is none then. Returns 0 or -errno; after an error
 * the old one stays.
 */
int window_index_write(const struct window_files *files);

#endif
