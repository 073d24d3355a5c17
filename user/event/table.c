/* SPDX-License-Identifier: MIT */
/*
 * The rows of the table of events. An event without .may_signal may hit a thread within a system call, which a signal
 * would end with EINTR, or a thread that goes to sleep, which a signal would wake.
 */
#include <linux/perf_event.h>

#include "base/clock.h"
#include "event/event.h"

#define EVENT(of_name, of_help, ...) &(const struct event){.name = of_name, .help = of_help, __VA_ARGS__}

#define INTERVAL(of_unit, usual, least, most)                                                                       \
	.unit = EVENT_##of_unit, .default_interval = (usual), .least_interval = (least), .most_interval = (most)
#define ANY_COUNT INTERVAL(COUNT, 1, 1, 1000000000)

#define SOFTWARE(counter) .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_##counter
/* It comes from the JVM. */
#define TAP(kind) .program = DUET_PROGRAM_NONE, .agent = DUET_AGENT_EVENT_##kind

/* clang-format off */

static const struct event offcpu = {
	.name = "offcpu",
	.help = "time that threads spend blocked or waiting for a CPU: what they wait in",
	INTERVAL(NS, 10 * NS_PER_MS, 10 * NS_PER_US, NS_PER_SEC),
	.program = DUET_PROGRAM_OFFCPU, .is_chosen = true,
	.agent = DUET_AGENT_EVENT_OFFCPU, .option = EVENT_INTERVAL,
};

/* Shown as alloc: what BPF samples of a JVM that does not sample its allocations itself. Not in the table. */
static const struct event tlab = {
	.name = "tlab",
	.help = "alloc where HotSpot's threads take new buffers, or have no room in them",
	INTERVAL(BYTES, 512 << 10, 1, 1 << 30),
	.program = DUET_PROGRAM_TLAB, .is_chosen = true,
};

static const struct event alloc = {
	.name = "alloc",
	.help = "memory that Java code takes from the heap, in bytes, with the class (before JDK 11 by BPF)",
	INTERVAL(BYTES, 512 << 10, 1, 1 << 30),
	TAP(ALLOC),
	.also_shows = &tlab,
	.option = EVENT_INTERVAL, .is_in_all = true,
};

static const struct event nativemem = {
	.name = "nativemem",
	.help = "memory that native code of a JVM takes by malloc() and its family, in bytes; 0: every call",
	INTERVAL(BYTES, 512 << 10, 1, 1 << 30),
	TAP(NATIVEMEM), .needs_tables = true, .may_be_all = true,
	.option = EVENT_INTERVAL, .is_in_all = true,
};

const struct event event_holders = {
	.name = "holders",
	.help = "the threads that release locks for which others wait",
	INTERVAL(NS, 10 * NS_PER_US, 1, NS_PER_SEC),
	.program = DUET_PROGRAM_HOLDERS, .is_chosen = true,
};

