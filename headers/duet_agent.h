/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Loader and agent: the handshake over the control socket, and the records the agent writes into its ring.
 *
 * The agent listens on an abstract SOCK_SEQPACKET socket in the JVM's network namespace. The loader chose the socket's
 * name and passed it as the agent option `control=NAME`. All users of that namespace can see the name. So the agent
 * accepts one peer only. The peer must be root or the JVM's own user (SO_PEERCRED), and must first send the secret that
 * the loader passed along with the name: `secret=HEX` in an attach request, which nobody else can read, or the
 * environment variable DUET_SECRET if the agent is on a command line. One packet is one message.
 *
 *   loader -> PROOF    the secret, which proves that the loader is the one that attached
 *   agent  -> HELLO    describes the JVM
 *   loader -> START    ring (memfd by SCM_RIGHTS), engine, events; for timer engines the unwind tables' memfd too;
 *                      with DUET_NEWEST_SHARED an array of BPF's
 *   agent  -> STARTED  the handler is installed, or the reason why not
 *   loader -> WANT     what samples contain and the loader does not know yet; any number of times; answered by records
 *   loader -> FLUSH    write what there is at the end of a window, such as live objects; answered by FINISHED
 *   agent  -> MAPPED   a library was loaded, whose calls are about to be sampled; any number of times
 *   agent  -> HALF     the sample lane is half full; any number of times
 *   agent  -> ENDING   the JVM is shutting down; the agent waits a moment for the last WANTs and for STOP
 *   loader -> STOP     (after the tgid was removed from the BPF map `jvms`)
 *   agent  -> STOPPED  no more records will come; sent without a STOP when the JVM shuts down
 *
 * A reader from outside (user/reader/) takes the agent's part for a JVM without an agent. Its socket is one of a pair,
 * so there is no PROOF, and START names no event.
 *
 *   reader -> UNNAMED  how this JVM keeps the names of its threads is not known; once
 *   reader -> NO_JVM   the process has loaded libjvm.so and created no JVM since; the reader ends
 *   loader -> REST     do not look at the JVM before some time: its user's allowance is used up; any number of times
 *
 * Either side may close at any time. If the loader dies, the agent stops and waits for the next attach. If the JVM
 * dies, the loader drains the ring.
 */
#pragma once

#include "duet_config.h"
#include "duet_record.h"
#include "duet_types.h"

#define DUET_AGENT_VERSION 21 /* version of everything in this file and in duet_ring.h */
#define DUET_JAVA_DEPTH 2048	 /* default number of frames to ask AsyncGetCallTrace for */
#define DUET_MAX_JAVA_DEPTH DUET_MAX_WALK /* the largest, if all frames of deep stacks are wanted */
#define DUET_NAME_MAX 107	 /* sun_path less the leading NUL */
#define DUET_SECRET_DIGITS 32	 /* hexadecimal: 128 bits */

/* Return values of Agent_OnAttach, which HotSpot hands back to the attaching side. */
enum duet_attach_code {
	DUET_ATTACH_OK = 0,
	DUET_ATTACH_BUSY = 200,	     /* another loader holds this agent */
	DUET_ATTACH_BAD_OPTIONS = 201,
	DUET_ATTACH_NO_JVMTI = 202,  /* the JVM refuses a capability the agent needs */
	DUET_ATTACH_NO_SOCKET = 203, /* the control socket could not be bound */
	DUET_ATTACH_NO_THREAD = 204,
};

enum duet_message_type {
	DUET_MESSAGE_HELLO = 1,
	DUET_MESSAGE_START,
	DUET_MESSAGE_STARTED,
	DUET_MESSAGE_STOP,
	DUET_MESSAGE_STOPPED,
	DUET_MESSAGE_WANT,
	DUET_MESSAGE_ENDING,
	DUET_MESSAGE_PROOF,
	DUET_MESSAGE_FINISH,
	DUET_MESSAGE_FINISHED,
	DUET_MESSAGE_FLUSH,
	DUET_MESSAGE_MAPPED,
	DUET_MESSAGE_UNNAMED,
	DUET_MESSAGE_HALF,
	DUET_MESSAGE_NO_JVM,
	DUET_MESSAGE_REST,
	DUET_MESSAGE_TYPE_MAX
};

