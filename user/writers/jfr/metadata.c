/* SPDX-License-Identifier: MIT */
/*
 * Types and their fields. async-profiler's converter reads the fields of an event by their position. So the types that
 * it knows have the same fields as in its own files. More fields may only follow these, and in pools they may only be
 * numbers.
 */
#include "writers/jfr/metadata.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "profile/jfr.h"
#include "writers/jfr/bytes.h"

enum flag {
	OF_POOL = 1 << 0,
	ARRAY = 1 << 1,
	TICKS = 1 << 2, /* a time in ticks */
	MILLISECONDS = 1 << 3, /* a time in milliseconds since 1970 */
	TICKS_LONG = 1 << 4, /* a length in ticks */
	MILLISECONDS_LONG = 1 << 5,
	BYTES = 1 << 6,
	NANOSECONDS_LONG = 1 << 7,
	ADDRESS = 1 << 8,
	UNSIGNED = 1 << 9,
	PERCENTAGE = 1 << 10,
	CONTEXTUAL = 1 << 11,
};

struct field {
	const char *name;
	enum jfr_type type;
	const char *label;
	unsigned flags;
};

enum kind { STRUCTURE, SIMPLE, EVENT, ANNOTATION };

#define FIELDS_MAX 21

struct type {
	const char *name;
	enum jfr_type id;
	enum kind kind;
	const char *label;
	const char *category, *subcategory; /* only for events */
	struct field fields[FIELDS_MAX]; /* ends with a NULL name */
};

#define START_TIME {"startTime", JFR_T_LONG, "Start Time", TICKS}
#define SAMPLED_THREAD {"sampledThread", JFR_T_THREAD, "Thread", OF_POOL}
#define EVENT_THREAD {"eventThread", JFR_T_THREAD, "Event Thread", OF_POOL}
#define DURATION {"duration", JFR_T_LONG, "Duration", TICKS_LONG}
#define STACK_TRACE {"stackTrace", JFR_T_STACK_TRACE, "Stack Trace", OF_POOL}
#define STATE {"state", JFR_T_THREAD_STATE, "Thread State", OF_POOL}
#define FLAG_NAME {"name", JFR_T_STRING, "Name", 0}
#define FLAG_ORIGIN {"origin", JFR_T_FLAG_ORIGIN, "Origin", OF_POOL}
#define GC_ID {"gcId", JFR_T_INT, "GC Identifier", UNSIGNED}
#define SAFEPOINT_ID {"safepointId", JFR_T_LONG, "Safepoint Identifier", UNSIGNED}
#define JVM "Java Virtual Machine"
#define APPLICATION "Java Application"
#define RECORDER "Flight Recorder"
#define PROFILER "Profiler"

