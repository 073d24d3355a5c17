/* SPDX-License-Identifier: MIT */
#include "base/packet.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"

union rights {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
};

int packet_send_parts(int socket, const struct iovec *parts, size_t count, const int *fds, size_t fd_count, int flags)
{
	union rights rights = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
	ssize_t len;

	if (fd_count > PACKET_FDS_MAX)
		return -EINVAL;
	if (fd_count) {
		rights.head.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&rights.head), fds, fd_count * sizeof(int));
		message.msg_control = rights.bytes;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	do
		len = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
	while (len < 0 && errno == EINTR);
	return len < 0 ? -errno : 0;
}

int packet_send(int socket, const void *bytes, size_t len, int fd, int flags)
{
	const struct iovec part = {(void *)bytes, len};

	return packet_send_parts(socket, &part, 1, &fd, fd >= 0, flags);
}

/* The room for one descriptor is rounded up, and the kernel fills it. Returns the first descriptor, or -1. */
static int take_descriptor(struct msghdr *message)
{
	int first = -1;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
		size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(head) + i * sizeof(fd), sizeof(fd));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

ssize_t packet_receive_parts(int socket, const struct iovec *parts, size_t count, int flags, int *ret_fd)
{
	union rights rights;
	struct msghdr message = {.msg_iov = (struct iovec *)parts,
				 .msg_iovlen = count,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	ssize_t len;

	*ret_fd = -1;
	do
		len = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	*ret_fd = take_descriptor(&message);
	return len;
}

ssize_t packet_receive(int socket, void *bytes, size_t size, int timeout_ms, int *ret_fd)
{
	const struct iovec part = {bytes, size};
	uint64_t until_ns = clock_monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	int err = timeout_ms < 0 ? 0 : signals_wait(socket, POLLIN, until_ns);

	*ret_fd = -1;
	return err ? err : packet_receive_parts(socket, &part, 1, 0, ret_fd);
}
