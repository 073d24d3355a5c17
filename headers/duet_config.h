/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The read-only data that the loader sets before the BPF programs load, and the map values that it fills in afterwards.
 */
#pragma once

#include "duet_types.h"

#define DUET_MAX_TARGETS 8192 /* rows of the target map: -p PID,PID… and the children of -- CMD */
#define DUET_MAX_JVMS 4096    /* rows of the JVM map */
#define DUET_MAX_CGROUP_DEPTH 32 /* levels above a task's own cgroup that --cgroup searches */

#define DUET_CHECK_ONE_IN 64 /* of the samples that need no signal, one in this many gets one, to check the walk */

/* When to signal the thread of a JVM's sample, so that the agent walks the Java frames too. */
enum duet_signals {
	DUET_SIGNALS_ALWAYS,
	DUET_SIGNALS_NEEDED, /* when BPF's own walk is not sufficient, and for one in DUET_CHECK_ONE_IN others */
	DUET_SIGNALS_NEVER,
};

/* Bytes of the name that bpf/names.bpf.c gives. KSYM_SYMBOL_LEN of include/linux/kallsyms.h is below 700. */
#define DUET_NAME_BYTES 1024

#define DUET_MAX_EVENTS 16 /* most events of one recording; a power of 2 */

/*
 * Most samples that one CPU takes at the same time: a perf event may interrupt another program. Each level has its own
 * struct duet_scratch and struct unwind_known, 53 KB a CPU together.
 */
#define DUET_MAX_LEVELS 2

/*
 * The BPF programs that sample. PERF samples all counters and breakpoints, TRACEPOINT all tracepoints, PROBE all probes
 * of functions; each of the others samples one event. To add one, add a row.
 */
#define DUET_PROGRAMS(X) \
	X(PERF, perf_plain) \
	X(TRACEPOINT, tracepoint_hit) \
	X(PROBE, probe_hit) \
	X(SYSCALLS, syscalls) \
	X(MMAP, mmap_enter) \
	X(IO, io_exit) \
	X(IO_BYTES, io_exit_bytes) \
	X(OFFCPU, offcpu_return) \
	X(TLAB, tlab_slow_path) \
	X(HOLDERS, holder_waking) \
	X(BLOCK, block_complete)

#define DUET_PROGRAM_ENUM(name, program) DUET_PROGRAM_##name,
enum duet_program {
	DUET_PROGRAMS(DUET_PROGRAM_ENUM)
	DUET_PROGRAM_MAX,
	DUET_PROGRAM_NONE = DUET_PROGRAM_MAX, /* BPF does not sample the event: the agent does */
};

/*
 * Cookie of DUET_PROGRAM_TLAB, which samples calls of two functions of HotSpot: which one it is, and which of its
 * arguments are the object's size and the JavaThread, counted from 1; 0: it has no such argument. The first argument is
 * the Klass; the size of a new buffer comes before that of the object.
 */
#define DUET_TLAB_IS_NEW (1u << 8) /* the object begins a new buffer (TLAB); else it lies outside of all */
#define DUET_TLAB_SIZE_AT(cookie) ((cookie) & 15)
#define DUET_TLAB_THREAD_AT(cookie) ((cookie) >> 4 & 15)
#define DUET_TLAB_COOKIE(is_new, size_at, thread_at) \
	((is_new ? DUET_TLAB_IS_NEW : 0) | (uint32_t)(size_at) | (uint32_t)(thread_at) << 4)

/* Hooks at which a thread that has slept takes its sample, before it returns to user mode. The best comes first. */
enum duet_return {
	DUET_RETURN_NONE,
	DUET_RETURN_SWITCH_EXIT, /* tracepoint sched_exit_tp, Linux 6.15: the end of each call of the scheduler */
	/* tracepoint rseq_update, on the way to user mode: only threads that have registered rseq(2) */
	DUET_RETURN_RSEQ,
	DUET_RETURN_KPROBE, /* kprobe in finish_task_switch(), which the scheduler calls after each switch */
	DUET_RETURN_SYS_EXIT, /* tracepoint sys_exit: only sleeps in system calls */
	DUET_RETURN_MAX
};

/* What is sampled of requests of io_uring, and where the kernel's tracepoint has it. */
enum duet_uring {
	DUET_URING_TIME = 1 << 0,
	DUET_URING_BYTES = 1 << 1,
	/* the third argument of io_uring_complete is the entry of the ring (Linux 6.16), not its three fields */
	DUET_URING_HAS_ENTRY = 1 << 2,
};

/* How BPF samples one event of the recording. A tick is one run of the program for the event. */
struct duet_event {
	uint64_t tick_weight; /* weight of a tick in the event's unit: the period of the perf event */
	/*
	 * mean number of ticks per sample; 1: every tick is sampled. With is_chosen, a weight below it is sampled at
	 * random
	 */
	uint32_t gap;
	uint8_t is_clock; /* ticks come by time: the kernel skips those that fall due while the program runs */
	/* the thread was interrupted and continues, so the agent may add its half in a signal handler */
	uint8_t may_signal;
	uint8_t is_chosen; /* the program chooses what to sample; a tick is one unit of the weight */
	uint8_t shown_as; /* duet_sample.event of the samples */
	/* The field of a tracepoint's record that is a hit's weight. field_bytes: 1, 2, 4, 8; 0: each hit weighs 1. */
	uint16_t field_offset;
	uint8_t field_bytes;
	uint8_t field_is_signed; /* a negative value counts as 0 */
	/* a tracepoint at the entry of system calls, where only the thread's registers are known */
	uint8_t no_kernel_stack;
	uint8_t reserved[3];
};
DUET_ASSERT_SIZE(struct duet_event, 24);

