/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The layout of one JVM's code and methods. HotSpot exports it (gHotSpotVMStructs) and the agent publishes it once, so
 * that BPF can walk Java frames without help from the JVM. Offsets are those of fields in HotSpot's own structures.
 * They differ between JDKs. Some facts have two forms. Each JDK has one of them, and the field of the other form is
 * DUET_JVM_NO_FIELD.
 */
#pragma once

#include "duet_types.h"

/* Returns true for the name or path of HotSpot's library, also as /proc has it after the file was deleted. */
static inline int duet_is_libjvm(const char *path)
{
	const char *slash = __builtin_strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !__builtin_strcmp(name, "libjvm.so") || !__builtin_strcmp(name, "libjvm.so (deleted)");
}

#define DUET_JVM_HEAPS 4 /* HotSpot has three code heaps at most */
/* kinds of methods for which the interpreter builds a frame (JDK 8: 10, JDK 9 and later: 4) */
#define DUET_JVM_ENTRIES 12
#define DUET_JVM_FRAMELESS 16 /* kinds of blobs without a frame: five, and one for each type of field that JNI reads */
#define DUET_BLOB_BYTES 384 /* bytes of a blob's head, HeapBlock included: all fields lie within (JDK 17: 320) */
#define DUET_JVM_NO_FIELD 0xffff /* this JDK does not have the field */
#define DUET_MAX_OFFSET 4096 /* offsets are below this: no HotSpot structure that is read is larger */
#define DUET_CONST_METHOD_BYTES 64 /* bytes of its head: all fields lie within (JDK 25: 42) */
#define DUET_BCI_NATIVE (-3) /* AsyncGetCallTrace's lineno for a method declared native */

/*
 * A code heap. Blocks are multiples of a segment. The segment map has one byte for each segment; it leads towards the
 * first segment of the block.
 */
struct duet_jvm_heap {
	uint64_t low; /* reserved range */
	uint64_t high;
	uint64_t segmap;
	uint32_t segment_shift;
	uint32_t reserved;
};
DUET_ASSERT_SIZE(struct duet_jvm_heap, 32);

/* The interpreter's code that enters a method. All fields are offsets in bytes from interpreter_low. */
struct duet_method_entry {
	uint32_t begin;
	uint32_t end;
	/* x86-64: the pop of the return address, on top of the stack until then. arm64: the store of the sender's sp */
	uint32_t pop;
	/*
	 * x86-64: the pushes of the return address and of fp, then mov %rsp, %rbp; in `thrown`, the pushes of the
	 * exception and of the return address. arm64: the store of fp and the return address as a pair, which comes
	 * before `pop`.
	 */
	uint32_t push;
};
DUET_ASSERT_SIZE(struct duet_method_entry, 16);

/*
 * How to find which virtual thread a JavaThread runs. References are followed as they lie in memory, without HotSpot's
 * load barriers. References of ZGC carry colours and are not followed: then there is an id without a name.
 */
struct duet_jvm_virtual {
	/* vtable of plain JavaThreads, by which one is recognised; 0: virtual threads are not identified */
	uint64_t thread_vtable;
	uint64_t oop_base; /* for references of 4 bytes: the object lies at oop_base + (reference << oop_shift) */
	uint16_t thread_object; /* JavaThread::_threadObj, which leads to the reference to its own java.lang.Thread */
	/* JavaThread::_vthread, which leads to the reference to what Thread.currentThread() returns */
	uint16_t thread_current;
	uint16_t thread_owner; /* JDK 24+: _monitor_owner_id, 64 bits: the id of what Thread.currentThread() returns */
	uint16_t thread_entry; /* JDK 25+: _cont_entry, a pointer: NULL unless a virtual thread is mounted */
	uint16_t object_id; /* java.lang.Thread.tid, 64 bits */
	uint16_t object_name; /* java.lang.Thread.name, a reference to a String */
	uint16_t string_value; /* String.value, a reference to byte[] */
	uint16_t string_coder; /* String.coder, a byte: 0 Latin-1, 1 UTF-16 */
	uint16_t array_length; /* 32 bits */
	uint16_t array_bytes;
	uint8_t oop_bytes; /* bytes of a reference in an object, 4 or 8; 0: objects are not read */
	uint8_t oop_shift;
	uint16_t reserved;
};
DUET_ASSERT_SIZE(struct duet_jvm_virtual, 16 + 11 * 2 + 2);

/*
 * What a thread has allocated, and the name of a class. Fields that are not known are DUET_JVM_NO_FIELD. A thread
 * allocates in its own buffer (TLAB). thread_allocated has the bytes of its earlier buffers and of all objects outside
 * of them.
 */
struct duet_jvm_allocation {
	uint16_t thread_allocated; /* Thread::_allocated_bytes, 64 bits */
	uint16_t buffer_start, buffer_top, buffer_end; /* in the JavaThread: pointers; all NULL if there is no buffer */
	uint16_t klass_name; /* Klass::_name, a pointer to a Symbol */
	uint16_t symbol_length; /* 16 bits */
	uint16_t symbol_body; /* the bytes of the name */
	uint16_t reserved;
};
DUET_ASSERT_SIZE(struct duet_jvm_allocation, 16);

/* How an object leads to its Klass: at klass_base + (the number in its header << klass_shift). */
struct duet_jvm_object {
	uint64_t klass_base;
	uint16_t klass; /* where the number lies in the object */
	uint8_t klass_bytes; /* of the word that has it, 4 or 8; 0: not known */
	uint8_t klass_below; /* bits of the word below the number; compact headers (JDK 24+) have others there */
	uint8_t klass_shift;
	uint8_t reserved[3];
};
DUET_ASSERT_SIZE(struct duet_jvm_object, 16);

