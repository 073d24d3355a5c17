/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Records from BPF to the loader, through the BPF ring buffer. Native byte
 * order, 8-byte aligned, zeroed before filled.
 */
#ifndef DUET_RECORD_H
#define DUET_RECORD_H

#include "duet_types.h"

#define DUET_RECORD_VERSION 7
#define DUET_MAX_STACK 127 /* kernel frames; the kernel's default perf_event_max_stack */
/*
 * User frames, which BPF walks by itself. Of a deeper stack a sample has the leaf's side and the root's; when all
 * frames are asked for, those between come before it in records of their own.
 */
#define DUET_MAX_USER_STACK 1024
#define DUET_ROOT_FRAMES 256 /* a power of 2 */
#define DUET_LEAF_FRAMES (DUET_MAX_USER_STACK - DUET_ROOT_FRAMES)
#define DUET_MAX_WALK 16384 /* frames that a walk passes: 10,000 of Java, and all of most stacks of 1 MB */
#define DUET_MAX_CGROUP_PATH 320 /* bytes with the NUL; those of Kubernetes under systemd have 200 */
#define DUET_MAX_VIRTUAL_NAME 64 /* bytes of a virtual thread's name; the rest is cut */

enum duet_record_type {
	DUET_RECORD_SAMPLE = 1,
	DUET_RECORD_EXEC,
	DUET_RECORD_EXIT,   /* of a process: the last thread has gone */
	DUET_RECORD_CGROUP, /* was made: it may be gone before its first sample is read */
	DUET_RECORD_FRAMES, /* of a deep stack, whose sample follows */
	DUET_RECORD_TYPE_MAX
};

struct duet_record {
	uint32_t size;	/* bytes, header included */
	uint16_t type;	/* enum duet_record_type */
	uint16_t version; /* DUET_RECORD_VERSION */
	uint64_t time_ns; /* CLOCK_MONOTONIC, bpf_ktime_get_ns */
	uint32_t tgid;	/* as the loader's pid namespace numbers it */
	uint32_t tid;
};
DUET_ASSERT_SIZE(struct duet_record, 24);

enum duet_sample_flag {
	DUET_SAMPLE_KERNEL = 1 << 0,	/* interrupted in kernel mode */
	DUET_SAMPLE_SIGNALLED = 1 << 1, /* a signal was queued for this sample */
	DUET_SAMPLE_PENDING = 1 << 2,	/* not signalled: an earlier signal is pending, its record serves both */
	DUET_SAMPLE_COOKIE = 1 << 3,	/* `cookie` travels with the signal */
	DUET_SAMPLE_JVM = 1 << 4,	/* the process is in the map `jvms` */
	DUET_SAMPLE_USER_REGS = 1 << 5, /* user_pc and user_sp are valid */
	DUET_SAMPLE_USER_COMPLETE = 1 << 6, /* the user stack reaches the thread's entry, each frame by its row */
	DUET_SAMPLE_UNKNOWN_CODE = 1 << 7, /* a pc lay in no mapping that BPF knows: read the process's again */
	DUET_SAMPLE_WALKED = 1 << 8, /* complete, by the JVM's layout: no signal is needed */
};

/* Why the walk of the user stack ended where it did. */
enum duet_walk_end {
	DUET_WALK_NONE,	      /* there was none */
	DUET_WALK_ENTRY,      /* the thread's entry, or where it would return to address 0 */
	DUET_WALK_DEPTH,      /* as many frames as were asked for */
	DUET_WALK_UNREADABLE, /* stack memory that cannot be read: not there, or paged out */
	DUET_WALK_NO_ROW,     /* no unwind row, and where it would have to be exact there is no other way */
	DUET_WALK_BAD_CFA,    /* the caller's frame would not lie above its callee's */
	DUET_WALK_BAD_FP,     /* no unwind row, and the frame pointer does not point into the stack */
	/* In the JVM's code: */
	DUET_WALK_NO_BLOB,    /* no code blob holds the pc, or its layout is not as published */
	DUET_WALK_NO_FRAME,   /* a stub without a frame size: so ends the part of a virtual thread that is mounted */
	DUET_WALK_LEAF,	      /* interrupted where a frame is being made or left, and nothing shows how far */
	DUET_WALK_BAD_INTERPRETED, /* the frame pointer does not lead to an interpreter frame */
	/* Anywhere: */
	DUET_WALK_LONG, /* it took longer than a thread may be held up */
	DUET_WALK_END_MAX
};

/* Why a sample of a JVM was not signalled; 0 when it was, or is PENDING. */
enum duet_no_signal {
	DUET_NO_SIGNAL_NONE,
	DUET_NO_SIGNAL_SYSCALL, /* in a system call that does not restart after a handler */
	DUET_NO_SIGNAL_BLOCKED, /* the thread blocks the signal (also: inside the handler) */
	DUET_NO_SIGNAL_STOLEN,  /* disposition is not the agent's handler */
	DUET_NO_SIGNAL_EXITING, /* exec or exit under way */
	DUET_NO_SIGNAL_REFUSED, /* the kernel refused */
	DUET_NO_SIGNAL_UNWANTED, /* --signals never */
	DUET_NO_SIGNAL_EVENT, /* the event allows none: its samples have no second half */
	DUET_NO_SIGNAL_MAX
};

