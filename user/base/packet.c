/* SPDX-License-Identifier: MIT */
#include "base/packet.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

union rights {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int packet_send(int socket, const void *bytes, size_t len, int fd, int flags)
{
	union rights rights = {
		.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct iovec part = {(void *)bytes, len};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&rights.head), &fd, sizeof(fd));
		message.msg_control = rights.bytes;
		message.msg_controllen = sizeof(rights.bytes);
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0 ? -errno : 0;
}

/* Signals do not make it longer. Returns 0 or -errno. */
static int await(int socket, int timeout_ms)
{
	uint64_t until_ns = clock_monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS, now_ns;
	struct pollfd waiting = {.fd = socket, .events = POLLIN};
	int ready = -1;

	while (timeout_ms >= 0 && ready < 0) {
		now_ns = clock_monotonic_ns();
		ready = poll(&waiting, 1, now_ns < until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) + 1 : 0);
		if (ready < 0 && errno != EINTR)
			return -errno;
	}
	return ready ? 0 : -ETIMEDOUT;
}

ssize_t packet_receive(int socket, void *bytes, size_t size, int timeout_ms, int *ret_fd)
{
	union rights rights;
	struct iovec part = {bytes, size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	const struct cmsghdr *head;
	ssize_t len;
	int err = await(socket, timeout_ms);

	*ret_fd = -1;
	if (err)
		return err;
	do
		len = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len <= 0)
		return len < 0 ? -errno : 0;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(head), sizeof(*ret_fd));
	return len;
}
