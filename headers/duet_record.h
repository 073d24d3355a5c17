/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Records from BPF to the loader, sent through the BPF ring buffer. Fields are in native byte order. Records are 8-byte
 * aligned and are zeroed before they are filled.
 */
#pragma once

#include "duet_context.h"
#include "duet_types.h"

#define DUET_RECORD_VERSION 15
#define DUET_MAX_STACK 127 /* kernel frames; the kernel's default perf_event_max_stack */
/*
 * Most user frames in one sample. A sample of a deeper stack has the DUET_LEAF_FRAMES frames next to the leaf and the
 * DUET_ROOT_FRAMES frames next to the root. If all frames are wanted, the frames in between precede the sample in
 * FRAMES records.
 */
#define DUET_MAX_USER_STACK 1024
#define DUET_ROOT_FRAMES 256 /* a power of 2 */
#define DUET_LEAF_FRAMES (DUET_MAX_USER_STACK - DUET_ROOT_FRAMES)
/* most frames that a walk visits: enough for 10,000 Java frames, and for most full stacks of 1 MB */
#define DUET_MAX_WALK 16384
#define DUET_MAX_CGROUP_PATH 320 /* bytes with the NUL; paths of Kubernetes under systemd have 200 */
#define DUET_MAX_VIRTUAL_NAME 64 /* bytes of a virtual thread's name; the rest is cut */
/* of all attributes of one sample, with their heads and padding: of one of BPF's, and of an agent's */
#define DUET_MAX_BPF_ATTRIBUTE_BYTES 512 /* a power of 2 */
#define DUET_MAX_ATTRIBUTE_BYTES 3184
#define DUET_MAX_CLASS_BYTES 256 /* of DUET_ATTRIBUTE_CLASS */
#define DUET_MAX_RESOURCE_TEXT 256 /* bytes of duet_resource's text */
#define DUET_MAX_UNIX_PATH 108 /* sun_path, unix(7) */
#define DUET_MAX_STATE_BYTES 32 /* of DUET_ATTRIBUTE_STATE */
#define DUET_MAX_SPAN_BYTES 256 /* of DUET_ATTRIBUTE_SPAN */
#define DUET_MAX_USER_TYPE 255 /* bytes of the name of a type of the program's events */
#define DUET_MAX_USER_DATA 2048 /* bytes of one, ASPROF_MAX_JFR_EVENT_LENGTH in asprof.h */

enum duet_record_type {
	DUET_RECORD_SAMPLE = 1,
	DUET_RECORD_EXEC,
	DUET_RECORD_EXIT,   /* a process ended: its last thread has exited */
	DUET_RECORD_CGROUP, /* a cgroup was created; it may be deleted before its first sample is read */
	DUET_RECORD_FRAMES, /* middle frames of a deep stack; its sample follows */
	DUET_RECORD_SLEPT, /* the weight of a sleep or request whose stack a record with DUET_ROLE_EARLY has */
	DUET_RECORD_TYPE_MAX
};

struct duet_record {
	uint32_t size;	/* bytes, header included */
	uint16_t type;	/* enum duet_record_type */
	uint16_t version; /* DUET_RECORD_VERSION */
	uint64_t time_ns; /* CLOCK_MONOTONIC, bpf_ktime_get_ns */
	uint32_t tgid;	/* in the loader's pid namespace, and so is tid */
	uint32_t tid;
};
DUET_ASSERT_SIZE(struct duet_record, 24);