struct duet_message {
	uint32_t size; /* bytes, header included */
	uint16_t type;
	uint16_t version; /* DUET_AGENT_VERSION */
};
DUET_ASSERT_SIZE(struct duet_message, 8);

struct duet_message_proof {
	struct duet_message head;
	char secret[DUET_SECRET_DIGITS];
};
DUET_ASSERT_SIZE(struct duet_message_proof, 8 + DUET_SECRET_DIGITS);

/*
 * FINISH, loader to agent: end the taps. The loader still asks for names afterwards. A wait that is not over counts up
 * to ended_ns. FLUSH is the same for the end of a window, whose samples have the time ended_ns: the taps go on.
 * REST ends at ended_ns.
 */
struct duet_message_finish {
	struct duet_message head;
	uint64_t ended_ns; /* CLOCK_MONOTONIC */
};
DUET_ASSERT_SIZE(struct duet_message_finish, 16);

struct duet_message_hello {
	struct duet_message head;
	uint32_t pid; /* in the JVM's own pid namespace */
	uint32_t has_asgct; /* 1: AsyncGetCallTrace was found */
	char vm_name[64];   /* java.vm.name */
	char vm_version[64]; /* java.vm.version */
};
DUET_ASSERT_SIZE(struct duet_message_hello, 16 + 128);

enum duet_engine_id {
	DUET_ENGINE_NONE,    /* no ticks: the agent takes every event of the recording from the JVM */
	DUET_ENGINE_BPF, /* BPF ticks and signals; the agent answers with Java frames */
	DUET_ENGINE_CTIMER,  /* timer_create on each thread's CPU clock */
	DUET_ENGINE_ITIMER,  /* setitimer(ITIMER_PROF) */
	DUET_ENGINE_PERF,    /* a perf event on each thread */
	DUET_ENGINE_ID_MAX
};

/* The agent's part in an event of the recording. */
enum duet_agent_event_kind {
	DUET_AGENT_EVENT_NONE,	/* none: BPF samples the event, and START does not mention it */
	DUET_AGENT_EVENT_CLOCK, /* CPU time; timer engines tick for it */
	DUET_AGENT_EVENT_PAGE_FAULTS, /* engine perf ticks for it; engine bpf samples it without the agent */
	/* with the timer engines: time that threads have no CPU, in ns; other engines see it without the agent */
	DUET_AGENT_EVENT_OFFCPU,
	/* this event and all that follow come from the JVM itself */
	DUET_AGENT_EVENT_ALLOC, /* objects allocated in Java's heap, in bytes */
	DUET_AGENT_EVENT_LIVE, /* the same, but only those that are still there when the event ends, or at a FLUSH */
	DUET_AGENT_EVENT_LOCK, /* threads that waited for a lock of Java, in ns */
	DUET_AGENT_EVENT_WAIT, /* threads that waited to be notified, in ns */
	DUET_AGENT_EVENT_NATIVEMEM, /* malloc() and its family, in bytes; interval 1: every call */
	DUET_AGENT_EVENT_LEAK, /* the same, but only what is not freed until STOP */
	DUET_AGENT_EVENT_NATIVELOCK, /* threads that waited for a mutex or rwlock of libc, in ns */
	DUET_AGENT_EVENT_METHOD, /* calls of Java methods; may be there several times, like the next */
	/* calls of Java methods that take threshold_ns or more, in ns; the interval is a number of such calls */
	DUET_AGENT_EVENT_TRACE,
	DUET_AGENT_EVENT_EXCEPTIONS, /* objects of Throwable and its subclasses, when they are created */
	DUET_AGENT_EVENT_GC, /* pauses of the garbage collector, in ns */
	DUET_AGENT_EVENT_SAFEPOINT, /* time in which Java threads are stopped, or about to, in ns */
	DUET_AGENT_EVENT_CLASS_LOAD, /* classes that are loaded */
	DUET_AGENT_EVENT_COMPILATION, /* methods that the JVM compiles */
	DUET_AGENT_EVENT_FREE, /* memory of NATIVEMEM's samples that is freed again */
	DUET_AGENT_EVENT_SPAN, /* spans that the program reports, in ns */
	DUET_AGENT_EVENT_USER, /* other events that it reports, by asprof_emit_jfr_event() */
	DUET_AGENT_EVENT_KIND_MAX
};

/*
 * The class that instrumented methods call, and its number behind the name: the frames next to the leaf that belong to
 * it are not the application's.
 */
