/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Every way to lose a sample, a stack or a name, in one list. It yields the enums that BPF, agent and loader count
 * with, and the text that the user reads. To add a counter, add a row, with what it means for the samples:
 *
 *   LOST   something that happened is in no sample
 *   CUT    the sample is there, but a part of its stack or a name is missing
 *   ASIDE  neither: counted elsewhere too, or made good
 *
 *   DUET_BPF_COUNTERS    counted per CPU in the BPF map `counters`
 *   DUET_AGENT_COUNTERS  counted by the agent in the ring's header page
 *   DUET_LOADER_COUNTERS counted by the loader in loader_counters[] (user/base/counters.h)
 */
#pragma once

/* clang-format off */
#define DUET_BPF_COUNTERS(X) \
	X(BPF_RING_FULL,        LOST,  "samples dropped: the kernel ring was full") \
	X(BPF_NO_KERNEL_STACK,  CUT,   "kernel stacks that could not be read") \
	X(BPF_NOT_VISIBLE,      LOST,  "samples of processes outside the loader's pid namespace") \
	X(BPF_NO_LEVEL, ASIDE, "samples left to the next one: they interrupted others, which had all the memory") \
	X(BPF_NO_THREAD_STATE,  LOST,  "sleeps not seen: no memory for the state of their thread") \
	X(BPF_MOVED,            CUT,   "sleeps without a stack: pc or sp had changed") \
	X(BPF_NO_RETURN,        LOST,  "sleeps not sampled: no hook could take them, or a pause limited the overhead") \
	X(BPF_NO_WAKER,         CUT,   "sleeps without their waker: its stack could not be taken because of the load") \
	X(BPF_NO_HOLDER, CUT, "releases of locks whose thread's stack could not be taken because of the load") \
	X(BPF_CONTEXT_UNREAD,   ASIDE, "samples without the attributes of their thread: they could not be read") \
	X(BPF_URING_FULL,       LOST,  "requests of io_uring not sampled: too many were under way") \
	X(BPF_URING_UNENDED,    LOST,  "requests of io_uring not sampled: their completion had no room in the ring") \
	X(BPF_URING_SILENT,     LOST,  "requests of io_uring not sampled: they complete without an entry in the ring") \
	X(BPF_BLOCK_FULL,       LOST,  "requests to block devices not sampled: too many were under way") \
	X(BPF_TARGETS_FULL,     LOST,  "processes not sampled: the table of targets was full") \
	X(BPF_SIGNAL_BUSY,      ASIDE, "signals refused: the CPU's irq_work slot was busy") \
	X(BPF_SIGNAL_FAILED,    ASIDE, "signals refused by the kernel for another reason") \
	X(BPF_SIGNAL_BLOCKED,   ASIDE, "signals not sent: the thread blocks the signal") \
	X(BPF_SIGNAL_STOLEN,    ASIDE, "signals not sent: the JVM's handler was replaced") \
	X(BPF_SIGNAL_SYSCALL,   ASIDE, "signals not sent: the system call would not restart") \
	X(BPF_SIGNAL_EXITING,   ASIDE, "signals not sent: the thread was exiting or in exec")

#define DUET_AGENT_COUNTERS(X) \
	X(AGENT_RING_FULL,      LOST,  "Java stacks dropped: the agent's ring was full") \
	X(AGENT_NO_SLOT,        LOST,  "Java stacks dropped: every walk buffer was in use") \
	X(AGENT_REENTERED,      ASIDE, "signals ignored: the thread was already being sampled") \
	X(AGENT_FAULT,          LOST,  "Java stacks dropped: the walk faulted and was abandoned") \
	X(AGENT_METHOD_GONE, CUT, \
	  "methods under [unloaded_class]: their class was unloaded before they could be named") \
	X(AGENT_CODE_GONE,      CUT,   "code under [unloaded_code]: it was freed before it could be named") \
	X(AGENT_WENT_ON, LOST, "waits over the end not shown: their thread continued before its stack was read") \
	X(AGENT_METADATA_FULL,  LOST,  "thread and unload records dropped: the metadata ring was full") \
	X(AGENT_TIMER_FAILED,   LOST,  "threads not sampled: their timer or perf event could not be created") \
	X(AGENT_NOT_INSTRUMENTED, LOST, \
	  "methods or classes not instrumented: native, too large, or refused by the JVM") \
	X(AGENT_INTRINSIC,      LOST,  "intrinsic methods: calls that compiled code does by itself are not seen") \
	X(AGENT_LOADED_BEFORE, LOST,  "classes not counted: the JVM had loaded them before it let the agent begin") \
	X(AGENT_NO_KERNEL_RING, CUT, \
	  "threads without kernel frames: kernel.perf_event_mlock_kb has no room for their ring")