enum duet_sample_flag {
	DUET_SAMPLE_KERNEL = 1 << 0,	/* interrupted in kernel mode */
	DUET_SAMPLE_SIGNALLED = 1 << 1, /* a signal was queued for this sample */
	/* not signalled: an earlier signal is still pending, and the agent's record for it serves both samples */
	DUET_SAMPLE_PENDING = 1 << 2,
	DUET_SAMPLE_COOKIE = 1 << 3,	/* `cookie` was sent with the signal */
	DUET_SAMPLE_JVM = 1 << 4,	/* the process is in the map `jvms` */
	DUET_SAMPLE_USER_REGS = 1 << 5, /* user_pc and user_sp are valid */
	/* the user stack reaches the thread's entry, and no frame of it was guessed by frame pointer */
	DUET_SAMPLE_USER_COMPLETE = 1 << 6,
	/* a pc lay in no mapping that BPF knows: the loader must read the process's mappings again */
	DUET_SAMPLE_UNKNOWN_CODE = 1 << 7,
	DUET_SAMPLE_WALKED = 1 << 8, /* a JVM's thread, complete by the JVM's published layout: it needs no signal */
	/*
	 * The agent took the sample in a callback of JVMTI, or in a function of the agent that native code called. The
	 * stack begins where the thread left Java, or at the native caller, so the first address is a return address
	 * too. The stack may end at the first Java frame instead of the thread's entry, and native frames between Java
	 * frames may be missing. A sample without frames is of a thread that had no Java frames.
	 */
	DUET_SAMPLE_CALLED = 1 << 9,
	/* The weight is the time of a sleep, `runnable` the part that waited for a CPU. The stack is where it slept. */
	DUET_SAMPLE_OFF_CPU = 1 << 10,
	DUET_SAMPLE_IO = 1 << 11, /* the sleep was a wait for a device */
	DUET_SAMPLE_FAULT = 1 << 12, /* the thread came into the kernel by an exception or interrupt, not by a call */
	DUET_SAMPLE_IDLE = 1 << 13, /* the sleep fills the window, or the whole recording */
	/*
	 * The JVM did something for Java code, such as an allocation. Its own frames, above the first Java frame, are
	 * not part of the stack.
	 */
	DUET_SAMPLE_FOR_JAVA = 1 << 14,
	/* of a waker: its stack has a softirq, which delivers what the thread itself has just sent */
	DUET_SAMPLE_OWN_SOFTIRQ = 1 << 15,
};

/* Whose stack a sample record has. */
enum duet_role {
	DUET_ROLE_SAMPLE, /* that of the thread in its head, which was sampled */
	/* The records below say who ended a sleep. They have no weight, and precede the sleep's sample in the ring. */
	DUET_ROLE_WAKER, /* the thread in the head, which is one of those to sample */
	/*
	 * Another thread: of the kernel, or of a process that is not to be sampled. comm and process_comm are its own,
	 * the rest of the record is about the sleeper. The stack has kernel frames only.
	 */
	DUET_ROLE_STRANGER,
	/*
	 * An interrupt. The head is that of the sleeper. The kernel frames go on to what was interrupted. Where BPF
	 * does not see interrupts, what was interrupted is reported as WAKER or STRANGER: the kernel frames show it.
	 */
	DUET_ROLE_INTERRUPT,
	/*
	 * The thread in the head, which begins to sleep, or submits a request to io_uring. The stack has no weight yet:
	 * a DUET_RECORD_SLEPT has this `waker` as its id.
	 */
	DUET_ROLE_EARLY,
	/*
	 * The thread in the head, which released the lock `waker` (the id in struct duet_lock) and woke a thread that
	 * waits for it. No sample refers to the record.
	 */
	DUET_ROLE_HOLDER,
	DUET_ROLE_MAX
};

/* Why the walk of the user stack ended where it did. */
enum duet_walk_end {
	DUET_WALK_NONE,	      /* there was no walk */
	DUET_WALK_ENTRY,      /* reached the thread's entry, or a return address of 0 */
	DUET_WALK_DEPTH,      /* walked as many frames as were asked for */
	DUET_WALK_UNREADABLE, /* stack memory could not be read: not mapped, or paged out */
	DUET_WALK_NO_ROW,     /* no unwind row, and no other exact way to find the caller */
	DUET_WALK_BAD_CFA,    /* the caller's frame would not lie above its callee's */
	DUET_WALK_BAD_FP,     /* no unwind row, and the frame pointer does not point into the stack */
	/* In the JVM's code: */
	DUET_WALK_NO_BLOB,    /* no code blob holds the pc, or its layout is not as published */
	/* a stub without a frame size; also where the mounted part of a virtual thread's stack ends */
	DUET_WALK_NO_FRAME,
	/* interrupted while a frame was being built or left, and nothing shows how much of it exists */
	DUET_WALK_LEAF,
	DUET_WALK_BAD_INTERPRETED, /* the frame pointer does not lead to an interpreter frame */
	/* Anywhere: */
	DUET_WALK_LONG, /* the walk took longer than a thread may be held up */
	/* The thread ends, and has no memory of its program any more: nothing is missing, there are no user frames */
	DUET_WALK_EXITING,
	DUET_WALK_END_MAX
};