#define DUET_HELPER_CLASS "java/lang/DuetProbe"
#define DUET_MAX_TARGET_BYTES 512

enum duet_agent_event_flag {
	/* NATIVEMEM: the function that was called is the leaf, and a sample weighs the bytes of its own call only. */
	DUET_AGENT_AS_CALLED = 1 << 0,
	DUET_AGENT_WITH_AGE = 1 << 1, /* LIVE: a sample has a DUET_ATTRIBUTE_STATE, the age of the object */
	/* ALLOC: with native frames, also where there is no Java frame, by the tables that START brings */
	DUET_AGENT_WITH_NATIVE = 1 << 2,
	/* LOCK, NATIVELOCK: samples have a DUET_ATTRIBUTE_LOCK, and STARTED says where waiting threads are shown */
	DUET_AGENT_WITH_LOCK = 1 << 3,
	/* CLOCK, PAGE_FAULTS: samples of compilers' threads have a DUET_ATTRIBUTE_COMPILING */
	DUET_AGENT_WITH_COMPILING = 1 << 4,
};

struct duet_agent_event {
	uint64_t interval; /* sampling interval, in the event's unit; > 0 */
	uint32_t kind;	   /* enum duet_agent_event_kind, not NONE; each kind at most once, unless it says otherwise */
	uint32_t index;	   /* index in the recording, < DUET_MAX_EVENTS; its samples have it as duet_sample.event */
	uint64_t threshold_ns; /* TRACE, else 0 */
	uint32_t flags;	   /* enum duet_agent_event_flag */
	uint32_t survivors; /* LIVE: only objects that have outlived so many pauses of the collector */
	char target[DUET_MAX_TARGET_BYTES]; /* METHOD, TRACE: "CLASS.METHOD[(SIGNATURE)]" with a NUL; else empty */
};
DUET_ASSERT_SIZE(struct duet_agent_event, 32 + DUET_MAX_TARGET_BYTES);

/* Who knows when threads of the process were sampled last (jvm-agent/sample/newest.h). */
enum duet_newest {
	DUET_NEWEST_OWN, /* the agent, which takes all samples */
	DUET_NEWEST_SHARED, /* BPF: the last descriptor of START is the array that it writes, and the agent too */
	DUET_NEWEST_UNKNOWN, /* BPF takes samples, and tells nobody */
	DUET_NEWEST_MAX
};

struct duet_message_start {
	struct duet_message head;
	uint64_t ring_bytes;	 /* size of the memfd that comes with this message */
	/* timer engines: size of the second memfd, which begins with struct duet_unwind_file; 0: there is none */
	uint64_t tables_bytes;
	uint32_t engine;	 /* enum duet_engine_id */
	/* <= DUET_MAX_JAVA_DEPTH; if above DUET_JAVA_DEPTH, the agent's walks leave out no frames either */
	uint32_t java_depth;
	uint32_t signo;		 /* 0 = the agent chooses the first free real-time signal */
	uint32_t event_count;
	uint32_t newest; /* enum duet_newest */
	uint32_t reserved;
	struct duet_agent_event events[DUET_MAX_EVENTS];
};
DUET_ASSERT_SIZE(struct duet_message_start, 48 + DUET_MAX_EVENTS * sizeof(struct duet_agent_event));

struct duet_message_started {
	struct duet_message head;
	int32_t error;	/* 0, or -errno with the reason in `why` */
	uint32_t signo;
	uint64_t handler; /* address of the installed handler */
	uint64_t lock_waiters; /* address of an array, see struct duet_lock_waiters; 0: there is none */
	uint32_t tid;	  /* the agent's own thread, in the JVM's pid namespace; it takes no signals */
	uint16_t engine;  /* enum duet_engine_id that ticks; if it is not the one asked for, `why` says why */
	uint16_t refused; /* bit i: events[i] of START will have no samples, for the reason in `refused_why` */
	char why[128];
	char refused_why[128];
};
DUET_ASSERT_SIZE(struct duet_message_started, 40 + 2 * 128);
_Static_assert(DUET_MAX_EVENTS <= 16, "a bit of duet_message_started.refused for each event");

enum duet_want_kind {
	DUET_WANT_METHOD = 1, /* answered by METHOD or GONE */
	/* answered by CODE_LOAD, STUB or GONE; a CODE_LOAD comes after the METHODs that it needs */
	DUET_WANT_CODE,
	DUET_WANT_KIND_MAX
};

