/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* What the loader writes into BPF read-only data before the programs load, and the map values it fills afterwards. */
#ifndef DUET_CONFIG_H
#define DUET_CONFIG_H

#include "duet_types.h"

#define DUET_MAX_TARGETS 8192 /* rows of the target map: -p PID,PID… and the children of -- CMD */
#define DUET_MAX_JVMS 4096    /* rows of the JVM map */
#define DUET_MAX_CGROUP_DEPTH 32 /* cgroups above a task's own that are looked at for --cgroup */

#define DUET_CHECK_ONE_IN 64 /* samples that need no signal get one, to check the walk by */

/* When a sample of a JVM's thread is signalled, so that the agent walks the Java frames too. */
enum duet_signals {
	DUET_SIGNALS_ALWAYS,
	DUET_SIGNALS_NEEDED, /* when BPF's own walk does not carry the sample, and one in DUET_CHECK_ONE_IN */
	DUET_SIGNALS_NEVER,
};

#define DUET_MAX_EVENTS 8 /* of one recording; a power of 2 */

/* How BPF samples one of the recording's events. A tick is one run of the program for it. */
struct duet_event {
	uint64_t tick_weight; /* what a tick weighs, in the event's unit: the period of the perf event */
	uint32_t gap; /* ticks a sample, on average; 1 = every tick */
	uint8_t is_clock; /* ticks come by time: those that fall due while the program runs never come */
	uint8_t may_signal; /* the thread was interrupted and runs on: the agent may add its half in a signal handler */
	uint8_t reserved[2];
};
DUET_ASSERT_SIZE(struct duet_event, 16);

/* BPF .rodata: constant once loaded, so that the verifier removes what is off. */
struct duet_config {
	uint64_t pidns_inum;	/* loader's pid namespace; 0 = the initial one, ids need no translation */
	uint32_t user_stack_depth;   /* frames that the walk passes, <= DUET_MAX_WALK */
	uint32_t kernel_stack_depth; /* frames, <= DUET_MAX_STACK; 0 = --all-user */
	uint8_t filter_targets; /* 1: only tgids in the map `targets`; 0: every process */
	uint8_t has_task_pt_regs;    /* 1: helper bpf_task_pt_regs (Linux 5.15+) */
	uint8_t follow_forks; /* 1: a child of a target is a target */
	uint8_t event_count; /* of events; the programs of several know theirs by bpf_get_attach_cookie(), Linux 5.15 */
	uint32_t kernel_stack_bytes; /* THREAD_SIZE, to find a task's user registers before Linux 5.15 */
	uint32_t signals; /* enum duet_signals */
	uint16_t clock; /* index of the event that is a clock; DUET_MAX_EVENTS for none */
	uint16_t keep_all; /* 1: no user frame is left out, see struct duet_frames_record */
	uint64_t cgroup_id;	/* only tasks in this cgroup (v2) or below it; 0: in any */
	char comm[DUET_COMM_LEN]; /* only processes whose group leader has this name; "": any */
	struct duet_event events[DUET_MAX_EVENTS];
};
DUET_ASSERT_SIZE(struct duet_config, 56 + DUET_MAX_EVENTS * 16);

/* Value of the map `costs`, one a CPU and event. Only ticks that passed the filter count. */
struct duet_cost {
	uint64_t ticks;
	uint64_t pending; /* of them, since the last sample: the next one stands for them too */
	uint64_t runs;	  /* of the sampling program, filtered ones too */
	uint64_t run_ns;
	uint64_t longest_ns; /* of these runs */
	uint64_t rest_until_ns; /* no sample before: the last one took so long that its thread would not get on */
	uint64_t gap;	  /* ticks from the last sample to the next */
	uint64_t ticked_ns; /* of a clock: the last tick */
};
DUET_ASSERT_SIZE(struct duet_cost, 64);

/*
 * The map `run_times` counts the runs of the sampling program that made a sample, by the time that they took: so many
 * steps of 2^DUET_RUN_TIME_SHIFT ns, 256, or for the last entry that many and more.
 */
#define DUET_RUN_TIMES 256
#define DUET_RUN_TIME_SHIFT 8

/*
 * Value of the map `jvms`, key = tgid as the loader sees it. Inserted only
 * after the agent's handler is installed: a signal to a process without a
 * handler kills it. BPF compares all three before every signal.
 */
struct duet_jvm_target {
	uint64_t start_ticks;	/* group leader's start_boottime in USER_HZ ticks, /proc/PID/stat field 22 */
	uint64_t handler;	/* sa_handler of the agent in that process; anything else = stolen */
	uint32_t signo;		/* real-time signal, 1..64 */
	uint32_t reserved;
};
DUET_ASSERT_SIZE(struct duet_jvm_target, 24);

#endif
