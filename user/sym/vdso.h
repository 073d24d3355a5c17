/* SPDX-License-Identifier: MIT */
/*
 * The library that the kernel maps into each process. It is no file, and that process's memory is not ours to read: a
 * page of it may be anything by now, one of a FUSE file that never comes for instance. But one kernel has one such
 * library for each kind of process, so ours is also that of the others of our kind.
 */
#ifndef SYM_VDSO_H
#define SYM_VDSO_H

#include <stddef.h>

#include "proc/maps.h"

/* The image, static, of a "[vdso]" mapping. NULL of a process of another kind, with 32 bits: its frames are offsets. */
void *vdso_of(const struct mapping *mapping, size_t *ret_bytes);

#endif