/* clang-format off */
static const struct type types[] = {
	{"boolean", JFR_T_BOOLEAN, STRUCTURE, .label = NULL},
	{"byte", JFR_T_BYTE, STRUCTURE, .label = NULL},
	{"float", JFR_T_FLOAT, STRUCTURE, .label = NULL},
	{"int", JFR_T_INT, STRUCTURE, .label = NULL},
	{"long", JFR_T_LONG, STRUCTURE, .label = NULL},
	{"java.lang.String", JFR_T_STRING, STRUCTURE, .label = NULL},
	{"java.lang.Class", JFR_T_CLASS, STRUCTURE, "Java Class", .fields = {
		{"classLoader", JFR_T_CLASS_LOADER, "Class Loader", OF_POOL},
		{"name", JFR_T_SYMBOL, "Name", OF_POOL},
		{"package", JFR_T_PACKAGE, "Package", OF_POOL},
		{"modifiers", JFR_T_INT, "Access Modifiers", 0},
		{"sourceFile", JFR_T_SYMBOL, "Source File", OF_POOL}}},
	{"java.lang.Thread", JFR_T_THREAD, STRUCTURE, "Thread", .fields = {
		{"osName", JFR_T_STRING, "OS Thread Name", 0},
		{"osThreadId", JFR_T_LONG, "OS Thread Id", 0},
		{"javaName", JFR_T_STRING, "Java Thread Name", 0},
		{"javaThreadId", JFR_T_LONG, "Java Thread Id", 0},
		{"virtual", JFR_T_BOOLEAN, "Virtual Thread", 0},
		{"process", JFR_T_PROCESS, "Process", OF_POOL}}},
	{"jdk.types.ClassLoader", JFR_T_CLASS_LOADER, STRUCTURE, "Java Class Loader", .fields = {
		{"type", JFR_T_CLASS, "Type", OF_POOL},
		{"name", JFR_T_SYMBOL, "Name", OF_POOL}}},
	{"jdk.types.FrameType", JFR_T_FRAME_TYPE, SIMPLE, "Frame type", .fields = {
		{"description", JFR_T_STRING, "Description", 0}}},
	{"jdk.types.ThreadState", JFR_T_THREAD_STATE, SIMPLE, "Java Thread State", .fields = {
		{"name", JFR_T_STRING, "Name", 0}}},
	{"jdk.types.StackTrace", JFR_T_STACK_TRACE, STRUCTURE, "Stacktrace", .fields = {
		{"truncated", JFR_T_BOOLEAN, "Truncated", 0},
		{"frames", JFR_T_STACK_FRAME, "Stack Frames", ARRAY}}},
	{"jdk.types.StackFrame", JFR_T_STACK_FRAME, STRUCTURE, NULL, .fields = {
		{"method", JFR_T_METHOD, "Java Method", OF_POOL},
		{"lineNumber", JFR_T_INT, "Line Number", 0},
		{"bytecodeIndex", JFR_T_INT, "Bytecode Index", 0},
		{"type", JFR_T_FRAME_TYPE, "Frame Type", OF_POOL}}},
	{"jdk.types.Method", JFR_T_METHOD, STRUCTURE, "Java Method", .fields = {
		{"type", JFR_T_CLASS, "Type", OF_POOL},
		{"name", JFR_T_SYMBOL, "Name", OF_POOL},
		{"descriptor", JFR_T_SYMBOL, "Descriptor", OF_POOL},
		{"modifiers", JFR_T_INT, "Access Modifiers", 0},
		{"hidden", JFR_T_BOOLEAN, "Hidden", 0}}},
	{"jdk.types.Package", JFR_T_PACKAGE, STRUCTURE, "Package", .fields = {
		{"name", JFR_T_SYMBOL, "Name", OF_POOL}}},
	{"jdk.types.Symbol", JFR_T_SYMBOL, SIMPLE, "Symbol", .fields = {{"string", JFR_T_STRING, "String", 0}}},
	{JFR_TYPE_PROCESS, JFR_T_PROCESS, STRUCTURE, "Process", .fields = {
		{"pid", JFR_T_INT, "Process Identifier", 0},
		{"name", JFR_T_STRING, "Name", 0},
		{"container", JFR_T_STRING, "Container", 0}}},

	{"jdk.types.OldObject", JFR_T_OLD_OBJECT, STRUCTURE, "Old Object", .fields = {
		{"address", JFR_T_LONG, "Memory Address", ADDRESS | UNSIGNED},
		{"type", JFR_T_CLASS, "Java Class", OF_POOL},
		{"description", JFR_T_STRING, "Object Description", 0}}},

	{"jdk.types.VirtualSpace", JFR_T_VIRTUAL_SPACE, STRUCTURE, NULL, .fields = {
		{"start", JFR_T_LONG, "Start Address", ADDRESS},
		{"committedEnd", JFR_T_LONG, "Committed End Address", ADDRESS},
		{"committedSize", JFR_T_LONG, "Committed Size", BYTES},
		{"reservedEnd", JFR_T_LONG, "Reserved End Address", ADDRESS},
		{"reservedSize", JFR_T_LONG, "Reserved Size", BYTES}}},
	{"jdk.types.GCWhen", JFR_T_GC_WHEN, SIMPLE, "GC When", .fields = {{"when", JFR_T_STRING, "When", 0}}},
	{"jdk.types.FlagValueOrigin", JFR_T_FLAG_ORIGIN, SIMPLE, "Flag Value Origin", .fields = {
		{"origin", JFR_T_STRING, "Origin", 0}}},
	{"profiler.types.LogLevel", JFR_T_LOG_LEVEL, SIMPLE, "Log Level", .fields = {
		{"name", JFR_T_STRING, "Name", 0}}},
	{"profiler.types.UserEventType", JFR_T_USER_EVENT_TYPE, SIMPLE, "User-Defined Event Type", .fields = {
		{"name", JFR_T_STRING, "Name", 0}}},

	{"jdk.jfr.Label", JFR_T_LABEL, ANNOTATION, NULL, .fields = {{"value", JFR_T_STRING, NULL, 0}}},
	{"jdk.jfr.Category", JFR_T_CATEGORY, ANNOTATION, NULL, .fields = {{"value", JFR_T_STRING, NULL, ARRAY}}},
	{"jdk.jfr.ContentType", JFR_T_CONTENT_TYPE, ANNOTATION, .label = "Content Type"},
	{"jdk.jfr.Timestamp", JFR_T_TIMESTAMP, ANNOTATION, "Timestamp", .fields = {{"value", JFR_T_STRING, NULL, 0}}},
	{"jdk.jfr.Timespan", JFR_T_TIMESPAN, ANNOTATION, "Timespan", .fields = {{"value", JFR_T_STRING, NULL, 0}}},
	{"jdk.jfr.DataAmount", JFR_T_DATA_AMOUNT, ANNOTATION, "Data Amount", .fields = {
		{"value", JFR_T_STRING, NULL, 0}}},
	{"jdk.jfr.MemoryAddress", JFR_T_MEMORY_ADDRESS, ANNOTATION, .label = "Memory Address"},
	{"jdk.jfr.Unsigned", JFR_T_UNSIGNED, ANNOTATION, .label = "Unsigned Value"},
	{"jdk.jfr.Percentage", JFR_T_PERCENTAGE, ANNOTATION, .label = "Percentage"},
	{"jdk.jfr.Contextual", JFR_T_CONTEXTUAL, ANNOTATION, .label = "Contextual"},

	{"jdk.ExecutionSample", JFR_E_EXECUTION_SAMPLE, EVENT, "Method Profiling Sample", JVM, "Profiling", {
		START_TIME, SAMPLED_THREAD, STACK_TRACE, STATE}},
	{"profiler.WallClockSample", JFR_E_WALL_CLOCK_SAMPLE, EVENT, "Wall Clock Sample", JVM, "Profiling", {
		START_TIME, SAMPLED_THREAD, STACK_TRACE, STATE,
		{"samples", JFR_T_INT, "Samples", UNSIGNED},
		{"timeSpan", JFR_T_LONG, "Time Span", TICKS_LONG}}},
	{"jdk.CPUTimeSample", JFR_E_CPU_TIME_SAMPLE, EVENT, "CPU Time Method Sample", JVM, "Profiling", {
		START_TIME, STACK_TRACE, EVENT_THREAD,
		{"failed", JFR_T_BOOLEAN, "Failed", 0},
		{"samplingPeriod", JFR_T_LONG, "CPU Time Sampling Period", TICKS_LONG},
		{"biased", JFR_T_BOOLEAN, "Biased", 0}}},
	{"jdk.ObjectAllocationSample", JFR_E_ALLOCATION_SAMPLE, EVENT, "Object Allocation Sample", APPLICATION, NULL, {
		START_TIME, EVENT_THREAD, STACK_TRACE,
		{"objectClass", JFR_T_CLASS, "Object Class", OF_POOL},
		{"weight", JFR_T_LONG, "Sample Weight", BYTES}}},
	{"jdk.ObjectAllocationInNewTLAB", JFR_E_ALLOCATION_IN_NEW_TLAB, EVENT, "Allocation in new TLAB", APPLICATION,
		NULL, {
		START_TIME, EVENT_THREAD, STACK_TRACE,
		{"objectClass", JFR_T_CLASS, "Object Class", OF_POOL},
		{"allocationSize", JFR_T_LONG, "Allocation Size", BYTES},
		{"tlabSize", JFR_T_LONG, "TLAB Size", BYTES}}},
	{"jdk.ObjectAllocationOutsideTLAB", JFR_E_ALLOCATION_OUTSIDE_TLAB, EVENT, "Allocation outside TLAB",
		APPLICATION, NULL, {
		START_TIME, EVENT_THREAD, STACK_TRACE,
		{"objectClass", JFR_T_CLASS, "Object Class", OF_POOL},
		{"allocationSize", JFR_T_LONG, "Allocation Size", BYTES}}},
	{"profiler.LiveObject", JFR_E_LIVE_OBJECT, EVENT, "Live Object", APPLICATION, NULL, {
		START_TIME, EVENT_THREAD, STACK_TRACE,
		{"objectClass", JFR_T_CLASS, "Object Class", OF_POOL},
		{"allocationSize", JFR_T_LONG, "Allocation Size", BYTES},
		{"allocationTime", JFR_T_LONG, "Allocation Time", TICKS}}},
	{"jdk.OldObjectSample", JFR_E_OLD_OBJECT_SAMPLE, EVENT, "Old Object Sample", JVM, "Profiling", {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"allocationTime", JFR_T_LONG, "Allocation Time", TICKS},
		{"objectSize", JFR_T_LONG, "Object Size", BYTES},
		{"objectAge", JFR_T_LONG, "Object Age", TICKS_LONG},
		{"lastKnownHeapUsage", JFR_T_LONG, "Last Known Heap Usage", BYTES},
		{"object", JFR_T_OLD_OBJECT, "Object", OF_POOL}}},
	{"profiler.Malloc", JFR_E_MALLOC, EVENT, "malloc", JVM, "Native Memory", {
		START_TIME, EVENT_THREAD, STACK_TRACE,
		{"address", JFR_T_LONG, "Address", ADDRESS},
		{"size", JFR_T_LONG, "Size", BYTES}}},
	{"profiler.Free", JFR_E_FREE, EVENT, "free", JVM, "Native Memory", {
		START_TIME, EVENT_THREAD, STACK_TRACE,
		{"address", JFR_T_LONG, "Address", ADDRESS}}},
	{"jdk.JavaMonitorEnter", JFR_E_MONITOR_ENTER, EVENT, "Java Monitor Blocked", APPLICATION, NULL, {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"monitorClass", JFR_T_CLASS, "Monitor Class", OF_POOL},
		{"previousOwner", JFR_T_THREAD, "Previous Monitor Owner", OF_POOL},
		{"address", JFR_T_LONG, "Monitor Address", ADDRESS}}},
	{"jdk.JavaMonitorWait", JFR_E_MONITOR_WAIT, EVENT, "Java Monitor Wait", APPLICATION, NULL, {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"monitorClass", JFR_T_CLASS, "Monitor Class", OF_POOL},
		{"notifier", JFR_T_THREAD, "Notifier Thread", OF_POOL},
		{"timeout", JFR_T_LONG, "Timeout", MILLISECONDS_LONG},
		{"timedOut", JFR_T_BOOLEAN, "Timed Out", 0},
		{"address", JFR_T_LONG, "Monitor Address", ADDRESS}}},
	{"jdk.ThreadPark", JFR_E_THREAD_PARK, EVENT, "Java Thread Park", APPLICATION, NULL, {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"parkedClass", JFR_T_CLASS, "Class Parked On", OF_POOL},
		{"timeout", JFR_T_LONG, "Park Timeout", NANOSECONDS_LONG},
		{"until", JFR_T_LONG, "Park Until", MILLISECONDS},
		{"address", JFR_T_LONG, "Address of Object Parked", ADDRESS}}},
	{"profiler.NativeLock", JFR_E_NATIVE_LOCK, EVENT, "Native Lock Sample", JVM, "Native Lock", {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"address", JFR_T_LONG, "Lock Address", ADDRESS}}},
	{"jdk.MethodTrace", JFR_E_METHOD_TRACE, EVENT, "Method Trace", JVM, "Method Tracing", {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"method", JFR_T_METHOD, "Trace Method", OF_POOL | CONTEXTUAL}}},
	{"jdk.JavaExceptionThrow", JFR_E_EXCEPTION, EVENT, "Java Exception", APPLICATION, NULL, {
		START_TIME, EVENT_THREAD, STACK_TRACE,
		{"message", JFR_T_STRING, "Message", 0},
		{"thrownClass", JFR_T_CLASS, "Class", OF_POOL}}},
	{"jdk.JavaErrorThrow", JFR_E_ERROR, EVENT, "Java Error", APPLICATION, NULL, {
		START_TIME, EVENT_THREAD, STACK_TRACE,
		{"message", JFR_T_STRING, "Message", 0},
		{"thrownClass", JFR_T_CLASS, "Class", OF_POOL}}},
	{"profiler.Span", JFR_E_SPAN, EVENT, "Span", PROFILER, NULL, {
		START_TIME, DURATION, EVENT_THREAD,
		{"tag", JFR_T_STRING, "Tag", OF_POOL | CONTEXTUAL}}},
	{"profiler.Window", JFR_E_WINDOW, EVENT, "Profiling Window", PROFILER, NULL, {
		START_TIME, DURATION, EVENT_THREAD}},
	{"profiler.UserEvent", JFR_E_USER_EVENT, EVENT, "User-Defined Event", PROFILER, NULL, {
		START_TIME, EVENT_THREAD,
		{"type", JFR_T_USER_EVENT_TYPE, "User Event Type", OF_POOL},
		{"data", JFR_T_STRING, "Data", 0}}},
	{"profiler.Log", JFR_E_LOG, EVENT, "Log Message", PROFILER, NULL, {
		START_TIME,
		{"level", JFR_T_LOG_LEVEL, "Level", OF_POOL},
		{"message", JFR_T_STRING, "Message", 0}}},
	{"jdk.ThreadSleep", JFR_E_THREAD_SLEEP, EVENT, "Java Thread Sleep", APPLICATION, NULL, {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"time", JFR_T_LONG, "Sleep Time", NANOSECONDS_LONG}}},
	{"jdk.SocketRead", JFR_E_SOCKET_READ, EVENT, "Socket Read", APPLICATION, NULL, {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"host", JFR_T_STRING, "Remote Host", 0},
		{"address", JFR_T_STRING, "Remote Address", 0},
		{"port", JFR_T_INT, "Remote Port", 0},
		{"timeout", JFR_T_LONG, "Timeout Value", MILLISECONDS_LONG},
		{"bytesRead", JFR_T_LONG, "Bytes Read", BYTES},
		{"endOfStream", JFR_T_BOOLEAN, "End of Stream", 0}}},
	{"jdk.SocketWrite", JFR_E_SOCKET_WRITE, EVENT, "Socket Write", APPLICATION, NULL, {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"host", JFR_T_STRING, "Remote Host", 0},
		{"address", JFR_T_STRING, "Remote Address", 0},
		{"port", JFR_T_INT, "Remote Port", 0},
		{"bytesWritten", JFR_T_LONG, "Bytes Written", BYTES}}},
	{"jdk.FileRead", JFR_E_FILE_READ, EVENT, "File Read", APPLICATION, NULL, {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"path", JFR_T_STRING, "Path", 0},
		{"bytesRead", JFR_T_LONG, "Bytes Read", BYTES},
		{"endOfFile", JFR_T_BOOLEAN, "End of File", 0}}},
	{"jdk.FileWrite", JFR_E_FILE_WRITE, EVENT, "File Write", APPLICATION, NULL, {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"path", JFR_T_STRING, "Path", 0},
		{"bytesWritten", JFR_T_LONG, "Bytes Written", BYTES}}},
	{"jdk.CPULoad", JFR_E_CPU_LOAD, EVENT, "CPU Load", "Operating System", "Processor", {
		START_TIME,
		{"jvmUser", JFR_T_FLOAT, "JVM User", PERCENTAGE},
		{"jvmSystem", JFR_T_FLOAT, "JVM System", PERCENTAGE},
		{"machineTotal", JFR_T_FLOAT, "Machine Total", PERCENTAGE}}},
	{"profiler.ProcessSample", JFR_E_PROCESS_SAMPLE, EVENT, "Process Sample", "Operating System", "Process", {
		START_TIME,
		{"pid", JFR_T_INT, "Process Identifier", UNSIGNED},
		{"ppid", JFR_T_INT, "Parent Process Identifier", UNSIGNED},
		{"name", JFR_T_STRING, "Name", 0},
		{"cmdLine", JFR_T_STRING, "Command Line", 0},
		{"uid", JFR_T_INT, "User Identifier", UNSIGNED},
		{"state", JFR_T_BYTE, "State", 0},
		{"processStartTime", JFR_T_LONG, "Start of the Process", MILLISECONDS},
		{"cpuUser", JFR_T_FLOAT, "CPU Time in User Mode (s)", 0},
		{"cpuSystem", JFR_T_FLOAT, "CPU Time in the Kernel (s)", 0},
		{"cpuPercent", JFR_T_FLOAT, "Load, as a Part of One CPU", PERCENTAGE},
		{"threads", JFR_T_INT, "Threads", UNSIGNED},
		{"vmSize", JFR_T_LONG, "Size of the Memory", BYTES},
		{"vmRss", JFR_T_LONG, "Resident Memory", BYTES},
		{"rssAnon", JFR_T_LONG, "Resident Anonymous Memory", BYTES},
		{"rssFiles", JFR_T_LONG, "Resident Pages of Files", BYTES},
		{"rssShmem", JFR_T_LONG, "Resident Shared Memory", BYTES},
		{"minorFaults", JFR_T_LONG, "Minor Page Faults", UNSIGNED},
		{"majorFaults", JFR_T_LONG, "Major Page Faults", UNSIGNED},
		{"ioRead", JFR_T_LONG, "Bytes Read from Devices", BYTES},
		{"ioWrite", JFR_T_LONG, "Bytes Written to Devices", BYTES}}},
	{JFR_TYPE_WEIGHT, JFR_E_WEIGHT, EVENT, "Weight of the Samples Behind It", "duet", NULL, {
		START_TIME, {"events", JFR_T_INT, "Events", 0},
		{"samples", JFR_T_LONG, "Samples", 0}, {"weight", JFR_T_LONG, "Weight", 0}}},
	{JFR_TYPE_CONTEXT, JFR_E_CONTEXT, EVENT, "Trace and Span of the Samples Behind It", "duet", NULL, {
		START_TIME, {"events", JFR_T_INT, "Events", 0},
		{"traceId", JFR_T_STRING, "Trace Id", 0}, {"spanId", JFR_T_STRING, "Span Id", 0}}},
	{JFR_TYPE_HOLDER, JFR_E_HOLDER, EVENT, "Whole Stack of the Waits Behind It", "duet", NULL, {
		START_TIME, {"events", JFR_T_INT, "Events", 0}, {"stack", JFR_T_STACK_TRACE, "Stack", OF_POOL}}},
	{"jdk.ActiveRecording", JFR_E_ACTIVE_RECORDING, EVENT, "Recording", RECORDER, NULL, {
		START_TIME,
		{"id", JFR_T_LONG, "Id", 0},
		{"name", JFR_T_STRING, "Name", 0},
		{"destination", JFR_T_STRING, "Destination", 0},
		{"maxAge", JFR_T_LONG, "Max Age", MILLISECONDS_LONG},
		{"maxSize", JFR_T_LONG, "Max Size", BYTES},
		{"recordingStart", JFR_T_LONG, "Start Time", MILLISECONDS},
		{"recordingDuration", JFR_T_LONG, "Recording Duration", MILLISECONDS_LONG}}},
	{"jdk.ActiveSetting", JFR_E_ACTIVE_SETTING, EVENT, "Recording Setting", RECORDER, NULL, {
		START_TIME,
		{"id", JFR_T_LONG, "Event Id", 0},
		{"name", JFR_T_STRING, "Setting Name", 0},
		{"value", JFR_T_STRING, "Setting Value", 0}}},
	{"jdk.OSInformation", JFR_E_OS_INFORMATION, EVENT, "OS Information", "Operating System", NULL, {
		START_TIME,
		{"osVersion", JFR_T_STRING, "OS Version", 0}}},
	{"jdk.CPUInformation", JFR_E_CPU_INFORMATION, EVENT, "CPU Information", "Operating System", "Processor", {
		START_TIME,
		{"cpu", JFR_T_STRING, "Type", 0},
		{"description", JFR_T_STRING, "Description", 0},
		{"sockets", JFR_T_INT, "Sockets", UNSIGNED},
		{"cores", JFR_T_INT, "Cores", UNSIGNED},
		{"hwThreads", JFR_T_INT, "Hardware Threads", UNSIGNED}}},
	{"jdk.JVMInformation", JFR_E_JVM_INFORMATION, EVENT, "JVM Information", JVM, NULL, {
		START_TIME,
		{"jvmName", JFR_T_STRING, "JVM Name", 0},
		{"jvmVersion", JFR_T_STRING, "JVM Version", 0},
		{"jvmArguments", JFR_T_STRING, "JVM Command Line Arguments", 0},
		{"jvmFlags", JFR_T_STRING, "JVM Settings File Arguments", 0},
		{"javaArguments", JFR_T_STRING, "Java Application Arguments", 0},
		{"jvmStartTime", JFR_T_LONG, "JVM Start Time", MILLISECONDS},
		{"pid", JFR_T_LONG, "Process Identifier", 0}}},
	{"jdk.InitialSystemProperty", JFR_E_SYSTEM_PROPERTY, EVENT, "Initial System Property", JVM, NULL, {
		START_TIME,
		{"key", JFR_T_STRING, "Key", 0},
		{"value", JFR_T_STRING, "Value", 0}}},
	{"jdk.NativeLibrary", JFR_E_NATIVE_LIBRARY, EVENT, "Native Library", JVM, "Runtime", {
		START_TIME,
		{"name", JFR_T_STRING, "Name", 0},
		{"baseAddress", JFR_T_LONG, "Base Address", ADDRESS},
		{"topAddress", JFR_T_LONG, "Top Address", ADDRESS}}},
	{"jdk.GCHeapSummary", JFR_E_HEAP_SUMMARY, EVENT, "Heap Summary", JVM, "GC", {
		START_TIME,
		{"gcId", JFR_T_INT, "GC Identifier", UNSIGNED},
		{"when", JFR_T_GC_WHEN, "When", OF_POOL},
		{"heapSpace", JFR_T_VIRTUAL_SPACE, "Heap Space", 0},
		{"heapUsed", JFR_T_LONG, "Heap Used", BYTES}}},
	{"jdk.DataLoss", JFR_E_DATA_LOSS, EVENT, "Data Loss", RECORDER, NULL, {
		START_TIME,
		{"amount", JFR_T_LONG, "Amount", 0},
		{"total", JFR_T_LONG, "Total", 0},
		{"reason", JFR_T_STRING, "Reason", 0}}},
	{"jdk.JavaThreadStatistics", JFR_E_THREAD_STATISTICS, EVENT, "Java Thread Statistics", APPLICATION,
		"Statistics", {
		START_TIME,
		{"activeCount", JFR_T_LONG, "Active Threads", 0}, {"daemonCount", JFR_T_LONG, "Daemon Threads", 0},
		{"accumulatedCount", JFR_T_LONG, "Accumulated Threads", 0},
		{"peakCount", JFR_T_LONG, "Peak Threads", 0}}},
	{"jdk.ThreadCPULoad", JFR_E_THREAD_CPU_LOAD, EVENT, "Thread CPU Load", "Operating System", "Processor", {
		START_TIME, EVENT_THREAD,
		{"user", JFR_T_FLOAT, "User CPU Load", PERCENTAGE},
		{"system", JFR_T_FLOAT, "System CPU Load", PERCENTAGE}}},
	{"jdk.ThreadAllocationStatistics", JFR_E_THREAD_ALLOCATION, EVENT, "Thread Allocation Statistics", APPLICATION,
		"Statistics", {
		START_TIME,
		{"allocated", JFR_T_LONG, "Allocated", BYTES},
		{"thread", JFR_T_THREAD, "Thread", OF_POOL}}},
	{"jdk.PhysicalMemory", JFR_E_PHYSICAL_MEMORY, EVENT, "Physical Memory", "Operating System", "Memory", {
		START_TIME,
		{"totalSize", JFR_T_LONG, "Total Size", BYTES}, {"usedSize", JFR_T_LONG, "Used Size", BYTES}}},
	{"jdk.SystemProcess", JFR_E_SYSTEM_PROCESS, EVENT, "System Process", "Operating System", NULL, {
		START_TIME,
		{"pid", JFR_T_STRING, "Process Identifier", 0}, {"commandLine", JFR_T_STRING, "Command Line", 0}}},
	{"jdk.BooleanFlag", JFR_E_BOOLEAN_FLAG, EVENT, "Boolean Flag", JVM, "Flag", {
		START_TIME, FLAG_NAME, {"value", JFR_T_BOOLEAN, "Value", 0}, FLAG_ORIGIN}},
	{"jdk.LongFlag", JFR_E_LONG_FLAG, EVENT, "Long Flag", JVM, "Flag", {
		START_TIME, FLAG_NAME, {"value", JFR_T_LONG, "Value", 0}, FLAG_ORIGIN}},
	{"jdk.StringFlag", JFR_E_STRING_FLAG, EVENT, "String Flag", JVM, "Flag", {
		START_TIME, FLAG_NAME, {"value", JFR_T_STRING, "Value", 0}, FLAG_ORIGIN}},
	{"jdk.GarbageCollection", JFR_E_GARBAGE_COLLECTION, EVENT, "Garbage Collection", JVM, "GC", {
		START_TIME, DURATION, EVENT_THREAD, GC_ID,
		{"name", JFR_T_STRING, "Name", 0}, {"cause", JFR_T_STRING, "Cause", 0},
		{"sumOfPauses", JFR_T_LONG, "Sum of Pauses", TICKS_LONG},
		{"longestPause", JFR_T_LONG, "Longest Pause", TICKS_LONG}}},
	{"jdk.GCPhasePause", JFR_E_GC_PAUSE, EVENT, "GC Phase Pause", JVM, "GC", {
		START_TIME, DURATION, EVENT_THREAD, GC_ID, {"name", JFR_T_STRING, "Name", 0}}},
	{"jdk.SafepointBegin", JFR_E_SAFEPOINT_BEGIN, EVENT, "Safepoint Begin", JVM, "Runtime", {
		START_TIME, DURATION, EVENT_THREAD, SAFEPOINT_ID,
		{"totalThreadCount", JFR_T_INT, "Total Threads", 0},
		{"jniCriticalThreadCount", JFR_T_INT, "JNI Critical Threads", 0}}},
	{"jdk.SafepointStateSynchronization", JFR_E_SAFEPOINT_STOPPING, EVENT, "Safepoint State Synchronization",
		JVM, "Runtime", {START_TIME, DURATION, EVENT_THREAD, SAFEPOINT_ID}},
	{"jdk.SafepointEnd", JFR_E_SAFEPOINT_END, EVENT, "Safepoint End", JVM, "Runtime", {
		START_TIME, DURATION, EVENT_THREAD, SAFEPOINT_ID}},
	{"jdk.Compilation", JFR_E_COMPILATION, EVENT, "Compilation", JVM, "Compiler", {
		START_TIME, DURATION, EVENT_THREAD,
		{"method", JFR_T_METHOD, "Method", OF_POOL}, {"compileLevel", JFR_T_INT, "Compilation Level", 0},
		{"succeded", JFR_T_BOOLEAN, "Succeeded", 0}}}, /* the JDK spells the name so */
	{"jdk.ClassLoad", JFR_E_CLASS_LOAD, EVENT, "Class Load", JVM, "Class Loading", {
		START_TIME, DURATION, EVENT_THREAD, STACK_TRACE,
		{"loadedClass", JFR_T_CLASS, "Loaded Class", OF_POOL}}},
	{JFR_TYPE_FACT, JFR_E_FACT, EVENT, "Fact of the Recording", "duet", NULL, {
		START_TIME,
		{"key", JFR_T_STRING, "Key", 0},
		{"value", JFR_T_STRING, "Value", 0}}},
};
/* clang-format on */

