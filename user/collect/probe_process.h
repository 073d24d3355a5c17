/* SPDX-License-Identifier: MIT */
/*
 * A process that opens probes in files and keeps a copy of each until the loader has closed its own. To set a probe or
 * to remove it, the kernel waits for the lock of the mappings of each process that maps the file, whoever it belongs
 * to, and no signal ends the wait. A process can hold that lock for ever, with a page that never comes. So the
 * loader neither sets a probe nor closes the last descriptor of one.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct probe_process {
	int socket; /* keeps the process alive; 0 = none */
	pid_t pid;
};

/*
 * Calls open_probe(context, 0), … (context, count - 1) in the new process, each of which returns a descriptor or
 * -errno, and fills ret_fds. The process has only one descriptor of the loader's: `kept`. Returns 0, and the caller
 * calls probe_process_close() after it has closed those in ret_fds. Or -errno, with no descriptor left: -ETIMEDOUT when
 * the kernel has not set a probe for some seconds.
 */
int probe_process_open(struct probe_process *process, int (*open_probe)(const void *context, size_t i),
		       const void *context, size_t count, int kept, int *ret_fds);
/* Ends the process, and collects it if the kernel removes the probes within a fifth of a second. Takes one of zeros. */
void probe_process_close(struct probe_process *process);
