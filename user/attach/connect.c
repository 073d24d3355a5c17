/* SPDX-License-Identifier: MIT */
#include "attach/connect.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/* ECONNREFUSED: nobody listens yet. EAGAIN: the backlog is full. */
static bool worth_retrying(int error)
{
	return error == -ECONNREFUSED || error == -EAGAIN || error == -EINTR;
}

static int connect_once(int fd, const char *control)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = strlen(control);

	if (len == 0 || len >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path + 1, control, len);
	len += offsetof(struct sockaddr_un, sun_path) + 1;
	return connect(fd, (struct sockaddr *)&address, len) < 0 ? -errno : 0;
}

/* A name given on a command line (-agentpath) is not secret, so another process may have bound it first. */
static int check_peer(struct visit *visit, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid == visit->target->pid)
		return 0;
	return visit_fail(visit, -EPERM, "the control socket of JVM %d is held by another process: attach again",
			  visit->target->pid);
}

static int prove(struct visit *visit, int fd, const char *secret)
{
	struct duet_message_proof proof = {
		.head = {.size = sizeof(proof), .type = DUET_MESSAGE_PROOF, .version = DUET_AGENT_VERSION}};

	memcpy(proof.secret, secret, sizeof(proof.secret));
	if (send(fd, &proof, sizeof(proof), MSG_NOSIGNAL) == sizeof(proof))
		return 0;
	return visit_fail(visit, -EPIPE, "the agent in JVM %d closed its control socket", visit->target->pid);
}

int connect_control(struct visit *visit, const struct attach_control *control)
{
	int err, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return visit_fail(visit, -errno, "cannot create a socket: %s", strerror(errno));
	while (worth_retrying(err = connect_once(fd, control->name))) {
		err = visit_pause(visit, 2 * NS_PER_MS);
		if (err)
			goto out;
	}
	if (err)
		visit_fail(visit, err, "cannot connect to the agent in JVM %d: %s", visit->target->pid, strerror(-err));
	else
		err = check_peer(visit, fd);
	if (!err)
		err = prove(visit, fd, control->secret);
out:
	if (err)
		close(fd);
	return err ? err : fd;
}