struct duet_want {
	uint64_t key;  /* METHOD: a jmethodID or duet_method_key(); CODE: a pc in the code */
	/* CODE: id of the compilation; 0: whatever code is there now. METHOD: duet_method_check(); 0: not known */
	uint32_t id;
	uint32_t kind; /* enum duet_want_kind */
	/*
	 * Lower bits of struct duet_sample::unloads; 0: not known, or the key is a jmethodID. When the JVM has unloaded
	 * more classes, a bare address may be another method's, so WANTs with the old number get no names any more.
	 */
	uint32_t unloads;
	uint32_t reserved;
};
DUET_ASSERT_SIZE(struct duet_want, 24);

#define DUET_WANTS_AT_ONCE 32

struct duet_message_want {
	struct duet_message head;
	uint32_t count;
	uint32_t reserved;
	struct duet_want wants[DUET_WANTS_AT_ONCE];
};
DUET_ASSERT_SIZE(struct duet_message_want, 16 + DUET_WANTS_AT_ONCE * 24);

/* STOP, STOPPED, ENDING, MAPPED, UNNAMED and NO_JVM are bare struct duet_message. */

/* ---- records in the ring (framing: duet_ring.h) ---- */

enum duet_agent_record_type {
	DUET_AGENT_JAVA_SAMPLE = 1, /* in the sample ring */
	/*
	 * Also in the sample ring, written by timer engines: the struct duet_sample that BPF would have written; only
	 * engine perf has kernel frames. SIGNALLED means that its Java half, with the same cookie, was written before.
	 * PENDING: the same half also belongs to this sample.
	 */
	DUET_AGENT_SAMPLE,
	DUET_AGENT_FRAMES,	/* also in the sample ring: struct duet_frames_record, before its sample */
	DUET_AGENT_METHOD,	/* this and all that follow: in the metadata ring */
	DUET_AGENT_CODE_LOAD,
	DUET_AGENT_CODE_UNLOAD,
	DUET_AGENT_STUB,
	DUET_AGENT_CODE_HEAP,
	DUET_AGENT_THREAD,
	DUET_AGENT_LAYOUT, /* struct duet_jvm_layout of duet_jvm.h; a later record replaces it */
	DUET_AGENT_GONE, /* answer to a WANT: what it asked for no longer exists, or never did */
	DUET_AGENT_UNLOADED, /* written only by a reader from outside: classes were unloaded */
	DUET_AGENT_RECORD_TYPE_MAX
};

struct duet_java_frame {
	uint64_t method; /* jmethodID or duet_method_key(); 0: AsyncGetCallTrace found none */
	int32_t bci;	 /* byte code index; -1 unknown, -3 native method (AsyncGetCallTrace's lineno) */
	uint32_t check;	 /* of a duet_method_key(): duet_method_check(), or 0 */
};
DUET_ASSERT_SIZE(struct duet_java_frame, 16);

enum duet_java_sample_flag {
	DUET_JAVA_NO_THREAD = 1 << 0,  /* the thread has no JNIEnv: GC, compiler, native */
	DUET_JAVA_TRUNCATED = 1 << 1,  /* java_depth reached the limit */
	DUET_JAVA_MOUNTED = 1 << 2,    /* the frames of a virtual thread only, without its carrier's */
};

/* Followed by java_depth struct duet_java_frame, leaf first. */
struct duet_java_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC, read first in the handler */
	/* cookie of the sample that this answers: si_value, or time_ns of a timer engine's sample; 0: none */
	uint64_t cookie;
	uint64_t pc;	  /* from the ucontext */
	uint64_t sp;
	uint32_t tid;	  /* as the JVM sees it */
	int32_t status;	  /* AsyncGetCallTrace's num_frames: > 0 frames, <= 0 its failure code */
	uint16_t flags;	  /* enum duet_java_sample_flag */
	uint16_t reserved;
	uint32_t java_depth;
};
DUET_ASSERT_SIZE(struct duet_java_sample, 48);

/*
 * Followed by strings without NUL, lengths as given: class (JVM signature,
 * e.g. "Ljava/lang/String;"), name, signature, source file; then line_count
 * struct duet_line, ascending bci.
 */
