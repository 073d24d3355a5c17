/* SPDX-License-Identifier: MIT */
#include "status/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

/* WATCHDOG_PID is the process that the variables are for: children inherit them. */
static uint64_t watchdog_ns(void)
{
	const char *pid = getenv("WATCHDOG_PID"), *usec = getenv("WATCHDOG_USEC");

	if (!usec || (pid && atoi(pid) != getpid()))
		return 0;
	return strtoull(usec, NULL, 10) * NS_PER_US / 2;
}

void notify_open(struct notify *notify)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	socklen_t len;

	*notify = (struct notify){.fd = -1, .watchdog_ns = watchdog_ns()};
	if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, strlen(path));
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* abstract: without a NUL at the end */
	notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (notify->fd >= 0 && connect(notify->fd, (struct sockaddr *)&to, len) < 0)
		notify_close(notify);
}

void notify_close(struct notify *notify)
{
	io_close(&notify->fd);
}

void notify_send(const struct notify *notify, const char *state)
{
	if (notify->fd >= 0)
		(void)send(notify->fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void notify_reloading(const struct notify *notify)
{
	char state[64];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)(clock_monotonic_ns() / NS_PER_US));
	notify_send(notify, state);
}

void notify_watchdog(struct notify *notify)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!notify->watchdog_ns || now_ns - notify->fed_ns < notify->watchdog_ns)
		return;
	notify->fed_ns = now_ns;
	notify_send(notify, "WATCHDOG=1");
}