/* Why no signal was sent for a sample of a JVM. 0 if one was sent, or if the sample is PENDING. */
enum duet_no_signal {
	DUET_NO_SIGNAL_NONE,
	DUET_NO_SIGNAL_SYSCALL, /* in a system call that does not restart after a handler */
	DUET_NO_SIGNAL_BLOCKED, /* the thread blocks the signal (also: inside the handler) */
	DUET_NO_SIGNAL_STOLEN,  /* the signal's handler is not the agent's */
	DUET_NO_SIGNAL_EXITING, /* exec or exit is in progress */
	DUET_NO_SIGNAL_REFUSED, /* the kernel refused */
	DUET_NO_SIGNAL_UNWANTED, /* --signals never */
	DUET_NO_SIGNAL_EVENT, /* the event allows no signals: its samples have no Java half */
	DUET_NO_SIGNAL_MAX
};

/*
 * Flag of a method key: the rest is not a jmethodID but the address of a Method, with a tag of what was there in the
 * bits that an address does not use. The address may be reused after the Method's class was unloaded or redefined.
 */
#define DUET_METHOD_BARE (1ull << 63)
#define DUET_METHOD_ADDRESS (((1ull << 48) - 1) & ~7ull)

/*
 * What tells apart the Methods that have the same address one after the other. `names` has the ConstMethod's 16-bit
 * fields from _code_size on: the size, and the constants that are the name and the signature; and above these, the
 * lower bits of the constant pool's version. HotSpot changes none of the arguments while a Method exists.
 */
static inline uint64_t duet_method_tag(uint64_t const_method, uint64_t pool, uint64_t names)
{
	return ((const_method ^ pool << 16) * 0x9e3779b97f4a7c15 ^ names) * 0xd6e8feb86659fd93;
}

/* The key of a Method that has no jmethodID: its address and 18 bits of its tag. */
static inline uint64_t duet_method_key(uint64_t method, uint64_t tag)
{
	return DUET_METHOD_BARE | tag >> 49 << 48 | (method & DUET_METHOD_ADDRESS) | (tag >> 46 & 7);
}

/* 12 more bits of the tag. Never 0, which is the check of a method whose key is a jmethodID. */
#define DUET_METHOD_CHECK_BITS 13
static inline uint32_t duet_method_check(uint64_t tag)
{
	return 1u << 12 | (uint32_t)(tag >> 34 & 0xfff);
}

/*
 * Ids of user frames, which a record has in addition to their addresses. An id is that of the frame's compilation,
 * which HotSpot counts from 1, or one of these flags. INTERPRETED comes with the bytecode index and, above it, with
 * duet_method_check() if the method has no jmethodID. 0: neither compiled nor interpreted Java code.
 */
#define DUET_ID_INTERPRETED (1u << 31)
#define DUET_ID_ON_HEAP (1u << 30) /* not a frame, but the position of a virtual thread's frames that are on the heap */
#define DUET_ID_NOT_FILLED (1u << 29) /* an interpreter frame that deoptimization has not filled in yet */
/* Mask of the bytecode index: code has less than 65536 bytes (JVM specification, 4.7.3). All bits: a native method. */
#define DUET_ID_BCI 0xffff
#define DUET_ID_CHECK_SHIFT 16
#define DUET_ID_CHECK ((1u << DUET_METHOD_CHECK_BITS) - 1)