struct duet_method {
	uint64_t method;
	uint16_t class_len;
	uint16_t name_len;
	uint16_t signature_len;
	uint16_t source_len;
	uint32_t line_count;
	uint16_t modifiers; /* JVM access flags */
	uint16_t is_extra;  /* 1: not an answer to a WANT, but a method that the CODE_LOAD after it refers to */
	uint32_t check;	    /* of a duet_method_key(): duet_method_check() */
	uint32_t reserved;
	/* duet_method_key(), by which a reader from outside knows the method, also if `method` is a jmethodID; or 0 */
	uint64_t bare;
};
DUET_ASSERT_SIZE(struct duet_method, 40);

struct duet_line {
	uint32_t bci;
	uint32_t line;
};
DUET_ASSERT_SIZE(struct duet_line, 8);

struct duet_gone {
	uint64_t time_ns;
	struct duet_want want;
};
DUET_ASSERT_SIZE(struct duet_gone, 32);

/*
 * Classes were unloaded between two times (CLOCK_MONOTONIC). The JVM may have loaded others into the same memory. So a
 * bare address that was a method's at until_ns may be another method's from since_ns on. Names of bare addresses in
 * later records are valid from since_ns on. A reader's first record is of this type, with until_ns 0.
 */
struct duet_unloaded {
	uint64_t until_ns;
	uint64_t since_ns;
	uint64_t unloads; /* 1 + number of classes that the JVM has unloaded, as struct duet_sample has it */
};
DUET_ASSERT_SIZE(struct duet_unloaded, 24);

/*
 * A compiled method that occurs in samples. Followed by pc_count struct duet_code_pc (ascending pc) and frame_count
 * struct duet_java_frame. The frames are the inlining stacks that the pcs refer to: leaf first, the compiled method
 * itself last.
 */
struct duet_code_load {
	uint64_t time_ns; /* CLOCK_MONOTONIC, when the agent looked it up: the code existed by then */
	uint64_t method;
	uint64_t address;
	uint32_t code_bytes;
	uint32_t pc_count;
	uint32_t frame_count;
	uint32_t id; /* id of the compilation; 0: unknown */
};
DUET_ASSERT_SIZE(struct duet_code_load, 40);

/*
 * The code from the previous entry's offset up to this one's. A pc in it, and a return address above the former and up
 * to the latter, belong to these frames.
 */
struct duet_code_pc {
	uint32_t offset; /* end of the code, from `address` */
	uint32_t frame;	 /* index of the leaf frame */
	uint32_t depth;	 /* number of frames, starting at `frame` */
	uint32_t flags;
};
#define DUET_PC_ESTIMATED (1u << 0) /* the compiler has not recorded the scope, and it may be another one */
/* the compiler has recorded where the scope changes (-XX:+DebugNonSafepoints): if estimated, not for this call */
#define DUET_PC_EXACT (1u << 1)
#define DUET_PC_MISSING (1u << 2) /* of a call: an unknown method that is inlined in the leaf frame's has made it */
#define DUET_PC_FLAGS (DUET_PC_ESTIMATED | DUET_PC_EXACT | DUET_PC_MISSING)
DUET_ASSERT_SIZE(struct duet_code_pc, 16);

struct duet_code_unload {
	uint64_t time_ns;
	uint64_t method;
	uint64_t address;
};
DUET_ASSERT_SIZE(struct duet_code_unload, 24);

/* A stub, an adapter or the interpreter that occurs in samples. Followed by name_len bytes of name. */
struct duet_stub {
	uint64_t time_ns;
	uint64_t address;
	uint32_t code_bytes;
	uint32_t name_len;
};
DUET_ASSERT_SIZE(struct duet_stub, 24);

/* Reserved address range of one code heap: any pc in it is JVM code. */
struct duet_code_heap {
	uint64_t low;
	uint64_t high;
};
DUET_ASSERT_SIZE(struct duet_code_heap, 16);

/* A thread was started, renamed or has ended. Followed by name_len bytes of UTF-8: its Java name. */
struct duet_thread {
	uint64_t time_ns;
	uint32_t tid; /* as the JVM sees it */
	uint16_t name_len;
	uint8_t ended;
	uint8_t doubted; /* the name may be another string's: use it only if it agrees with the kernel's name */
	uint64_t java_id; /* Thread.threadId(); 0: not known */
};
DUET_ASSERT_SIZE(struct duet_thread, 24);