/* ---- elements ---- */

struct metadata {
	struct intern strings;
	struct buf elements;
	unsigned int base; /* of the numbers of types */
	bool failed;
};

static void put_string(struct metadata *m, const char *text)
{
	uint32_t id = intern_str(&m->strings, text);

	m->failed |= !id && *text;
	jfr_put_number(&m->elements, id);
}

/* An element has its name, its attributes, and then as many elements as `children` says. */
static void begin(struct metadata *m, const char *name, size_t attributes)
{
	put_string(m, name);
	jfr_put_number(&m->elements, attributes);
}

static void attribute(struct metadata *m, const char *key, const char *value)
{
	put_string(m, key);
	put_string(m, value);
}

static void number_attribute(struct metadata *m, const char *key, unsigned value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	attribute(m, key, text);
}

static void children(struct metadata *m, size_t count)
{
	jfr_put_number(&m->elements, count);
}

/* `value`: NULL for an annotation without one. */
static void put_annotation(struct metadata *m, enum jfr_type type, const char *value)
{
	begin(m, "annotation", value ? 2 : 1);
	number_attribute(m, "class", m->base + type);
	if (value)
		attribute(m, "value", value);
	children(m, 0);
}

/* Annotations of a field that say how to show its value. */
static const struct {
	enum flag flag;
	enum jfr_type type;
	const char *value;
} contents[] = {
	{TICKS, JFR_T_TIMESTAMP, "TICKS"},
	{MILLISECONDS, JFR_T_TIMESTAMP, "MILLISECONDS_SINCE_EPOCH"},
	{TICKS_LONG, JFR_T_TIMESPAN, "TICKS"},
	{MILLISECONDS_LONG, JFR_T_TIMESPAN, "MILLISECONDS"},
	{NANOSECONDS_LONG, JFR_T_TIMESPAN, "NANOSECONDS"},
	{BYTES, JFR_T_DATA_AMOUNT, "BYTES"},
	{ADDRESS, JFR_T_MEMORY_ADDRESS, NULL},
	{UNSIGNED, JFR_T_UNSIGNED, NULL},
	{PERCENTAGE, JFR_T_PERCENTAGE, NULL},
	{CONTEXTUAL, JFR_T_CONTEXTUAL, NULL},
};

