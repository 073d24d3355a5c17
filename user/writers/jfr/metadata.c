/* SPDX-License-Identifier: MIT */
/*
 * Types and their fields. async-profiler's converter reads the fields of an event by their position. So the types that
 * it knows have the same fields as in its own files. More fields may only follow these, and in pools they may only be
 * numbers. Other readers know the rows of its pools by heart: see writer_jfr.is_plain.
 */
#include "writers/jfr/metadata.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "profile/jfr.h"
#include "writers/jfr/bytes.h"
#include "writers/jfr/pools.h"

enum kind { STRUCTURE, SIMPLE, EVENT, ANNOTATION };

struct type {
	const char *name;
	enum jfr_type id;
	enum kind kind;
	const char *label;
	const char *category, *subcategory; /* only for events */
	/*
	 * "name:kind Label; …"; a long without `kind`. START_TIME comes before those of events. From '+' on,
	 * async-profiler has none.
	 */
	const char *fields;
};

/* clang-format off */
static const struct field_kind {
	const char *word;
	enum jfr_type type;
	enum { VALUE, OF_POOL, ARRAY } form;
	struct {
		enum jfr_type type;
		const char *value;
	} contents[2]; /* annotations that say how to show it */
} field_kinds[] = {
	{"boolean", .type = JFR_T_BOOLEAN}, {"byte", .type = JFR_T_BYTE}, {"int", .type = JFR_T_INT},
	{"float", .type = JFR_T_FLOAT}, {"string", .type = JFR_T_STRING}, {"space", .type = JFR_T_VIRTUAL_SPACE},
	{"strings", JFR_T_STRING, ARRAY, {}}, {"frames", JFR_T_STACK_FRAME, ARRAY, {}},
	{"class", JFR_T_CLASS, OF_POOL, {}}, {"thread", JFR_T_THREAD, OF_POOL, {}},
	{"stack", JFR_T_STACK_TRACE, OF_POOL, {}}, {"method", JFR_T_METHOD, OF_POOL, {}},
	{"state", JFR_T_THREAD_STATE, OF_POOL, {}}, {"symbol", JFR_T_SYMBOL, OF_POOL, {}},
	{"loader", JFR_T_CLASS_LOADER, OF_POOL, {}}, {"package", JFR_T_PACKAGE, OF_POOL, {}},
	{"process", JFR_T_PROCESS, OF_POOL, {}}, {"frame-type", JFR_T_FRAME_TYPE, OF_POOL, {}},
	{"object", JFR_T_OLD_OBJECT, OF_POOL, {}}, {"when", JFR_T_GC_WHEN, OF_POOL, {}},
	{"level", JFR_T_LOG_LEVEL, OF_POOL, {}}, {"user-type", JFR_T_USER_EVENT_TYPE, OF_POOL, {}},
	{"origin", JFR_T_FLAG_ORIGIN, OF_POOL, {}},
	{"tag", JFR_T_STRING, OF_POOL, {{JFR_T_CONTEXTUAL, NULL}}},
	{"traced", JFR_T_METHOD, OF_POOL, {{JFR_T_CONTEXTUAL, NULL}}},
	{"uint", JFR_T_INT, VALUE, {{JFR_T_UNSIGNED, NULL}}}, {"ulong", JFR_T_LONG, VALUE, {{JFR_T_UNSIGNED, NULL}}},
	{"address", JFR_T_LONG, VALUE, {{JFR_T_MEMORY_ADDRESS, NULL}}},
	{"old-address", JFR_T_LONG, VALUE, {{JFR_T_MEMORY_ADDRESS, NULL}, {JFR_T_UNSIGNED, NULL}}},
	{"percentage", JFR_T_FLOAT, VALUE, {{JFR_T_PERCENTAGE, NULL}}},
	{"bytes", JFR_T_LONG, VALUE, {{JFR_T_DATA_AMOUNT, "BYTES"}}},
	{"time", JFR_T_LONG, VALUE, {{JFR_T_TIMESTAMP, "TICKS"}}},
	{"date", JFR_T_LONG, VALUE, {{JFR_T_TIMESTAMP, "MILLISECONDS_SINCE_EPOCH"}}},
	{"ticks", JFR_T_LONG, VALUE, {{JFR_T_TIMESPAN, "TICKS"}}}, /* this and the next two: lengths of time */
	{"ms", JFR_T_LONG, VALUE, {{JFR_T_TIMESPAN, "MILLISECONDS"}}},
	{"ns", JFR_T_LONG, VALUE, {{JFR_T_TIMESPAN, "NANOSECONDS"}}},
	{.type = JFR_T_LONG}, /* the last: "long", and fields without a kind */
};

