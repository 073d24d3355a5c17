/* SPDX-License-Identifier: MIT */
/* For LD_PRELOAD: the process sees the time of day an hour ahead, as if the clock were set back whenever it looks. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, time);

	if (!result && clock == CLOCK_REALTIME)
		time->tv_sec += 3600;
	return result;
}
