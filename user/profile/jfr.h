/* SPDX-License-Identifier: MIT */
/* The parts of JFR files (version 2) that the writer and the reader share. */
#pragma once

#include <stdint.h>

#define JFR_MAGIC "FLR" /* with its NUL */

/* Begins each chunk. Numbers are big-endian, and offsets are from the beginning of the chunk. */
struct jfr_header {
	char magic[4];
	uint16_t major, minor;
	uint64_t bytes; /* of the whole chunk */
	uint64_t pools_at; /* offset of the last event of type JFR_POOLS */
	uint64_t metadata_at;
	uint64_t start_ns; /* since 1970 */
	uint64_t duration_ns;
	uint64_t start_ticks; /* the ticks at start_ns */
	uint64_t ticks_per_second;
	uint32_t features;
} __attribute__((packed));

#define JFR_MAJOR 2
#define JFR_COMPRESSED 1 /* feature bit: integers have a variable length */

/* Types of events that the metadata does not describe. */
enum { JFR_METADATA = 0, JFR_POOLS = 1 };

/* First byte of a string. */
enum jfr_encoding { JFR_NULL, JFR_EMPTY, JFR_OF_POOL, JFR_UTF8, JFR_CHARS, JFR_LATIN1 };

/* Numbers of jdk.types.FrameType. async-profiler has the same, and its converter knows them by number. */
enum jfr_frame_type {
	JFR_FRAME_INTERPRETED,
	JFR_FRAME_COMPILED,
	JFR_FRAME_INLINED,
	JFR_FRAME_NATIVE,
	JFR_FRAME_CPP,
	JFR_FRAME_KERNEL,
	JFR_FRAME_C1,
	JFR_FRAME_TYPES
};

#define JFR_ACC_NATIVE 0x100 /* bit of a method's modifiers */
/* Descriptors of code that is not Java, as async-profiler writes them: native code, and the kernel's. */
#define JFR_NOT_JAVA "()L;"
#define JFR_KERNEL "(Lk;)L;"
/* duet's own descriptors, of frames that are not code. */
#define JFR_MARK "(Lmark;)L;"
#define JFR_STATE "(Lstate;)L;"
#define JFR_SPAN "(Lspan;)L;"
#define JFR_WAKER "(Lwaker;)L;"
#define JFR_CPU "(Lcpu;)L;" /* names have no brackets */
#define JFR_THREAD "(Lthread;)L;"
#define JFR_PROCESS "(Lprocess;)L;"
#define JFR_CONTAINER "(Lcontainer;)L;"
#define JFR_OBJECT "(Lclass;)L;" /* for events without a field that has the class */

/* duet's own types. */
#define JFR_TYPE_PROCESS "duet.types.Process"
#define JFR_TYPE_WEIGHT "duet.Weight"
#define JFR_TYPE_CONTEXT "duet.Context"
#define JFR_TYPE_HOLDER "duet.Holder"
#define JFR_TYPE_FACT "duet.Fact"
/* Prefix of an event's name, as in duet.PageFaults, for samples for which the JDK has no type. */
#define JFR_TYPE_OWN "duet."

/* Names of jdk.ActiveSetting. */
#define JFR_SETTING_EVENT "event" /* of the recording, once: readers keep the last */
#define JFR_SETTING_NAME "eventName" /* of the event whose samples have this type */
#define JFR_SETTING_INTERVAL "interval"
#define JFR_SETTING_PERIOD "period"
#define JFR_SETTING_UNIT "unit"
#define JFR_SETTING_PROCESSES "processes"
#define JFR_SETTING_USAGES "proc" /* of profiler.ProcessSample, in seconds */
