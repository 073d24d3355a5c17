/* SPDX-License-Identifier: MIT */
#include "peer/passed.h"

#include <string.h>
#include <unistd.h>

void passed_take(struct msghdr *message, int *ret_fds, int count)
{
	int taken = 0, fd;

	for (int i = 0; i < count; i++)
		ret_fds[i] = -1;
	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + CMSG_LEN(sizeof(fd)) <= head->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(head) + at, sizeof(fd));
			if (taken < count)
				ret_fds[taken++] = fd;
			else
				close(fd);
		}
	}
}
