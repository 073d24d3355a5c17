/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * For a child of a test: gives it precedence, so that a busy machine leaves it the CPU time that the test measures. If
 * the kernel groups processes by session (sched(7), autogroup), a priority counts within the session only. So the child
 * makes a session of its own, which has precedence, too.
 */
static inline void take_precedence(void)
{
	FILE *file;

	setpriority(PRIO_PROCESS, 0, -20);
	setsid();
	file = fopen("/proc/self/autogroup", "we");
	if (!file)
		return;
	fputs("-20", file);
	fclose(file); /* without the right to it, the test continues without it */
}