/* The intervals give some hundreds to thousands of samples a second on a busy CPU. */
#define COUNTER(of_name, of_help, counter, usual) \
	EVENT(of_name, of_help, INTERVAL(COUNT, usual, 1, 4000000000), .may_signal = true, \
	      .perf = {.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##counter, .by_period = true})

const struct event *const event_table[] = {
	/* No hardware counter: virtual machines seldom have one. The least interval is the kernel's, 100 kHz a CPU. */
	EVENT("cpu", "CPU time, in the kernel, in native code and in Java",
	      INTERVAL(NS, 10 * NS_PER_MS, 10 * NS_PER_US, 3600 * NS_PER_SEC),
	      .perf = {SOFTWARE(CPU_CLOCK), .is_clock = true}, .may_signal = true, .agent = DUET_AGENT_EVENT_CLOCK,
	      .option = EVENT_SWITCH, .is_in_all = true),
	&offcpu,
	/* Only its ticks cause signals, and ticks interrupt threads that run. */
	EVENT("wall", "all time of every thread, on a CPU (as cpu) and off it (as offcpu)",
	      INTERVAL(NS, 10 * NS_PER_MS, 10 * NS_PER_US, NS_PER_SEC), .perf = {SOFTWARE(CPU_CLOCK), .is_clock = true},
	      .may_signal = true, .agent = DUET_AGENT_EVENT_CLOCK, .also_shows = &offcpu, .option = EVENT_INTERVAL,
	      .is_in_all = true),
	EVENT("wakeup",
	      "time off CPU, as offcpu, each sleep with the stack of the thread or interrupt that ended it: --wakers",
	      INTERVAL(NS, 10 * NS_PER_MS, 10 * NS_PER_US, NS_PER_SEC), .program = DUET_PROGRAM_OFFCPU,
	      .is_chosen = true, .has_wakers = true),
	EVENT("page-faults",
	      "pages that a thread touched and the kernel had to allocate or map: what makes memory grow", ANY_COUNT,
	      .perf = {SOFTWARE(PAGE_FAULTS)}, .may_signal = true, .agent = DUET_AGENT_EVENT_PAGE_FAULTS),
	EVENT("minor-faults", "page faults that needed no reading of a file or of swap", ANY_COUNT,
	      .perf = {SOFTWARE(PAGE_FAULTS_MIN)}, .may_signal = true),
	EVENT("major-faults", "page faults that read a file or swap", ANY_COUNT, .perf = {SOFTWARE(PAGE_FAULTS_MAJ)},
	      .may_signal = true),
	EVENT("io",
	      "time that reading, writing and sending take: of files, devices, sockets and pipes, with their name",
	      INTERVAL(NS, NS_PER_MS, NS_PER_US, NS_PER_SEC), .program = DUET_PROGRAM_IO, .is_chosen = true),
	EVENT("io-bytes", "bytes that are read, written or sent", INTERVAL(BYTES, 64 << 10, 1, UINT32_MAX),
	      .program = DUET_PROGRAM_IO_BYTES, .is_chosen = true),
	EVENT("block", "time that block devices take for requests, from issue to completion, with device and kind",
	      INTERVAL(NS, NS_PER_MS, NS_PER_US, NS_PER_SEC), .program = DUET_PROGRAM_BLOCK, .is_chosen = true,
	      .option = EVENT_INTERVAL),
	EVENT("rss", "memory that becomes resident, by page faults of any process: what makes it grow",
	      INTERVAL(BYTES, 512 << 10, 1, UINT32_MAX), .perf = {SOFTWARE(PAGE_FAULTS)}, .counts_pages = true,
	      .may_signal = true),
	EVENT("mmap",
	      "address space that mmap, mremap and brk are asked for, by any process, whether it is touched or not",
	      INTERVAL(BYTES, 512 << 10, 1, UINT32_MAX), .program = DUET_PROGRAM_MMAP, .is_chosen = true),
	EVENT("context-switches", "threads that left a CPU, to wait or for another thread: their stacks", ANY_COUNT,
	      .perf = {SOFTWARE(CONTEXT_SWITCHES)}),
	EVENT("cpu-migrations", "threads that continue on another CPU: where they left the first one", ANY_COUNT,
	      .perf = {SOFTWARE(CPU_MIGRATIONS)}),
	EVENT("alignment-faults", "unaligned accesses that the kernel completed (never on x86-64)", ANY_COUNT,
	      .perf = {SOFTWARE(ALIGNMENT_FAULTS)}),
	EVENT("emulation-faults", "instructions that the kernel emulated (never on x86-64)", ANY_COUNT,
	      .perf = {SOFTWARE(EMULATION_FAULTS)}),
	COUNTER("cycles", "cycles of the CPU's clock", CPU_CYCLES, 1000000),
	COUNTER("instructions", "instructions that the CPU completed", INSTRUCTIONS, 1000000),
	COUNTER("cache-references", "accesses to the last cache", CACHE_REFERENCES, 1000000),
	COUNTER("cache-misses", "accesses that the last cache could not serve", CACHE_MISSES, 1000),
	COUNTER("branch-instructions", "branches", BRANCH_INSTRUCTIONS, 1000000),
	COUNTER("branch-misses", "branches that the CPU predicted wrongly", BRANCH_MISSES, 1000),
	COUNTER("bus-cycles", "cycles of the bus", BUS_CYCLES, 1000000),
	COUNTER("stalled-cycles-frontend", "cycles that waited for instructions", STALLED_CYCLES_FRONTEND, 1000000),
	COUNTER("stalled-cycles-backend", "cycles that waited for data or for a unit of the CPU",
		STALLED_CYCLES_BACKEND, 1000000),
	COUNTER("ref-cycles", "cycles at the nominal frequency", REF_CPU_CYCLES, 1000000),
	EVENT("syscalls", "system calls: the stacks that make them", ANY_COUNT, .program = DUET_PROGRAM_SYSCALLS),
	&alloc,
	EVENT("live", "the part of alloc that is still in use when the recording or a window ends",
	      INTERVAL(BYTES, 512 << 10, 1, 1 << 30), TAP(LIVE), .interval_of = &alloc, .option = EVENT_SWITCH,
	      .is_in_all = true),
	EVENT("lock",
	      "time that Java threads wait for locks, synchronized or of java.util.concurrent, with their class",
	      INTERVAL(NS, 10 * NS_PER_US, 1, NS_PER_SEC), TAP(LOCK), .has_holders = true, .may_be_all = true,
	      .option = EVENT_INTERVAL, .is_in_all = true),
	&nativemem,
	EVENT("leak", "the part of nativemem that is not freed when the recording or a window ends",
	      INTERVAL(BYTES, 512 << 10, 1, 1 << 30), TAP(LEAK), .needs_tables = true, .may_be_all = true,
	      .option = EVENT_INTERVAL),
	EVENT("free", "with nativemem: when memory of its samples is freed; JFR has the addresses of both",
	      INTERVAL(COUNT, 1, 1, 1), TAP(FREE), .requires = &nativemem),
	EVENT("nativelock", "time that threads of a JVM wait for mutexes and read-write locks of native code",
	      INTERVAL(NS, 10 * NS_PER_US, 1, NS_PER_SEC), TAP(NATIVELOCK), .needs_tables = true, .has_holders = true,
	      .may_be_all = true, .option = EVENT_INTERVAL, .is_in_all = true),
	EVENT("wait", "time that Java threads wait to be notified: Object.wait, conditions, queues, latches, park",
	      INTERVAL(NS, NS_PER_MS, 1, NS_PER_SEC), TAP(WAIT), .may_be_all = true, .option = EVENT_INTERVAL),
	EVENT("exceptions", "exceptions and errors that Java code or the JVM creates: where, with the class", ANY_COUNT,
	      TAP(EXCEPTIONS)),
	EVENT("gc", "pauses of the garbage collector, in ns: the stack of the thread that collects",
	      INTERVAL(NS, 1, 1, NS_PER_SEC), TAP(GC), .needs_tables = true, .may_be_all = true),
	EVENT("safepoint", "time in which Java threads stand still, in ns, apart from the time until they do",
	      INTERVAL(NS, 1, 1, NS_PER_SEC), TAP(SAFEPOINT), .may_be_all = true),
	EVENT("class-load", "classes that a JVM loads: where, with the class", ANY_COUNT, TAP(CLASS_LOAD)),
	EVENT("compilation", "methods that a JVM compiles", ANY_COUNT, TAP(COMPILATION)),
	EVENT("span", "spans that the program reports (one.profiler.Span of duet-api.jar): their time, by tag",
	      INTERVAL(NS, 1, 1, 1), TAP(SPAN)),
	EVENT("userevent",
	      "events of the program's own, which it reports by asprof_emit_jfr_event(): how many, by type and data",
	      INTERVAL(COUNT, 1, 1, 1), TAP(USER)),
	NULL,
};
