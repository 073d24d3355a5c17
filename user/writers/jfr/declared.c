/* SPDX-License-Identifier: MIT */
#include "writers/jfr/metadata.h"

#include <stddef.h>

#define PHASE "duration name:string"
#define COLLECTOR_STATES "usesDynamicGCThreads:boolean isExplicitGCConcurrent:boolean isExplicitGCDisabled:boolean"
#define COMPILED "compileCount bailoutCount osrCompileCount standardCompileCount osrBytesCompiled standardBytesCompiled"
#define REDEFINITION "duration stackTrace:stack classCount redefinitionId"
#define LIBRARY_RESULT "duration name:string success:boolean errorMessage:string"
#define AGENT "name:string options:string initializationTime initializationDuration"

const struct jfr_declared jfr_declared[] = {
	{"jdk.AllocationRequiringGC", "stackTrace:stack size"},
	{"jdk.BooleanFlagChanged", "name:string newValue:boolean value:boolean"},
	{"jdk.CPUTimeSamplesLost", "lostSamples eventThread:thread"},
	{"jdk.CPUTimeStampCounter", "fastTimeEnabled:boolean fastTimeAutoEnabled:boolean "
				    "osFrequency fastTimeFrequency"},
	{"jdk.ClassLoaderStatistics", "classLoader:loader classCount hiddenClassCount"},
	{"jdk.CompilerConfiguration", "threadCount dynamicCompilerThreadCount:boolean tieredCompilation:boolean"},
	{"jdk.CompilerPhase", "duration phase:string phaseLevel"},
	{"jdk.CompilerStatistics", COMPILED " nmethodsSize nmethodCodeSize peakTimeSpent totalTimeSpent"},
	{"jdk.ContainerCPUThrottling", "cpuElapsedSlices cpuThrottledSlices cpuThrottledTime"},
	{"jdk.ContainerCPUUsage", "cpuTime cpuUserTime cpuSystemTime"},
	{"jdk.ContainerConfiguration", "containerType:string cpuSlicePeriod cpuQuota cpuShares effectiveCpuCount "
				       "memorySoftLimit memoryLimit swapMemoryLimit hostTotalMemory"},
	{"jdk.ContainerIOUsage", "serviceRequests dataTransferred"},
	{"jdk.ContainerMemoryUsage", "memoryFailCount memoryUsage swapMemoryUsage"},
	{"jdk.Deoptimization", "lineNumber bci reason:string method:method"},
	{"jdk.DeprecatedInvocation", "stackTrace:stack method:method forRemoval:boolean"},
	{"jdk.DoubleFlag", "name:string value:string"},
	{"jdk.DoubleFlagChanged", "name:string value:string"},
	{"jdk.ExceptionStatistics", "duration throwables"},
	{"jdk.ExecuteVMOperation", "duration operation:string"},
	{"jdk.FinalizerStatistics", "finalizableClass:class objects totalFinalizersRun"},
	{"jdk.GCCPUTime", "gcId userTime systemTime realTime"},
	{"jdk.GCConfiguration", "youngCollector:string oldCollector:string parallelGCThreads concurrentGCThreads "
				COLLECTOR_STATES " pauseTarget gcTimeRatio"},
	{"jdk.GCHeapConfiguration", "minSize maxSize initialSize usesCompressedOops:boolean compressedOopsMode:string"},
	{"jdk.GCPhaseConcurrent", PHASE},
	{"jdk.GCPhaseConcurrentLevel1", PHASE},
	{"jdk.GCPhaseParallel", PHASE},
	{"jdk.GCPhasePauseLevel1", PHASE},
	{"jdk.GCPhasePauseLevel2", PHASE},
	{"jdk.GCPhasePauseLevel3", PHASE},
	{"jdk.GCPhasePauseLevel4", PHASE},
	{"jdk.GCReferenceStatistics", "gcId type:string count"},
	{"jdk.InitialEnvironmentVariable", "key:string value:string"},
	{"jdk.IntFlag", "name:string value origin:origin"},
	{"jdk.IntFlagChanged", "name:string value"},
	{"jdk.JavaAgent", AGENT},
	{"jdk.JavaMonitorInflate", "duration stackTrace:stack monitorClass:class"},
	{"jdk.LongFlagChanged", "name:string value"},
	{"jdk.MethodTiming", "method:method invocations minimum average maximum"},
	{"jdk.ModuleRequire", "source:package"},
	{"jdk.NativeAgent", AGENT},
	{"jdk.NativeLibraryLoad", LIBRARY_RESULT},
	{"jdk.NativeLibraryUnload", LIBRARY_RESULT},
	{"jdk.NativeMemoryUsage", "type:string reserved committed"},
	{"jdk.NativeMethodSample", "sampledThread:thread stackTrace:stack state:state"},
	{"jdk.NetworkUtilization", "networkInterface:string readRate writeRate"},
	{"jdk.ObjectCount", "gcId objectClass:class count totalSize"},
	{"jdk.ObjectCountAfterGC", "gcId objectClass:class count totalSize"},
	{"jdk.OldGarbageCollection", "duration gcId"},
	{"jdk.RedefineClasses", REDEFINITION},
	{"jdk.RetransformClasses", REDEFINITION},
	{"jdk.Shutdown", "reason:string"},
	{"jdk.StringFlagChanged", "name:string value:string"},
	{"jdk.SystemGC", "duration stackTrace:stack invokedConcurrent:boolean"},
	{"jdk.ThreadEnd", "eventThread:thread"},
	{"jdk.ThreadStart", "eventThread:thread stackTrace:stack"},
	{"jdk.UnsignedIntFlag", "name:string value origin:origin"},
	{"jdk.UnsignedIntFlagChanged", "name:string value"},
	{"jdk.UnsignedLongFlag", "name:string value origin:origin"},
	{"jdk.UnsignedLongFlagChanged", "name:string value"},
	{"jdk.VirtualThreadPinned", "duration eventThread:thread stackTrace:stack"},
	{"jdk.VirtualizationInformation", "name:string"},
	{"jdk.YoungGarbageCollection", "duration gcId"},
	{NULL, NULL},
};
