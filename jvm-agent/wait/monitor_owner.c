/* SPDX-License-Identifier: MIT */
#include "wait/monitor_owner.h"

#include <stddef.h>

#include "hotspot/jvmstructs.h"
#include "hotspot/vmstructs.h"
#include "jvm/jvm.h"
#include "memory.h"

/*
 * From JDK 24 on, whoever gets a monitor after a wait was woken for it, so that nobody asks; and HotSpot keeps a number
 * in place of the JavaThread.
 */
#define LAST_VERSION 23

static struct offset thread_monitor, owner;

static const struct vmstructs_row rows[] = {
	{"JavaThread", "_current_pending_monitor", &thread_monitor, NULL},
	{"Thread", "_current_pending_monitor", &thread_monitor, NULL},
	{"ObjectMonitor", "_owner", &owner, NULL},
};

void monitor_owner_open(void)
{
	if (jvm.version <= LAST_VERSION && !owner.known)
		(void)vmstructs_read(rows, sizeof(rows) / sizeof(rows[0]));
}

/*
 * The monitor stays as long as a thread waits for it, but its owner may end. The owner is a JavaThread or, as long as a
 * thread has the monitor that had it when it was a lock word, a place on that thread's stack.
 */
uint32_t monitor_owner(void)
{
	uintptr_t thread = jvm_current_thread(), monitor, java_thread, vtable;

	if (!thread || !thread_monitor.known || !owner.known)
		return 0;
	monitor = *(const uintptr_t *)(thread + thread_monitor.value);
	if (!monitor)
		return 0;
	java_thread = __atomic_load_n((const uintptr_t *)(monitor + owner.value), __ATOMIC_RELAXED);
	if (memory_copy(&vtable, java_thread, sizeof(vtable)) != sizeof(vtable) || vtable != jvm.thread_vtable)
		return 0;
	return (uint32_t)jvmstructs_thread_id(java_thread);
}