#define CONTENTS (sizeof(contents) / sizeof(*contents))

static void put_field(struct metadata *m, const struct field *field)
{
	size_t count = field->label != NULL;

	begin(m, "field", 2 + !!(field->flags & OF_POOL) + !!(field->flags & ARRAY));
	attribute(m, "name", field->name);
	number_attribute(m, "class", m->base + field->type);
	if (field->flags & OF_POOL)
		attribute(m, "constantPool", "true");
	if (field->flags & ARRAY)
		attribute(m, "dimension", "1");
	for (size_t i = 0; i < CONTENTS; i++)
		count += !!(field->flags & contents[i].flag);
	children(m, count);
	if (field->label)
		put_annotation(m, JFR_T_LABEL, field->label);
	for (size_t i = 0; i < CONTENTS; i++)
		if (field->flags & contents[i].flag)
			put_annotation(m, contents[i].type, contents[i].value);
}

static void put_category(struct metadata *m, const struct type *type)
{
	begin(m, "annotation", 2 + !!type->subcategory);
	number_attribute(m, "class", m->base + JFR_T_CATEGORY);
	attribute(m, "value-0", type->category);
	if (type->subcategory)
		attribute(m, "value-1", type->subcategory);
	children(m, 0);
}

/* Timestamp and similar types are marked as content types. */
static bool is_content(enum jfr_type type)
{
	return type >= JFR_T_TIMESTAMP && type <= JFR_T_PERCENTAGE;
}

