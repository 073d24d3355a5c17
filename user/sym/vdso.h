/* SPDX-License-Identifier: MIT */
/*
 * The library that the kernel maps into each process. It is not a file. The memory of the other process is not read
 * either: a page there may have been replaced, for instance by a page of a FUSE file that never arrives. But a kernel
 * has only one such library for each kind of process, so ours is the same as that of other 64-bit processes.
 */
#pragma once

#include <stddef.h>

#include "proc/maps.h"

/*
 * The image of a "[vdso]" mapping. It is static: do not free it. NULL for a 32-bit process, or if the mapping is not as
 * large as ours; then frames are named by their offsets.
 */
void *vdso_of(const struct mapping *mapping, size_t *ret_bytes);