#define START_TIME "startTime:time Start Time"
#define SAMPLED_THREAD "sampledThread:thread Thread; "
#define EVENT_THREAD "eventThread:thread Event Thread; "
#define DURATION "duration:ticks Duration; "
#define STACK_TRACE "stackTrace:stack Stack Trace; "
#define STATE "state:state Thread State; "
#define OWN_FIELDS EVENT_THREAD STACK_TRACE "samples:long Samples; weight:"
#define SAFEPOINT_ID "safepointId:ulong Safepoint Identifier; "
#define JVM "Java Virtual Machine"
#define APPLICATION "Java Application"
#define RECORDER "Flight Recorder"
#define PROFILER "Profiler"

static const struct type types[] = {
	{"boolean", JFR_T_BOOLEAN, STRUCTURE, .label = NULL},
	{"char", JFR_T_CHAR, STRUCTURE, .label = NULL}, /* no field has it, double or short, but readers ask */
	{"float", JFR_T_FLOAT, STRUCTURE, .label = NULL},
	{"double", JFR_T_DOUBLE, STRUCTURE, .label = NULL},
	{"byte", JFR_T_BYTE, STRUCTURE, .label = NULL},
	{"short", JFR_T_SHORT, STRUCTURE, .label = NULL},
	{"int", JFR_T_INT, STRUCTURE, .label = NULL},
	{"long", JFR_T_LONG, STRUCTURE, .label = NULL},
	{"java.lang.String", JFR_T_STRING, STRUCTURE, .label = NULL},
	{"java.lang.Class", JFR_T_CLASS, STRUCTURE, "Java Class", .fields =
	 "classLoader:loader Class Loader; name:symbol Name; package:package Package; modifiers:int Access Modifiers; "
	 "+sourceFile:symbol Source File"},
	{"java.lang.Thread", JFR_T_THREAD, STRUCTURE, "Thread", .fields =
	 "osName:string OS Thread Name; osThreadId:long OS Thread Id; javaName:string Java Thread Name; "
	 "javaThreadId:long Java Thread Id; +virtual:boolean Virtual Thread; process:process Process"},
	{"jdk.types.ClassLoader", JFR_T_CLASS_LOADER, STRUCTURE, "Java Class Loader", .fields =
	 "type:class Type; name:symbol Name"},
	{"jdk.types.FrameType", JFR_T_FRAME_TYPE, SIMPLE, "Frame type", .fields = "description:string Description"},
	{"jdk.types.ThreadState", JFR_T_THREAD_STATE, SIMPLE, "Java Thread State", .fields = "name:string Name"},
	{"jdk.types.StackTrace", JFR_T_STACK_TRACE, STRUCTURE, "Stacktrace", .fields =
	 "truncated:boolean Truncated; frames:frames Stack Frames"},
	{"jdk.types.StackFrame", JFR_T_STACK_FRAME, STRUCTURE, NULL, .fields =
	 "method:method Java Method; lineNumber:int Line Number; bytecodeIndex:int Bytecode Index; "
	 "type:frame-type Frame Type"},
	{"jdk.types.Method", JFR_T_METHOD, STRUCTURE, "Java Method", .fields =
	 "type:class Type; name:symbol Name; descriptor:symbol Descriptor; modifiers:int Access Modifiers; "
	 "hidden:boolean Hidden"},
	{"jdk.types.Package", JFR_T_PACKAGE, STRUCTURE, "Package", .fields = "name:symbol Name"},
	{"jdk.types.Symbol", JFR_T_SYMBOL, SIMPLE, "Symbol", .fields = "string:string String"},
	{JFR_TYPE_PROCESS, JFR_T_PROCESS, STRUCTURE, "Process", .fields =
	 "pid:int Process Identifier; name:string Name; container:string Container"},
	{"jdk.types.OldObject", JFR_T_OLD_OBJECT, STRUCTURE, "Old Object", .fields =
	 "address:old-address Memory Address; type:class Java Class; description:string Object Description"},
	{"jdk.types.VirtualSpace", JFR_T_VIRTUAL_SPACE, STRUCTURE, NULL, .fields =
	 "start:address Start Address; committedEnd:address Committed End Address; committedSize:bytes Committed Size; "
	 "reservedEnd:address Reserved End Address; reservedSize:bytes Reserved Size"},
	{"jdk.types.GCWhen", JFR_T_GC_WHEN, SIMPLE, "GC When", .fields = "when:string When"},
	{"jdk.types.FlagValueOrigin", JFR_T_FLAG_ORIGIN, SIMPLE, "Flag Value Origin", .fields = "origin:string Origin"},
	{"profiler.types.LogLevel", JFR_T_LOG_LEVEL, SIMPLE, "Log Level", .fields = "name:string Name"},
	{"profiler.types.UserEventType", JFR_T_USER_EVENT_TYPE, SIMPLE, "User-Defined Event Type", .fields =
	 "name:string Name"},
	{"jdk.jfr.Label", JFR_T_LABEL, ANNOTATION, NULL, .fields = "value:string"},
	{"jdk.jfr.Category", JFR_T_CATEGORY, ANNOTATION, NULL, .fields = "value:strings"},
	{"jdk.jfr.ContentType", JFR_T_CONTENT_TYPE, ANNOTATION, .label = "Content Type"},
	{"jdk.jfr.Timestamp", JFR_T_TIMESTAMP, ANNOTATION, "Timestamp", .fields = "value:string"},
	{"jdk.jfr.Timespan", JFR_T_TIMESPAN, ANNOTATION, "Timespan", .fields = "value:string"},
	{"jdk.jfr.DataAmount", JFR_T_DATA_AMOUNT, ANNOTATION, "Data Amount", .fields = "value:string"},
	{"jdk.jfr.MemoryAddress", JFR_T_MEMORY_ADDRESS, ANNOTATION, .label = "Memory Address"},
	{"jdk.jfr.Unsigned", JFR_T_UNSIGNED, ANNOTATION, .label = "Unsigned Value"},
	{"jdk.jfr.Percentage", JFR_T_PERCENTAGE, ANNOTATION, .label = "Percentage"},
	{"jdk.jfr.Contextual", JFR_T_CONTEXTUAL, ANNOTATION, .label = "Contextual"},
	{"jdk.ExecutionSample", JFR_E_EXECUTION_SAMPLE, EVENT, "Method Profiling Sample", JVM, "Profiling",
	 SAMPLED_THREAD STACK_TRACE STATE},
	{"profiler.WallClockSample", JFR_E_WALL_CLOCK_SAMPLE, EVENT, "Wall Clock Sample", JVM, "Profiling",
	 SAMPLED_THREAD STACK_TRACE STATE "samples:uint Samples; timeSpan:ticks Time Span"},
	{"jdk.CPUTimeSample", JFR_E_CPU_TIME_SAMPLE, EVENT, "CPU Time Method Sample", JVM, "Profiling",
	 STACK_TRACE EVENT_THREAD "failed:boolean Failed; samplingPeriod:ticks CPU Time Sampling Period; "
	 "biased:boolean Biased"},
	{"jdk.ObjectAllocationSample", JFR_E_ALLOCATION_SAMPLE, EVENT, "Object Allocation Sample", APPLICATION, NULL,
	 EVENT_THREAD STACK_TRACE "objectClass:class Object Class; weight:bytes Sample Weight"},
	{"jdk.ObjectAllocationInNewTLAB", JFR_E_ALLOCATION_IN_NEW_TLAB, EVENT, "Allocation in new TLAB",
	 APPLICATION, NULL,
	 EVENT_THREAD STACK_TRACE "objectClass:class Object Class; allocationSize:bytes Allocation Size; "
	 "tlabSize:bytes TLAB Size"},
	{"jdk.ObjectAllocationOutsideTLAB", JFR_E_ALLOCATION_OUTSIDE_TLAB, EVENT, "Allocation outside TLAB",
	 APPLICATION, NULL,
	 EVENT_THREAD STACK_TRACE "objectClass:class Object Class; allocationSize:bytes Allocation Size"},
	{"profiler.LiveObject", JFR_E_LIVE_OBJECT, EVENT, "Live Object", APPLICATION, NULL,
	 EVENT_THREAD STACK_TRACE "objectClass:class Object Class; allocationSize:bytes Allocation Size; "
	 "allocationTime:time Allocation Time"},
	{"jdk.OldObjectSample", JFR_E_OLD_OBJECT_SAMPLE, EVENT, "Old Object Sample", JVM, "Profiling",
	 DURATION EVENT_THREAD STACK_TRACE "allocationTime:time Allocation Time; objectSize:bytes Object Size; "
	 "objectAge:ticks Object Age; lastKnownHeapUsage:bytes Last Known Heap Usage; object:object Object"},
	{"profiler.Malloc", JFR_E_MALLOC, EVENT, "malloc", JVM, "Native Memory",
	 EVENT_THREAD STACK_TRACE "address:address Address; size:bytes Size"},
	{"profiler.Free", JFR_E_FREE, EVENT, "free", JVM, "Native Memory",
	 EVENT_THREAD STACK_TRACE "address:address Address"},
	{"jdk.JavaMonitorEnter", JFR_E_MONITOR_ENTER, EVENT, "Java Monitor Blocked", APPLICATION, NULL,
	 DURATION EVENT_THREAD STACK_TRACE "monitorClass:class Monitor Class; "
	 "previousOwner:thread Previous Monitor Owner; address:address Monitor Address"},
	{"jdk.JavaMonitorWait", JFR_E_MONITOR_WAIT, EVENT, "Java Monitor Wait", APPLICATION, NULL,
	 DURATION EVENT_THREAD STACK_TRACE "monitorClass:class Monitor Class; notifier:thread Notifier Thread; "
	 "timeout:ms Timeout; timedOut:boolean Timed Out; address:address Monitor Address"},
	{"jdk.ThreadPark", JFR_E_THREAD_PARK, EVENT, "Java Thread Park", APPLICATION, NULL,
	 DURATION EVENT_THREAD STACK_TRACE "parkedClass:class Class Parked On; timeout:ns Park Timeout; "
	 "until:date Park Until; address:address Address of Object Parked"},
	{"profiler.NativeLock", JFR_E_NATIVE_LOCK, EVENT, "Native Lock Sample", JVM, "Native Lock",
	 DURATION EVENT_THREAD STACK_TRACE "address:address Lock Address"},
	{"jdk.MethodTrace", JFR_E_METHOD_TRACE, EVENT, "Method Trace", JVM, "Method Tracing",
	 DURATION EVENT_THREAD STACK_TRACE "method:traced Trace Method"},
	{"jdk.JavaExceptionThrow", JFR_E_EXCEPTION, EVENT, "Java Exception", APPLICATION, NULL,
	 EVENT_THREAD STACK_TRACE "message:string Message; thrownClass:class Class"},
	{"jdk.JavaErrorThrow", JFR_E_ERROR, EVENT, "Java Error", APPLICATION, NULL,
	 EVENT_THREAD STACK_TRACE "message:string Message; thrownClass:class Class"},
	{"profiler.Span", JFR_E_SPAN, EVENT, "Span", PROFILER, NULL, DURATION EVENT_THREAD "tag:tag Tag"},
	{"profiler.Window", JFR_E_WINDOW, EVENT, "Profiling Window", PROFILER, NULL, DURATION EVENT_THREAD},
	{"profiler.UserEvent", JFR_E_USER_EVENT, EVENT, "User-Defined Event", PROFILER, NULL,
	 EVENT_THREAD "type:user-type User Event Type; data:string Data"},
	{"profiler.Log", JFR_E_LOG, EVENT, "Log Message", PROFILER, NULL, "level:level Level; message:string Message"},
	{"jdk.ThreadSleep", JFR_E_THREAD_SLEEP, EVENT, "Java Thread Sleep", APPLICATION, NULL,
	 DURATION EVENT_THREAD STACK_TRACE "time:ns Sleep Time"},
	{"jdk.SocketRead", JFR_E_SOCKET_READ, EVENT, "Socket Read", APPLICATION, NULL,
	 DURATION EVENT_THREAD STACK_TRACE "host:string Remote Host; address:string Remote Address; "
	 "port:int Remote Port; timeout:ms Timeout Value; bytesRead:bytes Bytes Read; "
	 "endOfStream:boolean End of Stream"},
	{"jdk.SocketWrite", JFR_E_SOCKET_WRITE, EVENT, "Socket Write", APPLICATION, NULL,
	 DURATION EVENT_THREAD STACK_TRACE "host:string Remote Host; address:string Remote Address; "
	 "port:int Remote Port; bytesWritten:bytes Bytes Written"},
	{"jdk.FileRead", JFR_E_FILE_READ, EVENT, "File Read", APPLICATION, NULL,
	 DURATION EVENT_THREAD STACK_TRACE "path:string Path; bytesRead:bytes Bytes Read; "
	 "endOfFile:boolean End of File"},
	{"jdk.FileWrite", JFR_E_FILE_WRITE, EVENT, "File Write", APPLICATION, NULL,
	 DURATION EVENT_THREAD STACK_TRACE "path:string Path; bytesWritten:bytes Bytes Written"},
	{"jdk.CPULoad", JFR_E_CPU_LOAD, EVENT, "CPU Load", "Operating System", "Processor",
	 "jvmUser:percentage JVM User; jvmSystem:percentage JVM System; machineTotal:percentage Machine Total"},
	{"profiler.ProcessSample", JFR_E_PROCESS_SAMPLE, EVENT, "Process Sample", "Operating System", "Process",
	 "pid:uint Process Identifier; ppid:uint Parent Process Identifier; name:string Name; "
	 "cmdLine:string Command Line; uid:uint User Identifier; state:byte State; "
	 "processStartTime:date Start of the Process; cpuUser:float CPU Time in User Mode (s); "
	 "cpuSystem:float CPU Time in the Kernel (s); cpuPercent:percentage Load, as a Part of One CPU; "
	 "threads:uint Threads; vmSize:bytes Size of the Memory; vmRss:bytes Resident Memory; "
	 "rssAnon:bytes Resident Anonymous Memory; rssFiles:bytes Resident Pages of Files; "
	 "rssShmem:bytes Resident Shared Memory; minorFaults:ulong Minor Page Faults; "
	 "majorFaults:ulong Major Page Faults; ioRead:bytes Bytes Read from Devices; "
	 "ioWrite:bytes Bytes Written to Devices"},
	{JFR_TYPE_WEIGHT, JFR_E_WEIGHT, EVENT, "Weight of the Samples Behind It", "duet", NULL,
	 "events:int Events; samples:long Samples; weight:long Weight"},
	{JFR_TYPE_CONTEXT, JFR_E_CONTEXT, EVENT, "What the Samples Behind It Worked For", "duet", NULL,
	 "events:int Events; traceId:string Trace Id; spanId:string Span Id; attributes:tag Attributes"},
	{JFR_TYPE_HOLDER, JFR_E_HOLDER, EVENT, "Whole Stack of the Waits Behind It", "duet", NULL,
	 "events:int Events; stack:stack Stack"},
	{"jdk.ActiveRecording", JFR_E_ACTIVE_RECORDING, EVENT, "Recording", RECORDER, NULL,
	 "id:long Id; name:string Name; destination:string Destination; maxAge:ms Max Age; maxSize:bytes Max Size; "
	 "recordingStart:date Start Time; recordingDuration:ms Recording Duration"},
	{"jdk.ActiveSetting", JFR_E_ACTIVE_SETTING, EVENT, "Recording Setting", RECORDER, NULL,
	 "id:long Event Id; name:string Setting Name; value:string Setting Value"},
	{"jdk.OSInformation", JFR_E_OS_INFORMATION, EVENT, "OS Information", "Operating System", NULL,
	 "osVersion:string OS Version"},
	{"jdk.CPUInformation", JFR_E_CPU_INFORMATION, EVENT, "CPU Information", "Operating System", "Processor",
	 "cpu:string Type; description:string Description; sockets:uint Sockets; cores:uint Cores; "
	 "hwThreads:uint Hardware Threads"},
	{"jdk.JVMInformation", JFR_E_JVM_INFORMATION, EVENT, "JVM Information", JVM, NULL,
	 "jvmName:string JVM Name; jvmVersion:string JVM Version; jvmArguments:string JVM Command Line Arguments; "
	 "jvmFlags:string JVM Settings File Arguments; javaArguments:string Java Application Arguments; "
	 "jvmStartTime:date JVM Start Time; pid:long Process Identifier"},
	{"jdk.InitialSystemProperty", JFR_E_SYSTEM_PROPERTY, EVENT, "Initial System Property", JVM, NULL,
	 "key:string Key; value:string Value"},
	{"jdk.NativeLibrary", JFR_E_NATIVE_LIBRARY, EVENT, "Native Library", JVM, "Runtime",
	 "name:string Name; baseAddress:address Base Address; topAddress:address Top Address"},
	{"jdk.GCHeapSummary", JFR_E_HEAP_SUMMARY, EVENT, "Heap Summary", JVM, "GC",
	 "gcId:uint GC Identifier; when:when When; heapSpace:space Heap Space; heapUsed:bytes Heap Used"},
	{"jdk.DataLoss", JFR_E_DATA_LOSS, EVENT, "Data Loss", RECORDER, NULL,
	 "amount:long Amount; total:long Total; reason:string Reason"},
	{"jdk.JavaThreadStatistics", JFR_E_THREAD_STATISTICS, EVENT, "Java Thread Statistics",
	 APPLICATION, "Statistics",
	 "activeCount:long Active Threads; daemonCount:long Daemon Threads; accumulatedCount:long Accumulated Threads; "
	 "peakCount:long Peak Threads"},
	{"jdk.ThreadCPULoad", JFR_E_THREAD_CPU_LOAD, EVENT, "Thread CPU Load", "Operating System", "Processor",
	 EVENT_THREAD "user:percentage User CPU Load; system:percentage System CPU Load"},
	{"jdk.ThreadAllocationStatistics", JFR_E_THREAD_ALLOCATION, EVENT, "Thread Allocation Statistics",
	 APPLICATION, "Statistics",
	 "allocated:bytes Allocated; thread:thread Thread"},
	{"jdk.PhysicalMemory", JFR_E_PHYSICAL_MEMORY, EVENT, "Physical Memory", "Operating System", "Memory",
	 "totalSize:bytes Total Size; usedSize:bytes Used Size"},
	{"jdk.SystemProcess", JFR_E_SYSTEM_PROCESS, EVENT, "System Process", "Operating System", NULL,
	 "pid:string Process Identifier; commandLine:string Command Line"},
	{"jdk.BooleanFlag", JFR_E_BOOLEAN_FLAG, EVENT, "Boolean Flag", JVM, "Flag",
	 "name:string Name; value:boolean Value; origin:origin Origin"},
	{"jdk.LongFlag", JFR_E_LONG_FLAG, EVENT, "Long Flag", JVM, "Flag",
	 "name:string Name; value:long Value; origin:origin Origin"},
	{"jdk.StringFlag", JFR_E_STRING_FLAG, EVENT, "String Flag", JVM, "Flag",
	 "name:string Name; value:string Value; origin:origin Origin"},
	{"jdk.GarbageCollection", JFR_E_GARBAGE_COLLECTION, EVENT, "Garbage Collection", JVM, "GC",
	 DURATION EVENT_THREAD "gcId:uint GC Identifier; name:string Name; cause:string Cause; "
	 "sumOfPauses:ticks Sum of Pauses; longestPause:ticks Longest Pause"},
	{"jdk.GCPhasePause", JFR_E_GC_PAUSE, EVENT, "GC Phase Pause", JVM, "GC",
	 DURATION EVENT_THREAD "gcId:uint GC Identifier; name:string Name"},
	{"jdk.SafepointBegin", JFR_E_SAFEPOINT_BEGIN, EVENT, "Safepoint Begin", JVM, "Runtime",
	 DURATION EVENT_THREAD SAFEPOINT_ID "totalThreadCount:int Total Threads; "
	 "jniCriticalThreadCount:int JNI Critical Threads"},
	{"jdk.SafepointStateSynchronization", JFR_E_SAFEPOINT_STOPPING, EVENT, "Safepoint State Synchronization",
	 JVM, "Runtime", DURATION EVENT_THREAD SAFEPOINT_ID},
	{"jdk.SafepointEnd", JFR_E_SAFEPOINT_END, EVENT, "Safepoint End", JVM, "Runtime",
	 DURATION EVENT_THREAD SAFEPOINT_ID},
	{"jdk.Compilation", JFR_E_COMPILATION, EVENT, "Compilation", JVM, "Compiler",
	 DURATION EVENT_THREAD "method:method Method; compileLevel:int Compilation Level; "
	 /* the JDK spells it so: */ "succeded:boolean Succeeded"},
	{"jdk.ClassLoad", JFR_E_CLASS_LOAD, EVENT, "Class Load", JVM, "Class Loading",
	 DURATION EVENT_THREAD STACK_TRACE "loadedClass:class Loaded Class"},
	{JFR_TYPE_FACT, JFR_E_FACT, EVENT, "Fact of the Recording", "duet", NULL, "key:string Key; value:string Value"},
	{"duet.Resource", JFR_E_RESOURCE, EVENT, "Attribute of a Process", "duet", NULL,
	 "pid:long Process Identifier; key:string Key; value:string Value"},
};