static void put_type_head(struct metadata *m, const struct type *type)
{
	begin(m, "class", 2 + (type->kind != STRUCTURE));
	attribute(m, "name", type->name);
	number_attribute(m, "id", m->base + type->id);
	if (type->kind == SIMPLE)
		attribute(m, "simpleType", "true");
	if (type->kind == EVENT)
		attribute(m, "superType", "jdk.jfr.Event");
	if (type->kind == ANNOTATION)
		attribute(m, "superType", "java.lang.annotation.Annotation");
}

static void put_type(struct metadata *m, const struct type *type)
{
	size_t fields = 0;

	while (fields < FIELDS_MAX && type->fields[fields].name)
		fields++;
	put_type_head(m, type);
	children(m, fields + !!type->label + !!type->category + is_content(type->id));
	if (type->label)
		put_annotation(m, JFR_T_LABEL, type->label);
	if (type->category)
		put_category(m, type);
	if (is_content(type->id))
		put_annotation(m, JFR_T_CONTENT_TYPE, NULL);
	for (size_t i = 0; i < fields; i++)
		put_field(m, &type->fields[i]);
}

/*
 * Appends a name that Java accepts: page-faults becomes PageFaults. If it does not begin with a letter, the number of
 * the event comes first.
 */
static void add_own_name(struct buf *out, const char *name, size_t event)
{
	bool is_first = true;

	buf_add_str(out, JFR_TYPE_OWN);
	if (!isalpha((unsigned char)*name) || !strcasecmp(name, "weight") || !strcasecmp(name, "fact"))
		buf_printf(out, "Event%zu", event);
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;

		if (isascii(c) && isalnum(c))
			buf_add_char(out, (char)(is_first ? toupper(c) : c));
		is_first = !isascii(c) || !isalnum(c);
	}
}

