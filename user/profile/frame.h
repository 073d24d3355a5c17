/* SPDX-License-Identifier: MIT */
/* One frame of a stack, with names, and how its text is made. */
#ifndef PROFILE_FRAME_H
#define PROFILE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"

/* .duet files contain these numbers: never change them. */
enum frame_kind {
	FRAME_KERNEL,
	FRAME_NATIVE,	   /* user-space code outside the JVM */
	FRAME_JVM,	   /* libjvm's own code, stubs and adapters */
	FRAME_COMPILED,	   /* Java, compiled */
	FRAME_INLINED,	   /* Java, inlined into the compiled frame above it in root order */
	FRAME_INTERPRETED, /* Java, interpreter */
	FRAME_JAVA_NATIVE, /* a Java method declared native */
	FRAME_THREAD,	   /* -t */
	FRAME_PROCESS,
	FRAME_CONTAINER, /* the container, or the cgroup of a process outside of containers */
	FRAME_MARK, /* says why frames are missing: [unknown_Java], [not_signalled] */
	FRAME_CLASS, /* not code: the class of the allocated object, java.lang.String[] */
	FRAME_STATE, /* not code: what the thread waits for or does, [futex], [runnable] or [exiting] */
	FRAME_WAKER, /* separates the stack that waited from the one that ended the wait, leaf first: [woken by] */
	FRAME_CPU, /* not code: the CPU, or the thread's scheduling policy, as the root: [CPU-1], [SCHED_BATCH] */
	FRAME_SPAN, /* not code: the tag of a span that the program reported; no name: it has none */
	FRAME_KIND_MAX
};

#define FRAME_BCI_INTERPRETED 0 /* of a native method: the interpreter has called it, not compiled code */
#define FRAME_BCI_OUTSIDE 0 /* of a class: the object was allocated outside of its thread's buffer */

/* All strings are ids in the profile's intern table; 0 = none. */
struct frame {
	enum frame_kind kind;
	uint32_t name;	     /* native: symbol. Java: method name. Thread, process, mark, class: the text */
	uint32_t class_name; /* Java: with dots, e.g. java.lang.String; else 0 */
	uint32_t signature;  /* Java: JVM method signature, e.g. (I)V; else 0 */
	uint32_t module;     /* native: file name of the library. Java: source file */
	int32_t line;	     /* Java: source line; 0 = unknown */
	int32_t bci;	     /* Java; of native code the offset in its function, in bytes; -1 = unknown */
};

/* How names are written. The options are async-profiler's. */
struct frame_style {
	bool simple;	 /* -s: String.length instead of java.lang.String.length */
	bool signatures; /* -g: java.lang.String.charAt(I)C */
	bool annotate;	 /* -a: suffixes _[j] compiled, _[i] inlined, _[0] interpreted, _[k] kernel */
	bool libraries;	 /* -l: library names before native frames: libc.so.6`read */
	bool lines;	 /* class.method:line */
	bool bci;	 /* class.method@index of the bytecode, for frames without a line */
	bool dotted;	 /* --dot: java.lang.String instead of java/lang/String; text and HTML use dots always */
	bool steady;	 /* without numbers that differ from run to run: Main$$Lambda, [main] instead of [main tid=7] */
};

/*
 * Appends the frame's name, or "[unknown]" when it has none. The text is valid UTF-8 without control characters, and
 * has '|' for ';', so that a frame is one token of one line.
 */
void frame_name(const struct intern *strings, const struct frame *frame, const struct frame_style *style,
		struct buf *out);
/*
 * Returns the suffix for how the code ran: "_[j]", "_[k]" …, or "" if the style has none. Kernel frames always have
 * one. Classes have one unless names are dotted: that of inlined code, as async-profiler writes it.
 */
const char *frame_suffix(const struct frame *frame, const struct frame_style *style);
/* Cuts the id out of the name of a thread or process that begins at `start`: [main tid=7] becomes [main]. */
void frame_cut_id(struct buf *text, size_t start);
const char *frame_kind_name(enum frame_kind kind); /* "kernel", "native", "JVM", … for legends */
bool frame_kind_is_java(enum frame_kind kind);

#endif