#define PHASE "duration:ticks; name:string"
#define COLLECTOR_STATES "usesDynamicGCThreads:boolean; isExplicitGCConcurrent:boolean; isExplicitGCDisabled:boolean"
#define REDEFINITION "duration:ticks; stackTrace:stack; classCount; redefinitionId"
#define LIBRARY_RESULT "duration:ticks; name:string; success:boolean; errorMessage:string"
#define AGENT "name:string; options:string; initializationTime; initializationDuration"

/* Types without events, which the JDK's views ask for: a view fails if a type or a field that it names is not there. */
static const struct {
	const char *name, *fields;
} declared[] = {
	{"jdk.AllocationRequiringGC", "stackTrace:stack; size"},
	{"jdk.BooleanFlagChanged", "name:string; newValue:boolean; value:boolean"},
	{"jdk.CPUTimeSamplesLost", "lostSamples; eventThread:thread"},
	{"jdk.CPUTimeStampCounter", "fastTimeEnabled:boolean; fastTimeAutoEnabled:boolean; "
				    "osFrequency; fastTimeFrequency"},
	{"jdk.ClassLoaderStatistics", "classLoader:loader; classCount; hiddenClassCount"},
	{"jdk.CompilerConfiguration", "threadCount; dynamicCompilerThreadCount:boolean; tieredCompilation:boolean"},
	{"jdk.CompilerPhase", "duration:ticks; phase:string; phaseLevel"},
	{"jdk.CompilerStatistics", "compileCount; bailoutCount; osrCompileCount; standardCompileCount; "
	 "osrBytesCompiled; standardBytesCompiled; nmethodsSize; nmethodCodeSize; peakTimeSpent; totalTimeSpent"},
	{"jdk.ContainerCPUThrottling", "cpuElapsedSlices; cpuThrottledSlices; cpuThrottledTime"},
	{"jdk.ContainerCPUUsage", "cpuTime; cpuUserTime; cpuSystemTime"},
	{"jdk.ContainerConfiguration", "containerType:string; cpuSlicePeriod; cpuQuota; cpuShares; effectiveCpuCount; "
				       "memorySoftLimit; memoryLimit; swapMemoryLimit; hostTotalMemory"},
	{"jdk.ContainerIOUsage", "serviceRequests; dataTransferred"},
	{"jdk.ContainerMemoryUsage", "memoryFailCount; memoryUsage; swapMemoryUsage"},
	{"jdk.Deoptimization", "lineNumber; bci; reason:string; method:method"},
	{"jdk.DeprecatedInvocation", "stackTrace:stack; method:method; forRemoval:boolean"},
	{"jdk.DoubleFlag", "name:string; value:string"},
	{"jdk.DoubleFlagChanged", "name:string; value:string"},
	{"jdk.ExceptionStatistics", "duration:ticks; throwables"},
	{"jdk.ExecuteVMOperation", "duration:ticks; operation:string"},
	{"jdk.FinalizerStatistics", "finalizableClass:class; objects; totalFinalizersRun"},
	{"jdk.GCCPUTime", "gcId; userTime; systemTime; realTime"},
	{"jdk.GCConfiguration", "youngCollector:string; oldCollector:string; parallelGCThreads; concurrentGCThreads; "
	 COLLECTOR_STATES "; pauseTarget; gcTimeRatio"},
	{"jdk.GCHeapConfiguration", "minSize; maxSize; initialSize; "
	 "usesCompressedOops:boolean; compressedOopsMode:string"},
	{"jdk.GCPhaseConcurrent", PHASE},
	{"jdk.GCPhaseConcurrentLevel1", PHASE},
	{"jdk.GCPhaseParallel", PHASE},
	{"jdk.GCPhasePauseLevel1", PHASE},
	{"jdk.GCPhasePauseLevel2", PHASE},
	{"jdk.GCPhasePauseLevel3", PHASE},
	{"jdk.GCPhasePauseLevel4", PHASE},
	{"jdk.GCReferenceStatistics", "gcId; type:string; count"},
	{"jdk.InitialEnvironmentVariable", "key:string; value:string"},
	{"jdk.IntFlag", "name:string; value; origin:origin"},
	{"jdk.IntFlagChanged", "name:string; value"},
	{"jdk.JavaAgent", AGENT},
	{"jdk.JavaMonitorInflate", "duration:ticks; stackTrace:stack; monitorClass:class"},
	{"jdk.LongFlagChanged", "name:string; value"},
	{"jdk.MethodTiming", "method:method; invocations; minimum; average; maximum"},
	{"jdk.ModuleRequire", "source:package"},
	{"jdk.NativeAgent", AGENT},
	{"jdk.NativeLibraryLoad", LIBRARY_RESULT},
	{"jdk.NativeLibraryUnload", LIBRARY_RESULT},
	{"jdk.NativeMemoryUsage", "type:string; reserved; committed"},
	{"jdk.NativeMethodSample", "sampledThread:thread; stackTrace:stack; state:state"},
	{"jdk.NetworkUtilization", "networkInterface:string; readRate; writeRate"},
	{"jdk.ObjectCount", "gcId; objectClass:class; count; totalSize"},
	{"jdk.ObjectCountAfterGC", "gcId; objectClass:class; count; totalSize"},
	{"jdk.OldGarbageCollection", "duration:ticks; gcId"},
	{"jdk.RedefineClasses", REDEFINITION},
	{"jdk.RetransformClasses", REDEFINITION},
	{"jdk.Shutdown", "reason:string"},
	{"jdk.StringFlagChanged", "name:string; value:string"},
	{"jdk.SystemGC", "duration:ticks; stackTrace:stack; invokedConcurrent:boolean"},
	{"jdk.ThreadEnd", "eventThread:thread"},
	{"jdk.ThreadStart", "eventThread:thread; stackTrace:stack"},
	{"jdk.UnsignedIntFlag", "name:string; value; origin:origin"},
	{"jdk.UnsignedIntFlagChanged", "name:string; value"},
	{"jdk.UnsignedLongFlag", "name:string; value; origin:origin"},
	{"jdk.UnsignedLongFlagChanged", "name:string; value"},
	{"jdk.VirtualThreadPinned", "duration:ticks; eventThread:thread; stackTrace:stack"},
	{"jdk.VirtualizationInformation", "name:string"},
	{"jdk.YoungGarbageCollection", "duration:ticks; gcId"},
};
/* clang-format on */

