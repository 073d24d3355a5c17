/* SPDX-License-Identifier: MIT */
/*
 * The memory of another process, a JVM, as the code of jvm-agent/hotspot/ reads it (there the header of the same name
 * is for the agent, whose memory it is). One process at a time. All that is read is the JVM's claim: what cannot be
 * read is 0.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMORY_COPY_MAX (64u << 10)

/*
 * From now on memory of process `pid` is read. `libjvm` is where the ELF header of its libjvm.so is mapped. Returns 0,
 * or -errno: -EPERM when its memory must not be read, -ENOEXEC when no ELF file with exported symbols is there.
 */
int memory_open(pid_t pid, uintptr_t libjvm);
/* Returns the address of a variable that libjvm exports; 0 when there is none. */
uintptr_t memory_symbol(const char *name);

/*
 * Copies memory that may not be mapped. Returns the number of bytes copied, which is less than `bytes` when there is an
 * unmapped page, and 0 when `bytes` is above MEMORY_COPY_MAX.
 */
size_t memory_copy(void *to, uintptr_t from, size_t bytes);

/*
 * Like memory_copy(), but keeps the pages that it has read, until memory_forget(): objects that are asked for one after
 * the other lie close together. What is taken may be old, so whoever takes notes it, or can do with what is old.
 */
size_t memory_take(void *to, uintptr_t from, size_t bytes);
bool memory_forget(void); /* returns false if there was nothing to forget */

/*
 * From memory_note_all() on each memory_note() adds what was taken from an address. memory_is_as_noted() ends that. It
 * reads everything again in one system call, what was noted first comes last. True if all is as it was noted.
 */
void memory_note_all(void);
void memory_note(uintptr_t address, const void *bytes, size_t count);
bool memory_is_as_noted(void);

/* These keep the pages that they have read, until memory_renew(). */
uintptr_t memory_word(uintptr_t address);
uint32_t memory_int(uintptr_t address);
uint16_t memory_half(uintptr_t address);
uint8_t memory_byte(uintptr_t address);
/* Copies a string, cut to `size` - 1 characters. An empty string when there is none. */
void memory_text(char *text, uintptr_t address, size_t size);
void memory_renew(void);

#endif