#define DUET_LOADER_COUNTERS(X) \
	X(LOADER_CPU_CAME, LOST, "times that a CPU came online: up to a second of what it ran first was not sampled") \
	X(LOADER_BAD_RECORD,    LOST,  "kernel records refused: malformed") \
	X(LOADER_BAD_AGENT_RECORD, LOST,  "agent records refused: malformed") \
	X(LOADER_MAPPINGS_LOST, LOST,  "mappings of short-lived processes lost: the kernel's rings were full") \
	X(LOADER_NO_AGENT_RECORD, CUT,   "samples not joined: no agent record arrived for them") \
	X(LOADER_PC_MISMATCH,   CUT,   "samples not joined: pc or sp differed") \
	X(LOADER_NOT_SIGNALLED, CUT,   "samples of Java threads not joined: no signal was sent") \
	X(LOADER_LATE,          CUT,   "samples not joined: the agent's record came too late") \
	X(LOADER_ORPHAN_RECORD, ASIDE, "agent records without a sample") \
	X(LOADER_RING_HOSTILE,  LOST,  "agents dropped: their ring was inconsistent") \
	X(LOADER_RECORDS_FULL,  LOST,  "agent records dropped: one JVM sent more than its samples can need") \
	X(LOADER_JVM_FULL,      LOST,  "method, code or thread records dropped: the tables of their JVM were full") \
	X(LOADER_STACKS_FULL,   CUT,   "stacks not kept: their process had too many different ones") \
	X(LOADER_MEMORY_FULL,   CUT,   "stacks not kept: --max-memory was reached, they are under [too_many_stacks]") \
	X(LOADER_ROOM_SPENT, CUT, "stacks, names and files not kept: their user had used up his share of the room") \
	X(LOADER_JVMS_REFUSED,  ASIDE, "JVMs without an agent: --max-memory had no room for their ring") \
	X(LOADER_JVMS_ENDED,    ASIDE, "JVMs not read: they ended too early") \
	X(LOADER_READERS_LOST,  ASIDE, "readers of JVMs that ended before their JVM") \
	X(LOADER_JVM_UNREAD,    CUT,   "samples without Java frames: the reader of their JVM had ended") \
	X(LOADER_THREADS_FULL,  CUT,   "samples under [others]: there was no room for new threads (--max-memory)") \
	X(LOADER_SILENT_TARGETS, ASIDE, \
	  "files and mappings not read: a file system or process did not answer in time") \
	X(LOADER_PARSERS_LOST, ASIDE, "files not parsed: their parser crashed, or needed too much memory or CPU time") \
	X(LOADER_PUBLISHED_BAD, ASIDE, \
	  "process contexts not taken: malformed, too large, or changed while they were read") \
	X(LOADER_CONTEXT_LACKS, ASIDE, \
	  "samples without some attributes of their thread: unknown names, malformed, or too many different ones") \
	X(LOADER_USER_SPENT, ASIDE, \
	  "reads of files and mappings put off: their user's processes had used too much CPU") \
	X(LOADER_STACK_GUESSED, ASIDE, \
	  "user stacks with frames found by frame pointer: no unwind row covers their code") \
	X(LOADER_STACK_NO_ROW,  CUT,   "user stacks cut: no unwind row, and no valid frame pointer") \
	X(LOADER_STACK_UNREADABLE, CUT,   "user stacks cut: stack memory could not be read") \
	X(LOADER_STACK_BAD_CFA, CUT,   "user stacks cut: the caller's frame would not be above its callee's") \
	X(LOADER_STACK_DEPTH,   CUT,   "user stacks cut: more than 16384 frames") \
	X(LOADER_STACK_LONG,    CUT,   "user stacks cut: the walk took too long") \
	X(LOADER_STACK_LEFT_OUT, CUT, \
	  "user stacks without their middle: deeper than 1024 frames (-j 16384 keeps all)") \
	X(LOADER_UNWIND_FILES, ASIDE, \
	  "files walked by frame pointer, at least for a while: the unwind tables were full") \
	X(LOADER_UNWIND_PROCESSES, ASIDE, "processes walked by frame pointer: the unwind tables were full") \
	X(LOADER_CODE_MISSING, CUT, "Java stacks with a gap: the code of a frame was not read before the JVM ended") \
	X(LOADER_CODE_LATE,     CUT,   "Java stacks with a gap: the code of a frame was not read in time") \
	X(LOADER_NAME_MISSING,  CUT,   "Java frames without a name: it was not read before the JVM ended") \
	X(LOADER_NAME_LATE,     CUT,   "Java frames without a name: it was not read in time") \
	X(LOADER_SLEEPERS_FULL, LOST, \
	  "sleeps over the end not shown: no memory or time for the stack of their thread") \
	X(LOADER_SLEEPERS_UNLISTED, LOST,  "lists of sleeping threads that were incomplete") \
	X(LOADER_NO_EARLY,      CUT,   "sleeps or requests without a stack: the record with it was missing") \
	X(LOADER_NO_WAKER,      CUT,   "sleeps without their waker: its record or its memory was missing") \
	X(LOADER_LEFT_OUT, ASIDE, \
	  "samples left out: the file neared its limit of size, and others stand for them, too") \
	X(LOADER_NOT_LOOKED_AT, LOST,  "samples of processes dropped: there were too many") \
	X(LOADER_OUT_OF_MEMORY, LOST,  "samples dropped: out of memory") \
	X(LOADER_WINDOW_LATE,   ASIDE, "samples in the window after theirs: they arrived when it was already written") \
	X(LOADER_WINDOW_LOST,   LOST,  "samples lost with windows that could not be written")
/* clang-format on */

#define DUET_COUNTER_ENUM(name, loss, text) DUET_##name,
enum duet_bpf_counter { DUET_BPF_COUNTERS(DUET_COUNTER_ENUM) DUET_BPF_COUNTER_MAX };
enum duet_agent_counter { DUET_AGENT_COUNTERS(DUET_COUNTER_ENUM) DUET_AGENT_COUNTER_MAX };
enum duet_loader_counter { DUET_LOADER_COUNTERS(DUET_COUNTER_ENUM) DUET_LOADER_COUNTER_MAX };