/* No jmethodID but the address of a Method; it may be used again when its class has been unloaded. */
#define DUET_METHOD_BARE (1ull << 63)

/*
 * What a user frame of Java is, beside its address: the id of its compilation, which HotSpot counts from 1, or this
 * flag and the byte code's index, when it is of the interpreter. 0: of neither.
 */
#define DUET_ID_INTERPRETED (1u << 31)
#define DUET_ID_ON_HEAP (1u << 30) /* or this one: no frame, but the place of those of a virtual thread on the heap */
#define DUET_ID_NOT_FILLED (1u << 29) /* or this: a frame of the interpreter that deoptimization has not filled yet */
#define DUET_ID_BCI 0xffff /* JVM specification, 4.7.3: a method has less than 65536 bytes. All set: a native method */

/* A virtual thread that is mounted, as java.lang.Thread knows it. */
struct duet_virtual_thread {
	uint64_t id; /* Thread.threadId(); 0: the thread runs code of its own, or nothing can be told */
	uint8_t name_bytes; /* 0: it has no name, as most, or the name cannot be read */
	uint8_t is_utf16; /* else Latin-1 */
	uint8_t reserved[6];
	uint8_t name[DUET_MAX_VIRTUAL_NAME];
};
DUET_ASSERT_SIZE(struct duet_virtual_thread, 16 + DUET_MAX_VIRTUAL_NAME);

struct duet_sample {
	struct duet_record head;
	uint64_t start_ns;  /* group leader's start_boottime */
	uint64_t cgroup_id; /* cgroup v2 id of the task */
	uint64_t weight;    /* what this sample accounts for, in the unit of its event */
	uint64_t user_pc;   /* where the thread returns to user mode, also for kernel samples */
	uint64_t user_sp;
	uint64_t cookie;
	uint32_t ns_tgid;   /* ids in the innermost pid namespace: what the agent itself sees */
	uint32_t ns_tid;
	uint32_t event;	    /* which of the recording's events, < DUET_MAX_EVENTS */
	uint32_t reserved;
	uint16_t flags;	    /* enum duet_sample_flag */
	uint16_t no_signal; /* enum duet_no_signal */
	uint16_t kernel_depth;
	uint16_t user_depth;
	uint16_t walk_end;	/* enum duet_walk_end */
	uint16_t guessed_depth; /* user frames whose caller was found by frame pointer, for want of an unwind row */
	uint16_t id_depth; /* user_depth, or 0 when there are no ids */
	uint16_t left_out; /* user frames behind the first DUET_LEAF_FRAMES that the record has no room for */
	char comm[DUET_COMM_LEN];	  /* of the thread */
	char process_comm[DUET_COMM_LEN]; /* of the group leader */
	struct duet_virtual_thread virtual_thread;
	/*
	 * kernel_depth kernel addresses, user_depth user addresses, and id_depth uint32_t, padded: what these are in
	 * Java. Leaf first. A user address but the first is a return address: behind its call. So is, by one byte, what
	 * a signal handler interrupted. In the place of an interpreted frame's, which does not tell its method, stands
	 * the jmethodID, or where it has none, the method's own address with DUET_METHOD_BARE.
	 */
	uint64_t stack[];
};
DUET_ASSERT_SIZE(struct duet_sample, 24 + 6 * 8 + 8 * 4 + 32 + sizeof(struct duet_virtual_thread));

/*
 * FRAMES: user frames between the first DUET_LEAF_FRAMES of a stack and the last DUET_ROOT_FRAMES, as duet_sample has
 * them. The head's time and thread are those of the sample. `first` grows from DUET_LEAF_FRAMES in steps of
 * DUET_ROOT_FRAMES; what the last of these records has beyond left_out, the sample has too.
 */
struct duet_frames_record {
	struct duet_record head;
	uint32_t first; /* how many user frames lie before them */
	uint32_t reserved;
	uint64_t stack[DUET_ROOT_FRAMES];
	uint32_t ids[DUET_ROOT_FRAMES]; /* to be looked at if the sample has ids */
};
DUET_ASSERT_SIZE(struct duet_frames_record, 32 + DUET_ROOT_FRAMES * 12);

/* EXEC and EXIT */
struct duet_process_record {
	struct duet_record head;
	uint64_t start_ns;
	char comm[DUET_COMM_LEN];
};
DUET_ASSERT_SIZE(struct duet_process_record, 48);

struct duet_cgroup_record {
	struct duet_record head; /* who made it */
	uint64_t id; /* in cgroup v2 */
	char path[DUET_MAX_CGROUP_PATH];
};
DUET_ASSERT_SIZE(struct duet_cgroup_record, 32 + DUET_MAX_CGROUP_PATH);

#endif