/* Of the times of threads' newest samples (enum duet_newest): uint64_t, by tid modulo this; a power of 2. */
#define DUET_NEWEST_SLOTS 16384

/*
 * The options of a recording that BPF reads itself. A row of user/cmd/record_rows.c fills a member, and the loader
 * copies all.
 */
struct duet_options {
	struct duet_range {
		uint64_t least_ns, most_ns; /* most is 0: no limit */
	} sleeps; /* shorter and longer sleeps are not sampled */
	uint32_t signals; /* enum duet_signals */
	bool policies; /* samples have the thread's scheduling policy */
	bool receivers; /* ticks and counters have the class of the receiver of a virtual call */
	bool compiling; /* ticks and counters of a compiler's thread have the method that it compiles */
	uint8_t reserved;
};
DUET_ASSERT_SIZE(struct duet_options, 24);

/* BPF .rodata: constant after loading, so that the verifier removes disabled code. */
struct duet_config {
	uint64_t pidns_inum;	/* loader's pid namespace; 0: the initial one, where ids need no translation */
	uint32_t user_stack_depth;   /* most frames that the walk visits, <= DUET_MAX_WALK */
	uint32_t kernel_stack_depth; /* frames, <= DUET_MAX_STACK; 0 = --all-user */
	uint8_t filter_targets; /* 1: only tgids in the map `targets`; 0: every process */
	uint8_t has_task_pt_regs;    /* 1: helper bpf_task_pt_regs (Linux 5.15+) */
	uint8_t follow_forks; /* 1: a child of a target is a target */
	/* 1: a program has several events, which bpf_get_attach_cookie() (Linux 5.15) tells apart */
	uint8_t uses_index;
	uint32_t kernel_stack_bytes; /* THREAD_SIZE, to find a task's user registers before Linux 5.15 */
	uint32_t keep_all; /* 1: keep all user frames of deep stacks, see struct duet_frames_record */
	uint8_t event_of[12]; /* by enum duet_program: index of the event that the program samples */
	struct duet_options options;
	uint64_t cgroup_id;	/* sample only tasks in this cgroup (v2) or below it; 0: all tasks */
	char comm[DUET_COMM_LEN]; /* sample only processes whose group leader has this name; "": all processes */
	uint8_t sleep_return; /* enum duet_return; with RSEQ, threads without rseq take their samples elsewhere */
	uint8_t state_by_tid; /* 1: the state of threads is in a hash: task storage cannot be allocated everywhere */
	uint8_t uring; /* enum duet_uring; 0: requests of io_uring are not sampled */
	uint8_t block_queue_first; /* 1: tracepoints of block requests have the queue before the request */
	uint8_t notes_newest; /* 1: the map newest_samples has the time of each thread's newest sample */
	uint8_t reserved[3];
	struct duet_event events[DUET_MAX_EVENTS];
};
DUET_ASSERT_SIZE(struct duet_config, 96 + DUET_MAX_EVENTS * sizeof(struct duet_event));

/* Value of the map `costs`, one per CPU and event. `ticks` and `pending` count only ticks that passed the filter. */
struct duet_cost {
	uint64_t ticks;
	uint64_t pending; /* ticks since the last sample: the next sample accounts for them too */
	uint64_t runs;	  /* runs of the sampling program, filtered ones included */
	uint64_t run_ns;
	uint64_t longest_ns; /* longest run */
	uint64_t pause_until_ns; /* no sample before this time, so that the threads get at least half of the CPU */
	uint64_t gap;	  /* number of ticks between the last sample and the next */
	uint64_t is_due; /* of sleeps: the thread that has just got this CPU is to take a sample */
	uint64_t random; /* state of the event's random numbers; 0: not begun */
};
DUET_ASSERT_SIZE(struct duet_cost, 72);

/*
 * The map `run_times` counts the runs that made a sample, by their duration. Entry n counts runs of n steps of
 * 2^DUET_RUN_TIME_SHIFT = 256 ns; the last entry also counts all longer runs.
 */
#define DUET_RUN_TIMES 256
#define DUET_RUN_TIME_SHIFT 8

/*
 * Value of the map `jvms`, key = tgid in the loader's pid namespace. The loader inserts it only after the agent's
 * handler is installed: a signal to a process without a handler kills it. BPF checks all three fields before every
 * signal.
 */
struct duet_jvm_target {
	uint64_t start_ticks;	/* group leader's start_boottime in USER_HZ ticks, as in /proc/PID/stat field 22 */
	/* sa_handler of the agent in that process; if it differs, another handler has replaced the agent's */
	uint64_t handler;
	uint32_t signo;		/* real-time signal, 1..64 */
	uint32_t reserved;
};
DUET_ASSERT_SIZE(struct duet_jvm_target, 24);