#define COUNT(rows) (sizeof(rows) / sizeof(*(rows)))

struct metadata {
	struct intern strings;
	struct buf elements;
	unsigned int base; /* of the numbers of types */
	bool is_plain;
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

#define FIELD_MAX 64 /* bytes */

/* Returns the field behind this one; "" if it is the last. */
static const char *next_field(const char *field)
{
	field += strcspn(field, ";");
	return field + strspn(field, "; ");
}

static void put_field(struct metadata *m, const char *field)
{
	char name[FIELD_MAX], *label, *word;
	const struct field_kind *kind = field_kinds;

	field += *field == '+';
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(field, ";"), field);
	label = strchr(name, ' ');
	if (label)
		*label++ = '\0';
	word = strchr(name, ':');
	if (word)
		*word++ = '\0';
	while (kind->word && (!word || strcmp(kind->word, word)))
		kind++;
	begin(m, "field", kind->form == VALUE ? 2 : 3);
	attribute(m, "name", name);
	number_attribute(m, "class", m->base + kind->type);
	if (kind->form == OF_POOL)
		attribute(m, "constantPool", "true");
	else if (kind->form == ARRAY)
		attribute(m, "dimension", "1");
	children(m, !!label + !!kind->contents[0].type + !!kind->contents[1].type);
	if (label)
		put_annotation(m, JFR_T_LABEL, label);
	for (size_t i = 0; i < COUNT(kind->contents) && kind->contents[i].type; i++)
		put_annotation(m, kind->contents[i].type, kind->contents[i].value);
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
	static const char *const marks[][2] = {
		[SIMPLE] = {"simpleType", "true"},
		[EVENT] = {"superType", "jdk.jfr.Event"},
		[ANNOTATION] = {"superType", "java.lang.annotation.Annotation"},
	};

