/* SPDX-License-Identifier: MIT */
/* What systemd is told, as in sd_notify(3): one datagram to $NOTIFY_SOCKET. Where nobody listens, nothing happens. */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdint.h>
#include <sys/types.h>

struct notify {
	int fd; /* connected; -1: nobody listens */
	uint64_t watchdog_ns; /* half of what systemd waits for a sign of life; 0 = it does not */
	uint64_t fed_ns;
};

void notify_open(struct notify *notify);
void notify_close(struct notify *notify);
void notify_send(const struct notify *notify, const char *state); /* "READY=1" */
void notify_reloading(const struct notify *notify);
/* To be called often: tells at due times that the caller lives. */
void notify_watchdog(struct notify *notify);

#endif
