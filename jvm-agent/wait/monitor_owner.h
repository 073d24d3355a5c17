/* SPDX-License-Identifier: MIT */
/* Who has a monitor for which a thread is about to wait, as HotSpot knows it. */
#ifndef WAIT_MONITOR_OWNER_H
#define WAIT_MONITOR_OWNER_H

#include <stdint.h>

void monitor_owner_open(void); /* called on the agent's thread, before the other function is used */
/* Returns the tid of the owner; 0: not known. Called by a thread in MonitorContendedEnter, for the monitor of that. */
uint32_t monitor_owner(void);

#endif