/*
 * How a thread of HotSpot's own compilers leads to the method that it compiles: thread -> JavaThread -> ciEnv ->
 * CompileTask -> Method. A thread that is no compiler's has something else in these places.
 */
struct duet_jvm_compiling {
	/*
	 * Where the C library keeps the thread's JavaThread: distance from the thread pointer (x86-64), or from the
	 * word that the kernel clears when the thread ends (arm64). 0: not found
	 */
	int16_t thread;
	uint16_t osthread; /* in the JavaThread: a pointer to its OSThread */
	uint16_t osthread_id; /* 32 bits, the tid */
	uint16_t env; /* in a compiler's JavaThread: a pointer to the ciEnv on its stack; NULL between tasks */
	uint16_t env_task;
	uint16_t task_method;
	uint16_t reserved[2];
};
DUET_ASSERT_SIZE(struct duet_jvm_compiling, 16);

struct duet_jvm_layout {
	struct duet_jvm_heap heaps[DUET_JVM_HEAPS]; /* low == high: unused */
	uint64_t interpreter_low; /* the template interpreter, whose frames are walked by frame pointer */
	uint64_t interpreter_high;
	uint64_t entries_low; /* its method entries; those that are not in `entries` build no frame */
	uint64_t entries_high;
	uint64_t call_stub_return; /* return address of Java code that native code called */
	uint64_t compiled_name; /* CodeBlob::_name of compiled methods, a pointer; 0: none seen yet */
	uint64_t native_name; /* likewise, of the compiled wrappers of native methods */
	uint64_t adapter_name; /* likewise, of adapters between compiled methods and the interpreter */
	uint64_t frameless_names[DUET_JVM_FRAMELESS]; /* likewise, of code that builds no frame; [0]: vtable stubs */
	/* JDK 21+: likewise, of the stubs that take a virtual thread's frames from the heap */
	uint64_t continuation_name;
	/* address of the agent's variable that holds an address in Continuation.enterSpecial, once that is compiled */
	uint64_t enter_special;
	/* address of HotSpot's counter of safepoints, raised as they begin; 0: there is none (-XX:-UsePerfData) */
	uint64_t safepoints;
	/* address of HotSpot's counter of unloaded classes, raised before the class is freed; 0: it is not found */
	uint64_t unloads;
	struct duet_jvm_virtual virtual_threads;
	struct duet_jvm_allocation allocation;
	struct duet_jvm_object object;
	struct duet_jvm_compiling compiling; /* all 0: the JVM does not tell */

	/* HeapBlock and CodeBlob: offsets from the start of the block. All lie within DUET_BLOB_BYTES. */
	uint16_t block_header_bytes;
	uint16_t block_used;
	uint16_t blob_name;
	uint16_t blob_bytes; /* 32 bits */
	uint16_t blob_frame_words; /* 32 bits */
	uint16_t blob_frame_complete;
	uint16_t blob_frame_complete_width; /* 2 or 4 bytes */
	uint16_t blob_code_begin; /* JDK 8-22: a pointer; else DUET_JVM_NO_FIELD, and the next field applies */
	uint16_t blob_code_offset; /* JDK 23+: 32 bits, from the blob's start */
	uint16_t nmethod_entry; /* JDK 8-22: a pointer; else DUET_JVM_NO_FIELD, and the next field applies */
	uint16_t nmethod_entry_offset; /* JDK 23+: 16 bits, from code_begin */
	/* 32 bits, an offset from the blob's start: after it there is no code of the method itself */
	uint16_t nmethod_stubs;
	uint16_t nmethod_id; /* 32 bits: id of the compilation, never used twice */
	/* 32 bits: where in the frame of a deoptimized method its original pc is stored */
	uint16_t nmethod_original_pc;

	/* The path from Method* to jmethodID, as in InstanceKlass::jmethod_id_or_null(). */
	uint16_t method_const;
	uint16_t const_pool;
	uint16_t const_id; /* 16 bits */
	uint16_t const_code_bytes; /* 16 bits */
	uint16_t const_bytes; /* sizeof(ConstMethod): the bytecodes follow it */
	uint16_t pool_holder;
	/* points to a size_t count, which the ids follow; DUET_JVM_NO_FIELD: methods are identified by address */
	uint16_t holder_ids;

	/* Interpreter frame, in words from the frame pointer. The rest of the frame is the same in all JDKs. */
	int16_t frame_bcp;
	uint16_t frame_sender; /* arm64: number of the register that holds the caller's sp at the entry of a method */
	uint16_t pool_version; /* 32 bits: how often the pool's class was redefined; 0: not known */

	struct duet_method_entry entries[DUET_JVM_ENTRIES]; /* begin == end: unused */
	/* x86-64: where the interpreter leaves a frame through which an exception passes */
	struct duet_method_entry thrown;
};
DUET_ASSERT_SIZE(struct duet_jvm_layout,
		 4 * 32 + (23 + DUET_JVM_FRAMELESS) * 8 + 24 * 2 + (DUET_JVM_ENTRIES + 1) * 16);

/* Value of the map `jvm_layouts`, key = tgid in the loader's pid namespace. */
struct duet_jvm_entry {
	uint64_t start_ticks; /* as in struct duet_jvm_target */
	struct duet_jvm_layout layout;
};
DUET_ASSERT_SIZE(struct duet_jvm_entry, 8 + sizeof(struct duet_jvm_layout));
