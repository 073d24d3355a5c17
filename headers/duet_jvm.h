/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * How one JVM lays out its code and its methods, as HotSpot exports it (gHotSpotVMStructs) and the agent publishes it
 * once, so that BPF can walk Java frames without a word from the JVM. Offsets are of fields in HotSpot's own
 * structures; JDKs differ in them, and in which of two ways they say a thing.
 */
#ifndef DUET_JVM_H
#define DUET_JVM_H

#include "duet_types.h"

#define DUET_JVM_HEAPS 4 /* HotSpot has three code heaps at most */
#define DUET_JVM_ENTRIES 12 /* kinds of methods that the interpreter makes a frame for (JDK 8: 10, since 9: 4) */
#define DUET_JVM_FRAMELESS 16 /* kinds of blobs: five, and one for each type of field that JNI reads */
#define DUET_BLOB_BYTES 384 /* of a blob's head, HeapBlock included: all fields lie within (JDK 17: 320) */
#define DUET_JVM_NO_FIELD 0xffff /* this JDK has it not */
#define DUET_MAX_OFFSET 4096 /* no HotSpot structure that is read is larger */
#define DUET_CONST_METHOD_BYTES 64 /* of its head: all fields lie within (JDK 25: 42) */
#define DUET_BCI_NATIVE (-3) /* AsyncGetCallTrace's lineno for a method declared native */

/* Blocks in multiples of a segment; a byte for each in the map leads towards the first of its block. */
struct duet_jvm_heap {
	uint64_t low; /* reserved range */
	uint64_t high;
	uint64_t segmap;
	uint32_t segment_shift;
	uint32_t reserved;
};
DUET_ASSERT_SIZE(struct duet_jvm_heap, 32);

/* The interpreter's code that enters a method, in bytes from interpreter_low. */
struct duet_method_entry {
	uint32_t begin;
	uint32_t end;
	/* arm64: where the caller's sp is stored, and before that, as a pair, fp and the return address */
	uint32_t pop; /* of the return address, which is on top of the stack up to here */
	/* of the return address, of fp, and mov %rsp, %rbp; in `thrown`, of the exception, and the return address */
	uint32_t push;
};
DUET_ASSERT_SIZE(struct duet_method_entry, 16);

/*
 * How to tell which virtual thread a JavaThread runs. References are followed as they lie in memory, without HotSpot's
 * load barriers: with ZGC, whose references have colours, they are not, and there is an id without a name.
 */
struct duet_jvm_virtual {
	uint64_t thread_vtable; /* of plain JavaThreads: is there one at an address? 0: nothing can be told */
	uint64_t oop_base; /* of references of 4 bytes: the object lies at oop_base + (reference << oop_shift) */
	uint16_t thread_object; /* JavaThread::_threadObj: where the reference to its own java.lang.Thread is */
	uint16_t thread_current; /* JavaThread::_vthread: and that to what Thread.currentThread() returns */
	uint16_t thread_owner; /* JDK 24+: _monitor_owner_id, 64 bits: the latter's id */
	uint16_t thread_entry; /* JDK 25+: _cont_entry, a pointer: NULL unless a virtual thread is mounted */
	uint16_t object_id; /* java.lang.Thread: tid, 64 bits */
	uint16_t object_name; /* a reference to a String */
	uint16_t string_value; /* a reference to byte[] */
	uint16_t string_coder; /* a byte: 0 Latin-1, 1 UTF-16 */
	uint16_t array_length; /* 32 bits */
	uint16_t array_bytes;
	uint8_t oop_bytes; /* of a reference in an object: 4, 8; 0: objects are not read */
	uint8_t oop_shift;
	uint16_t reserved;
};
DUET_ASSERT_SIZE(struct duet_jvm_virtual, 16 + 11 * 2 + 2);

struct duet_jvm_layout {
	struct duet_jvm_heap heaps[DUET_JVM_HEAPS]; /* low == high: unused */
	uint64_t interpreter_low; /* the template interpreter: frames by frame pointer */
	uint64_t interpreter_high;
	uint64_t entries_low; /* its method entries: here a frame is made, or none, for all that is not in `entries` */
	uint64_t entries_high;
	uint64_t call_stub_return; /* where Java returns to when native code had called it */
	uint64_t compiled_name; /* CodeBlob::_name of compiled methods, a pointer; 0: none seen yet */
	uint64_t native_name; /* and of the compiled wrappers of native methods */
	uint64_t adapter_name; /* and of adapters between them and the interpreter */
	uint64_t frameless_names[DUET_JVM_FRAMELESS]; /* and of code that makes no frame; [0]: vtable stubs */
	uint64_t continuation_name; /* JDK 21+: and of the stubs that take a virtual thread's frames from the heap */
	uint64_t enter_special; /* where the agent keeps an address in Continuation.enterSpecial, once it is compiled */
	uint64_t safepoints; /* where HotSpot counts its safepoints, as they begin; 0: it does not (-XX:-UsePerfData) */
	struct duet_jvm_virtual virtual_threads;

	/* HeapBlock and CodeBlob, from the block's start; DUET_BLOB_BYTES holds them */
	uint16_t block_header_bytes;
	uint16_t block_used;
	uint16_t blob_name;
	uint16_t blob_bytes; /* 32 bits */
	uint16_t blob_frame_words; /* 32 bits */
	uint16_t blob_frame_complete;
	uint16_t blob_frame_complete_width; /* 2 or 4 bytes */
	uint16_t blob_code_begin; /* JDK 8-22: a pointer; else DUET_JVM_NO_FIELD, then */
	uint16_t blob_code_offset; /* JDK 23+: 32 bits, from the blob's start */
	uint16_t nmethod_entry; /* JDK 8-22: a pointer; else DUET_JVM_NO_FIELD, then */
	uint16_t nmethod_entry_offset; /* JDK 23+: 16 bits, from code_begin */
	uint16_t nmethod_stubs; /* 32 bits, from the blob's start: behind it no method's own code */
	uint16_t nmethod_id; /* 32 bits: of the compilation, never used twice */
	uint16_t nmethod_original_pc; /* 32 bits: where in its frame a deoptimized method keeps its pc */

	/* from Method* to jmethodID, as InstanceKlass::jmethod_id_or_null() goes */
	uint16_t method_const;
	uint16_t const_pool;
	uint16_t const_id; /* 16 bits */
	uint16_t const_code_bytes; /* 16 bits */
	uint16_t const_bytes; /* sizeof(ConstMethod): the bytecodes follow */
	uint16_t pool_holder;
	uint16_t holder_ids; /* size_t count, then ids */

	/* interpreter frame, in words from the frame pointer; the rest is the same in all JDKs */
	int16_t frame_bcp;
	uint16_t frame_sender; /* arm64: number of the register that has the caller's sp where a method is entered */
	uint16_t reserved;

	struct duet_method_entry entries[DUET_JVM_ENTRIES]; /* begin == end: unused */
	struct duet_method_entry thrown; /* x86-64: and where it leaves a frame that an exception passes */
};
DUET_ASSERT_SIZE(struct duet_jvm_layout,
		 4 * 32 + (16 + DUET_JVM_FRAMELESS) * 8 + 24 * 2 + (DUET_JVM_ENTRIES + 1) * 16);

/* Value of the map `jvm_layouts`, key = tgid as the loader sees it. */
struct duet_jvm_entry {
	uint64_t start_ticks; /* as in struct duet_jvm_target */
	struct duet_jvm_layout layout;
};
DUET_ASSERT_SIZE(struct duet_jvm_entry, 8 + sizeof(struct duet_jvm_layout));

#endif
