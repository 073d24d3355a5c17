/* SPDX-License-Identifier: MIT */
/* The types that a JFR file describes at the beginning of each chunk. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "profile/profile.h"

/*
 * Numbers of the types. Some readers know async-profiler's by number, so what it has, has its number: pools up to 34,
 * events from 101, annotations from 201.
 */
enum jfr_type {
	JFR_T_BOOLEAN = 4,
	JFR_T_CHAR,
	JFR_T_FLOAT,
	JFR_T_DOUBLE,
	JFR_T_BYTE,
	JFR_T_SHORT,
	JFR_T_INT,
	JFR_T_LONG,
	JFR_T_STRING = 20,
	JFR_T_CLASS,
	JFR_T_THREAD,
	JFR_T_CLASS_LOADER,
	JFR_T_FRAME_TYPE,
	JFR_T_THREAD_STATE,
	JFR_T_STACK_TRACE,
	JFR_T_STACK_FRAME,
	JFR_T_METHOD,
	JFR_T_VIRTUAL_SPACE,
	JFR_T_PACKAGE,
	JFR_T_SYMBOL,
	JFR_T_GC_WHEN,
	JFR_T_LOG_LEVEL,
	JFR_T_USER_EVENT_TYPE,
	JFR_T_PROCESS,
	JFR_T_OLD_OBJECT,
	JFR_T_FLAG_ORIGIN,
	JFR_E_EXECUTION_SAMPLE = 101, /* events from here on */
	JFR_E_ALLOCATION_IN_NEW_TLAB,
	JFR_E_ALLOCATION_OUTSIDE_TLAB,
	JFR_E_MONITOR_ENTER,
	JFR_E_THREAD_PARK,
	JFR_E_CPU_LOAD,
	JFR_E_ACTIVE_RECORDING,
	JFR_E_ACTIVE_SETTING,
	JFR_E_OS_INFORMATION,
	JFR_E_CPU_INFORMATION,
	JFR_E_JVM_INFORMATION,
	JFR_E_SYSTEM_PROPERTY,
	JFR_E_NATIVE_LIBRARY,
	JFR_E_HEAP_SUMMARY,
	JFR_E_METHOD_TRACE,
	JFR_E_LOG,
	JFR_E_WINDOW,
	JFR_E_LIVE_OBJECT,
	JFR_E_WALL_CLOCK_SAMPLE,
	JFR_E_MALLOC,
	JFR_E_FREE,
	JFR_E_NATIVE_LOCK,
	JFR_E_SPAN,
	JFR_E_USER_EVENT,
	JFR_E_PROCESS_SAMPLE,
	JFR_E_CPU_TIME_SAMPLE, /* those that async-profiler does not have */
	JFR_E_ALLOCATION_SAMPLE,
	JFR_E_OLD_OBJECT_SAMPLE,
	JFR_E_MONITOR_WAIT,
	JFR_E_EXCEPTION,
	JFR_E_ERROR, /* has no events: the JDK's view of exceptions asks for the type */
	JFR_E_THREAD_SLEEP, /* this one and the next four have no events: views ask for their types */
	JFR_E_SOCKET_READ,
	JFR_E_SOCKET_WRITE,
	JFR_E_FILE_READ,
	JFR_E_FILE_WRITE,
	JFR_E_WEIGHT,
	JFR_E_CONTEXT,
	JFR_E_HOLDER,
	JFR_E_DATA_LOSS,
	JFR_E_THREAD_STATISTICS,
	JFR_E_THREAD_CPU_LOAD,
	JFR_E_THREAD_ALLOCATION,
	JFR_E_PHYSICAL_MEMORY,
	JFR_E_SYSTEM_PROCESS,
	JFR_E_BOOLEAN_FLAG,
	JFR_E_LONG_FLAG,
	JFR_E_STRING_FLAG,
	JFR_E_GARBAGE_COLLECTION,
	JFR_E_GC_PAUSE,
	JFR_E_SAFEPOINT_BEGIN,
	JFR_E_SAFEPOINT_STOPPING,
	JFR_E_SAFEPOINT_END,
	JFR_E_COMPILATION,
	JFR_E_CLASS_LOAD,
	JFR_E_FACT,
	JFR_E_RESOURCE,
	JFR_T_LABEL = 201,
	JFR_T_CATEGORY,
	JFR_T_CONTENT_TYPE,
	JFR_T_TIMESTAMP,
	JFR_T_TIMESPAN,
	JFR_T_DATA_AMOUNT,
	JFR_T_MEMORY_ADDRESS,
	JFR_T_UNSIGNED,
	JFR_T_PERCENTAGE,
	JFR_T_CONTEXTUAL, /* of JDK 25: what the field is about belongs to other events, too */
	JFR_E_OWN = 300, /* plus the index of the event: the type duet.Name */
	JFR_E_DECLARED = 2000, /* plus the index of a type without events */
};

/*
 * Is added to the numbers of all types in a file that also has the JDK's chunks: its tools take the numbers of types
 * for the same in all chunks.
 */
#define JFR_BESIDE_JDK (1u << 20)

struct jfr_pools;

/*
 * Appends the event that describes all types. `own` has a flag for each event of the profile: it has a type duet.Name.
 * `pools` has what is added to the numbers of types, and which fields are left out. Returns 0 or -ENOMEM.
 */
int jfr_put_metadata(struct buf *out, const struct profile *profile, const bool *own, uint64_t ticks,
		     const struct jfr_pools *pools);