/* Describes an event for which neither the JDK nor async-profiler has a type. */
static void put_own_type(struct metadata *m, const struct profile *profile, size_t event)
{
	const char *name = profile_event_name(profile, event);
	unsigned flags = profile->events.items[event].unit == PROFILE_BYTES ? BYTES : 0;
	BUF(full);
	struct type type = {
		.id = (enum jfr_type)(JFR_E_OWN + event),
		.kind = EVENT,
		.label = name,
		.category = "duet",
		.fields = {START_TIME, EVENT_THREAD, STACK_TRACE,
			   {"samples", JFR_T_LONG, "Samples", 0},
			   {"weight", JFR_T_LONG, "Weight", flags}},
	};

	add_own_name(&full, name, event);
	type.name = full.data;
	put_type(m, &type);
	m->failed |= full.failed;
}

/* Fills a field from a word of the row, "name" or "name:type", which is copied to `text`. */
static void set_declared_field(struct field *field, const char *word, char *text, size_t size)
{
	static const struct {
		const char *word;
		enum jfr_type type;
		unsigned int flags;
	} kinds[] = {
		{"boolean", JFR_T_BOOLEAN, 0},		{"string", JFR_T_STRING, 0},
		{"class", JFR_T_CLASS, OF_POOL},	{"thread", JFR_T_THREAD, OF_POOL},
		{"stack", JFR_T_STACK_TRACE, OF_POOL},	{"method", JFR_T_METHOD, OF_POOL},
		{"state", JFR_T_THREAD_STATE, OF_POOL}, {"origin", JFR_T_FLAG_ORIGIN, OF_POOL},
		{"loader", JFR_T_CLASS_LOADER, OF_POOL}, {"package", JFR_T_PACKAGE, OF_POOL},
	};
	char *kind;

	snprintf(text, size, "%.*s", (int)strcspn(word, " "), word);
	*field = (struct field){.name = text, .type = JFR_T_LONG};
	field->flags = strcmp(text, "duration") ? 0 : TICKS_LONG;
	kind = strchr(text, ':');
	if (!kind)
		return;
	*kind++ = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kind, kinds[i].word)) {
			field->type = kinds[i].type;
			field->flags = kinds[i].flags;
		}
}

