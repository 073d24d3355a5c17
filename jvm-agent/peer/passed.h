/* SPDX-License-Identifier: MIT */
/* Descriptors that came with a message (SCM_RIGHTS). */
#ifndef PEER_PASSED_H
#define PEER_PASSED_H

#include <sys/socket.h>

/* bytes of msg_control; more descriptors than so many do not arrive. Fewer do not help: the kernel rounds up. */
#define PASSED_MAX 4
union passed {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(PASSED_MAX * sizeof(int))];
};

/* Stores the first `count` descriptors, which the caller owns, and -1 for missing ones. Closes all others. */
void passed_take(struct msghdr *message, int *ret_fds, int count);

#endif
