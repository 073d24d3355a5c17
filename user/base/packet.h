/* SPDX-License-Identifier: MIT */
/* Packets between two processes over a SOCK_SEQPACKET socket; a packet may bring a descriptor. */
#ifndef BASE_PACKET_H
#define BASE_PACKET_H

#include <stddef.h>
#include <sys/types.h>

/* `fd`: a descriptor of which the receiver gets a copy; -1 for none. `len` is at least 1. Returns 0 or -errno. */
int packet_send(int socket, const void *bytes, size_t len, int fd, int flags);
/*
 * Returns the number of bytes, 0 at the end, or -errno: -ETIMEDOUT if no packet comes within `timeout_ms` (-1 = no
 * limit). *ret_fd is a descriptor owned by the caller, or -1.
 */
ssize_t packet_receive(int socket, void *bytes, size_t size, int timeout_ms, int *ret_fd);

#endif