#define DECLARED_NAME_MAX 48

static void put_declared_type(struct metadata *m, size_t index)
{
	char texts[FIELDS_MAX][DECLARED_NAME_MAX];
	struct type type = {
		.name = jfr_declared[index].name,
		.id = (enum jfr_type)(JFR_E_DECLARED + index),
		.kind = EVENT,
		.fields = {START_TIME},
	};
	const char *word = jfr_declared[index].fields;

	for (size_t i = 1; i < FIELDS_MAX && *word; i++) {
		set_declared_field(&type.fields[i], word, texts[i], DECLARED_NAME_MAX);
		word += strcspn(word, " ");
		word += *word == ' ';
	}
	put_type(m, &type);
}

static void put_elements(struct metadata *m, const struct profile *profile, const bool *own)
{
	size_t count = sizeof(types) / sizeof(*types), declared = 0;

	while (jfr_declared[declared].name)
		declared++;
	count += declared;
	for (size_t i = 0; i < profile->events.len; i++)
		count += own[i];
	begin(m, "root", 0);
	children(m, 2);
	begin(m, "metadata", 0);
	children(m, count);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		put_type(m, &types[i]);
	for (size_t i = 0; i < profile->events.len; i++)
		if (own[i])
			put_own_type(m, profile, i);
	for (size_t i = 0; i < declared; i++)
		put_declared_type(m, i);
	begin(m, "region", 2);
	attribute(m, "locale", "en_US");
	attribute(m, "gmtOffset", "0");
	children(m, 0);
}

#define METADATA_ID 0x7fffffff /* the JDK's own types have numbers from 1 on */

int jfr_put_metadata(struct buf *out, const struct profile *profile, const bool *own, uint64_t ticks,
		     unsigned int base)
{
	struct metadata m = {.base = base};
	BUF(body);

	if (intern_init(&m.strings) < 0)
		return -ENOMEM;
	buf_init(&m.elements);
	put_elements(&m, profile, own);
	jfr_put_number(&body, JFR_METADATA);
	jfr_put_number(&body, ticks);
	jfr_put_number(&body, 0);
	jfr_put_number(&body, METADATA_ID);
	jfr_put_number(&body, m.strings.strings.len);
	for (uint32_t i = 0; i < m.strings.strings.len; i++)
		jfr_put_text(&body, intern_text(&m.strings, i));
	buf_add(&body, m.elements.data, m.elements.len);
	jfr_put_event(out, &body);
	m.failed |= out->failed || m.elements.failed;
	intern_release(&m.strings);
	buf_release(&m.elements);
	return m.failed ? -ENOMEM : 0;
}
