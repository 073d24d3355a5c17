/* SPDX-License-Identifier: MIT */
/* Sends our state to systemd, as sd_notify(3): one datagram to $NOTIFY_SOCKET; nothing if that is not set. */
#pragma once

#include <stdint.h>

struct notify {
	int fd; /* connected socket; -1 = no systemd */
	uint64_t watchdog_ns; /* half of systemd's watchdog timeout; 0 = no watchdog */
	uint64_t fed_ns;
};

void notify_open(struct notify *notify);
void notify_close(struct notify *notify);
void notify_send(const struct notify *notify, const char *state); /* "READY=1" */
void notify_reloading(const struct notify *notify);
/* Call often: sends "WATCHDOG=1" when it is due. */
void notify_watchdog(struct notify *notify);
