/* SPDX-License-Identifier: MIT */
/*
 * A process that opens probes in files and keeps a copy of each until the loader has closed its own. To set a probe or
 * to remove it, the kernel waits for the lock of the mappings of each process that maps the file, whoever it belongs
 * to, and no signal ends the wait. A process can hold that lock for ever, with a page that never comes. So the
 * loader neither sets a probe nor closes the last descriptor of one.
 */
#ifndef COLLECT_PROBE_KEEPER_H
#define COLLECT_PROBE_KEEPER_H

#include <stddef.h>

/*
 * Calls open_probe(context, 0), … (context, count - 1) in the new process, each of which returns a descriptor or
 * -errno, and fills ret_fds. The process has only one descriptor of the loader's: `kept`. Returns the descriptor that
 * keeps the process alive: the caller closes it after those in ret_fds. Or -errno, with no descriptor left: -ETIMEDOUT
 * when the kernel has not set a probe for some seconds.
 */
int probe_keeper_open(int (*open_probe)(const void *context, size_t i), const void *context, size_t count, int kept,
		      int *ret_fds);

#endif