	begin(m, "class", 2 + (type->kind != STRUCTURE));
	attribute(m, "name", type->name);
	number_attribute(m, "id", m->base + type->id);
	if (type->kind != STRUCTURE)
		attribute(m, marks[type->kind][0], marks[type->kind][1]);
}

static bool is_written(const struct metadata *m, const char *field)
{
	return field && *field && (*field != '+' || !m->is_plain);
}

static void put_type(struct metadata *m, const struct type *type)
{
	size_t fields = type->kind == EVENT;

	for (const char *field = type->fields; is_written(m, field); field = next_field(field))
		fields++;
	put_type_head(m, type);
	children(m, fields + !!type->label + !!type->category + is_content(type->id));
	if (type->label)
		put_annotation(m, JFR_T_LABEL, type->label);
	if (type->category)
		put_category(m, type);
	if (is_content(type->id))
		put_annotation(m, JFR_T_CONTENT_TYPE, NULL);
	if (type->kind == EVENT)
		put_field(m, START_TIME);
	for (const char *field = type->fields; is_written(m, field); field = next_field(field))
		put_field(m, field);
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
	bool is_bytes = profile->events.items[event].unit == PROFILE_BYTES;
	BUF(full);

	add_own_name(&full, name, event);
	put_type(m, &(struct type){
			    .name = full.data,
			    .id = (enum jfr_type)(JFR_E_OWN + event),
			    .kind = EVENT,
			    .label = name,
			    .category = "duet",
			    .fields = is_bytes ? OWN_FIELDS "bytes Weight" : OWN_FIELDS "long Weight",
		    });
	m->failed |= full.failed;
}