/* The virtual thread that is mounted on a thread, as java.lang.Thread describes it. */
struct duet_virtual_thread {
	uint64_t id; /* Thread.threadId(); 0: no virtual thread is mounted, or it could not be found out */
	uint8_t name_bytes; /* 0: the thread has no name (most have none), or the name could not be read */
	uint8_t is_utf16; /* 1: UTF-16; 0: Latin-1 */
	uint8_t reserved[6];
	uint8_t name[DUET_MAX_VIRTUAL_NAME];
};
DUET_ASSERT_SIZE(struct duet_virtual_thread, 16 + DUET_MAX_VIRTUAL_NAME);

/* What a sample has in addition to its stack. A reader skips types that it does not know. */
enum duet_attribute_type {
	DUET_ATTRIBUTE_CLASS = 1, /* of an object: its JVM signature, "[Ljava/lang/String;", without NUL */
	DUET_ATTRIBUTE_SIZE,	  /* of an object, in bytes: uint64_t */
	DUET_ATTRIBUTE_ADDRESS,	  /* of the memory that was taken or freed: uint64_t */
	DUET_ATTRIBUTE_RESOURCE,  /* what an I/O call is about: struct duet_resource */
	DUET_ATTRIBUTE_STATE,	  /* what the time was spent on, without NUL: the leaf of the stack */
	DUET_ATTRIBUTE_SPAN,	  /* the sample is a span; its tag: UTF-8 without NUL, which may be empty */
	DUET_ATTRIBUTE_USER, /* the sample is an event of the program's own: the name of its type, NUL, its data */
	DUET_ATTRIBUTE_LOCK, /* the sample is a wait for a lock: struct duet_lock */
	DUET_ATTRIBUTE_AGE,  /* of an object that is still there, in nanoseconds: uint64_t */
	DUET_ATTRIBUTE_COMPILING, /* the method that the thread compiles: uint64_t, a key as in struct duet_want */
	DUET_ATTRIBUTE_CONTEXT, /* those of the thread's context, as struct duet_context_record has them */
};

/* Followed by `bytes` bytes, padded to 8. */
struct duet_attribute {
	uint16_t type; /* enum duet_attribute_type */
	uint16_t bytes;
	/* of DUET_ATTRIBUTE_CLASS: enum duet_class_about; of COMPILING: duet_method_check() of the key; else 0 */
	uint32_t about;
};
DUET_ASSERT_SIZE(struct duet_attribute, 8);

enum duet_class_about {
	DUET_CLASS_OUTSIDE = 1, /* the object lies outside of its thread's buffer */
};

enum duet_resource_kind {
	DUET_RESOURCE_FILE = 1, /* text: the components of its path, the last one first, each with a NUL */
	DUET_RESOURCE_PIPE,
	DUET_RESOURCE_NAME, /* a file that is in no folder; text: what the kernel calls it, with a NUL */
	DUET_RESOURCE_INET, /* text: the address, 4 bytes */
	DUET_RESOURCE_INET6, /* 16 bytes */
	DUET_RESOURCE_UNIX, /* text: sun_path of the peer, or the socket's own */
	DUET_RESOURCE_SOCKET, /* of another family: `port` is AF_* */
	DUET_RESOURCE_NOTHING, /* a request has no file */
	DUET_RESOURCE_MAX
};

enum duet_resource_flag {
	DUET_RESOURCE_WHOLE = 1 << 0, /* of a path: it is not cut at its beginning */
	DUET_RESOURCE_DELETED = 1 << 1, /* of a path: it leads there no longer */
	DUET_RESOURCE_OWN = 1 << 2, /* of an address: the socket's own, as it has no peer */
	DUET_RESOURCE_BY_KERNEL = 1 << 3, /* of a request: a thread of the kernel has submitted it */
};

struct duet_resource {
	uint8_t kind; /* enum duet_resource_kind */
	uint8_t flags; /* enum duet_resource_flag */
	uint16_t port; /* in the order of bytes of the machine */
	uint16_t text_bytes; /* of the text that follows, <= DUET_MAX_RESOURCE_TEXT */
	uint8_t request; /* 1 + opcode of a request to io_uring; 0: it is a system call */
	uint8_t reserved;
};
DUET_ASSERT_SIZE(struct duet_resource, 8);

static inline uint32_t duet_attribute_size(uint32_t bytes)
{
	return (uint32_t)sizeof(struct duet_attribute) + ((bytes + 7) & ~7u);
}

