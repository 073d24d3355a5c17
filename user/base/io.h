/* SPDX-License-Identifier: MIT */
/* Reads whole files up to a limit, and writes output, in a safe place, that appears complete or not at all. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/out_path.h"

/* A local variable: a descriptor, which is closed at the end of its scope unless it is negative. */
#define IO_FD(name) __attribute__((cleanup(io_close))) int name
void io_close(int *fd); /* closes it unless it is negative, and sets it to -1; errno stays */
/* Opens the file of an O_PATH descriptor anew. Returns a descriptor (O_CLOEXEC) or -errno. */
int io_open_again(int fd, int flags);

/* Appends at most `max` bytes of the file. Returns 0 or -errno: -EFBIG if it is longer. dirfd may be AT_FDCWD. */
int io_read_file(int dirfd, const char *path, size_t max, struct buf *buf);
int io_read_again(int fd, size_t max, struct buf *buf); /* the same, from the beginning of an open file */
/* Returns the number behind "\nkey:" in what was read of a file of /proc, or 0. */
uint64_t io_number_of(const char *text, const char *key);
uint64_t io_bytes(int fd); /* the size of a file; 0 if it cannot be asked */
int io_write_all(int fd, const void *bytes, size_t len); /* returns 0 or -errno */
/* Opens a new file without a name, below $TMPDIR or /var/tmp. Returns its descriptor or -errno. */
int io_open_unlinked(void);
/* For a process that cannot open files: `open` is called in place of io_open_unlinked(), and returns the same. */
void io_open_unlinked_by(int (*open)(void));
/* Writes `bytes` of the file `from`, or those that it has from `at` on, to the position of `to`. 0 or -errno. */
int io_copy(int from, uint64_t at, uint64_t bytes, int to);
/* A file in memory (memfd_create(), MFD_ALLOW_SEALING) can be neither written nor cut from now on. 0 or -errno. */
int io_seal(int fd);
/*
 * For a descriptor that another user's process has sent. Returns the size of the file, or -errno: -EPERM if it is none
 * that was sealed, which might change, end or keep its reader waiting; -EFBIG if it has more bytes, or holes.
 */
int64_t io_sealed_bytes(int fd, uint64_t most);

/*
 * Output goes to a temporary file beside the target, which is renamed on success. io_output_open() creates the
 * temporary file, so an unwritable place is known before any work is done. Path "-" means stdout; stdout, pipes and
 * devices are written directly. `file` has no descriptor: do not call fileno() on it. Its position can be set only in a
 * regular file; after a write has failed, that makes later writes possible again.
 */
struct io_sink;
struct io_temporary;
/* Who may read a new file. A NULL pointer means: as the umask decides. */
struct io_access {
	bool is_private; /* the contents concern others: only the owner and `group` may read */
	gid_t group; /* IO_NO_GROUP for no group */
	/* A plain file of ours is not replaced: it keeps its mode and links. io_output_cut() before the first write. */
	bool in_place;
};
#define IO_NO_GROUP ((gid_t)-1)

struct io_output {
	FILE *file;
	struct io_sink *sink;
	struct out_path at; /* its name is NULL for stdout */
	struct io_temporary *temporary; /* in the same folder; NULL when written directly, or published */
	bool is_published;
};

/* Returns 0 or -errno: -EACCES also for a link or a pipe that another user may have put there. */
int io_output_open(struct io_output *out, const char *path, const struct io_access *access);
/* The same for a name that duet has made, in an open folder: replaces whatever has it, also a link or a pipe. */
int io_output_create(struct io_output *out, int dir, const char *name, const struct io_access *access);
/*
 * Opens or makes a file of ours that is kept, by the same rules. Returns a descriptor, or -errno: -EACCES also for a
 * file that another user may have put there.
 */
int io_open_own(const char *path, int flags, mode_t mode);
/* As io_output_open(), for a descriptor or -errno, of which it takes ownership: only writes to it. */
int io_output_take(struct io_output *out, int fd);
/* Returns a copy of the output's descriptor, or -errno. */
int io_output_copy(const struct io_output *out);
/* Returns the first write error so far (such as -ENOSPC), or 0. stdio itself does not keep the error number. */
int io_output_error(const struct io_output *out);
/* Cuts a regular file off at the position of `file`. */
void io_output_cut(struct io_output *out);
/* Renames an incomplete file now; later writes append to it. Returns 0, or -errno with the old file unchanged. */
int io_output_publish(struct io_output *out);
/* Flushes, syncs and closes what io_output_commit() then gives its name. Returns 0 or -errno. */
int io_output_close(struct io_output *out);
/* Flushes, syncs, renames and releases. Returns 0, or -errno (such as -ENOSPC) with the old file unchanged. */
int io_output_commit(struct io_output *out);
/*
 * Ends the output after a writer that returned `err`: commits it, or after an error discards it. Returns 0, or -errno:
 * the stream's error if it has one, else the writer's.
 */
int io_output_end(struct io_output *out, int err);
/* Removes the temporary file and releases. A published file stays. Nothing for NULL or after io_output_commit(). */
void io_output_discard(struct io_output *out);
/* What to do about the error of an output, after its text: "; …", or "". */
const char *io_advice(int err);
/* Where to write what could not be written in its place: the first folder, the second, …; NULL after the last one. */
const char *io_other_folder(size_t i);
/* Removes those of all outputs that this process has opened. For the handler of a signal that ends it. */
void io_remove_temporaries(void);