static void put_elements(struct metadata *m, const struct profile *profile, const bool *own)
{
	size_t count = COUNT(types) + COUNT(declared);

	for (size_t i = 0; i < profile->events.len; i++)
		count += own[i];
	begin(m, "root", 0);
	children(m, 2);
	begin(m, "metadata", 0);
	children(m, count);
	for (size_t i = 0; i < COUNT(types); i++)
		put_type(m, &types[i]);
	for (size_t i = 0; i < profile->events.len; i++)
		if (own[i])
			put_own_type(m, profile, i);
	for (size_t i = 0; i < COUNT(declared); i++)
		put_type(m, &(struct type){.name = declared[i].name,
					   .id = (enum jfr_type)(JFR_E_DECLARED + i),
					   .kind = EVENT,
					   .fields = declared[i].fields});
	begin(m, "region", 2);
	attribute(m, "locale", "en_US");
	attribute(m, "gmtOffset", "0");
	children(m, 0);
}

#define METADATA_ID 0x7fffffff /* the JDK's own types have numbers from 1 on */

int jfr_put_metadata(struct buf *out, const struct profile *profile, const bool *own, uint64_t ticks,
		     const struct jfr_pools *pools)
{
	struct metadata m = {.base = pools->type_base, .is_plain = pools->is_plain};
	BUF(body);

	if (intern_init(&m.strings) < 0)
		return -ENOMEM;
	buf_init(&m.elements);
	put_elements(&m, profile, own);
	jfr_put_numbers(&body, JFR_METADATA, ticks, 0, METADATA_ID, m.strings.strings.len);
	for (uint32_t i = 0; i < m.strings.strings.len; i++)
		jfr_put_text(&body, intern_text(&m.strings, i));
	buf_add(&body, m.elements.data, m.elements.len);
	jfr_put_event(out, &body);
	m.failed |= out->failed || m.elements.failed;
	intern_release(&m.strings);
	buf_release(&m.elements);
	return m.failed ? -ENOMEM : 0;
}
