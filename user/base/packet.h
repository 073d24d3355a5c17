/* SPDX-License-Identifier: MIT */
/* Packets over a SOCK_SEQPACKET socket, which may bring descriptors. Surplus ones that arrive are closed. */
#pragma once

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PACKET_FDS_MAX 3 /* most descriptors of a packet that is sent */

/* `fd`: a descriptor of which the receiver gets a copy; -1 for none. `len` is at least 1. Returns 0 or -errno. */
int packet_send(int socket, const void *bytes, size_t len, int fd, int flags);
/*
 * Returns the number of bytes, 0 at the end, or -errno: as signals_wait() if no packet comes within `timeout_ms` (-1 =
 * no limit). *ret_fd is a descriptor owned by the caller, or -1.
 */
ssize_t packet_receive(int socket, void *bytes, size_t size, int timeout_ms, int *ret_fd);
/*
 * The same for a packet in several parts and with several descriptors. Receiving waits without a limit unless `flags`
 * say otherwise, and ends with -errno or the number of bytes; *ret_fd is set in any case.
 */
int packet_send_parts(int socket, const struct iovec *parts, size_t count, const int *fds, size_t fd_count,
		      int flags);
ssize_t packet_receive_parts(int socket, const struct iovec *parts, size_t count, int flags, int *ret_fd);