/*
 * The threads of a process that wait for a lock, as the agent in the process shows them to BPF. When a thread of the
 * process wakes one of them, it has released that lock: BPF takes its stack (DUET_ROLE_HOLDER). The agent's array is in
 * the memory of the process, which may write anything into it.
 */
#define DUET_LOCK_WAITERS 65536 /* entries of the array; a thread has that of its tid modulo this; a power of 2 */

/* Only its thread writes the entry, before and after it waits. */
struct duet_lock_waiter {
	uint32_t tid; /* in the thread's innermost pid namespace; 0: it does not wait */
	uint32_t reserved;
	uint64_t lock; /* as struct duet_lock has it */
	uint64_t from_ns; /* a release before this time, CLOCK_MONOTONIC, is of no interest: the wait is too short */
	uint64_t reserved_too;
};
DUET_ASSERT_SIZE(struct duet_lock_waiter, 32);

/* Value of the map `lock_waiters`, key = tgid in the loader's pid namespace. */
struct duet_lock_waiters {
	uint64_t start_ticks; /* as in struct duet_jvm_target */
	uint64_t address; /* of DUET_LOCK_WAITERS times struct duet_lock_waiter, in the process */
};
DUET_ASSERT_SIZE(struct duet_lock_waiters, 16);

/* The value of DUET_ATTRIBUTE_LOCK: a wait for a lock. */
struct duet_lock {
	uint64_t id; /* != 0; the same for all waits for the same lock of a process, however long it is in use */
	uint64_t begin_ns; /* when the wait began, CLOCK_MONOTONIC; the sample's time is its end */
	uint32_t owner; /* the thread that had the lock then, in the innermost pid namespace; 0: not known */
	uint32_t reserved;
};
DUET_ASSERT_SIZE(struct duet_lock, 24);

struct duet_sample {
	struct duet_record head;
	uint64_t start_ns;  /* group leader's start_boottime */
	uint64_t cgroup_id; /* cgroup v2 id of the task */
	uint64_t weight;    /* what this sample accounts for, in the unit of its event */
	uint64_t runnable;  /* <= weight; 0 without DUET_SAMPLE_OFF_CPU */
	uint64_t user_pc;   /* the thread's user-mode pc, also if it was interrupted in the kernel */
	uint64_t user_sp;
	uint64_t cookie;
	uint64_t unloads;   /* 1 + number of classes that the JVM had unloaded; 0: not known */
	/*
	 * id of a record about a waker, or of the lock that was released; in the sample of a sleep: the id of the
	 * record about who ended it; 0: none
	 */
	uint64_t waker;
	uint32_t role;	    /* enum duet_role */
	uint32_t irq;	    /* of a record about a waker: the last interrupt of a device on its CPU */
	uint32_t ns_tgid;   /* ids in the thread's innermost pid namespace, which is the one that the agent sees */
	uint32_t ns_tid;
	uint32_t event;	    /* index of the event in the recording, < DUET_MAX_EVENTS */
	uint32_t attribute_bytes; /* <= DUET_MAX_ATTRIBUTE_BYTES, a multiple of 8 */
	uint32_t cpu;	 /* 1 + the CPU on which BPF took the sample; 0: not known */
	uint32_t policy; /* 1 + the thread's scheduling policy, SCHED_* of sched(7); 0: not known, or not asked for */
	uint16_t flags;	    /* enum duet_sample_flag */
	uint16_t no_signal; /* enum duet_no_signal */
	uint16_t kernel_depth;
	uint16_t user_depth;
	uint16_t walk_end;	/* enum duet_walk_end */
	/* user frames whose caller was found by frame pointer because there was no unwind row */
	uint16_t guessed_depth;
	uint16_t id_depth; /* user_depth, or 0 if the record has no ids */
	uint16_t left_out; /* user frames after the first DUET_LEAF_FRAMES that are not in this record */
	char comm[DUET_COMM_LEN];	  /* of the thread */
	char process_comm[DUET_COMM_LEN]; /* of the group leader */
	struct duet_virtual_thread virtual_thread;
	struct duet_context context; /* what the thread worked for, if known */
	/*
	 * kernel_depth kernel addresses, then user_depth user addresses, then id_depth ids of user frames (uint32_t,
	 * DUET_ID_*, padded to 8 bytes), all leaf first; then attribute_bytes of struct duet_attribute.
	 *
	 * Every user address except the first is a return address. A pc that a signal handler interrupted is stored as
	 * pc + 1, so that it can be treated the same way. The address of an interpreted frame would not identify its
	 * method, so the slot holds the jmethodID instead; if the method has none, it holds the address of the Method
	 * with DUET_METHOD_BARE.
	 */
	uint64_t stack[];
};
DUET_ASSERT_SIZE(struct duet_sample, 24 + 9 * 8 + 12 * 4 + 32 + sizeof(struct duet_virtual_thread) +
				       sizeof(struct duet_context));

/*
 * FRAMES: the user frames between the first DUET_LEAF_FRAMES and the last DUET_ROOT_FRAMES of a stack, in the form that
 * duet_sample has. The head has the time and thread of the sample. `first` starts at DUET_LEAF_FRAMES and grows in
 * steps of DUET_ROOT_FRAMES. The last record may also hold frames that the sample has: those from DUET_LEAF_FRAMES +
 * left_out on.
 */
struct duet_frames_record {
	struct duet_record head;
	uint32_t first; /* index of the first of these frames in the whole stack */
	uint32_t reserved;
	uint64_t stack[DUET_ROOT_FRAMES];
	uint32_t ids[DUET_ROOT_FRAMES]; /* valid only if the sample has ids */
};
DUET_ASSERT_SIZE(struct duet_frames_record, 32 + DUET_ROOT_FRAMES * 12);

/* SLEPT */
struct duet_slept_record {
	struct duet_record head;
	uint64_t id; /* duet_sample.waker of the stack */
	uint64_t weight;
	uint64_t runnable; /* <= weight */
	uint64_t waker; /* as in duet_sample */
	uint32_t attribute_bytes; /* of what follows, as in duet_sample; <= DUET_MAX_BPF_ATTRIBUTE_BYTES */
	uint32_t is_kept; /* 1: there will be other records with this id */
};
DUET_ASSERT_SIZE(struct duet_slept_record, 64);

/* EXEC and EXIT */
struct duet_process_record {
	struct duet_record head;
	uint64_t start_ns;
	char comm[DUET_COMM_LEN];
};
DUET_ASSERT_SIZE(struct duet_process_record, 48);

struct duet_cgroup_record {
	struct duet_record head; /* the process and thread that created it */
	uint64_t id; /* cgroup v2 id */
	char path[DUET_MAX_CGROUP_PATH];
};
DUET_ASSERT_SIZE(struct duet_cgroup_record, 32 + DUET_MAX_CGROUP_PATH);

#define DUET_SLEEPER_REGISTERS 32 /* the general registers, by their number in machine code; x86-64 has 16 */

/*
 * A thread that sleeps, as the program offcpu_look reports it. The loader walks the thread's stack from outside. The
 * loader reads these records from the program's iterator, not from the ring buffer.
 */
struct duet_sleeper {
	/* number of the thread's context switches; while it does not change, the thread still sleeps */
	uint64_t switches;
	uint64_t tid; /* in the initial pid namespace, as in duet_slept */
	/* user-mode registers */
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;
	uint64_t lr; /* as in struct unwind_cursor */
	uint64_t regs[DUET_SLEEPER_REGISTERS];
	struct duet_sample sample; /* the head has the size; its only frames are kernel frames */
};
DUET_ASSERT_SIZE(struct duet_sleeper, (6 + DUET_SLEEPER_REGISTERS) * 8 + sizeof(struct duet_sample));

/* The weight of the sample of a thread that sleeps over an edge, as the program offcpu_report_edge reports it. */
struct duet_slept {
	uint64_t switches;
	uint64_t weight;
	uint64_t runnable;
	uint32_t tid;
	uint32_t flags; /* DUET_SAMPLE_IDLE or 0 */
};
DUET_ASSERT_SIZE(struct duet_slept, 32);
