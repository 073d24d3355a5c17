/* SPDX-License-Identifier: MIT */
/*
 * The memory of another process, a JVM, as the code of jvm-agent/hotspot/ reads it. (In jvm-agent/, the header of the
 * same name is for the agent, which reads its own process.) One process at a time. All memory is the JVM's claim. What
 * cannot be read is 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "safe_copy.h"

#define MEMORY_COPY_MAX SAFE_COPY_MAX

/*
 * Reads memory of process `pid` from now on. `libjvm` is where the ELF header of its libjvm.so is mapped. Returns 0, or
 * -errno: -EPERM when its memory must not be read, -ENOEXEC when no ELF file with exported symbols is there.
 */
int memory_open(pid_t pid, uintptr_t libjvm);
/* Returns the address of a variable that libjvm exports; 0 when there is none. */
uintptr_t memory_symbol(const char *name);

/*
 * Copies memory that may not be mapped. Returns the number of bytes copied, which is less than `bytes` when there is an
 * unmapped page, and 0 when `bytes` is above MEMORY_COPY_MAX.
 */
size_t memory_copy(void *to, uintptr_t from, size_t bytes);

#define MEMORY_PIECES_MAX 4
/* The same for several pieces of memory, one after the other, in one system call; `bytes` are those of all of them. */
size_t memory_copy_pieces(void *to, const struct memory_piece *pieces, size_t count);

/*
 * Like memory_copy(), but keeps the pages that it has read until memory_forget(): objects that are read one after the
 * other lie close together. The result may be old, so the caller notes it (memory_note()), or can use old data.
 */
#define MEMORY_IS_KEPT 1
size_t memory_take(void *to, uintptr_t from, size_t bytes);
void memory_forget(void);

/*
 * After memory_note_all(), each memory_note() adds what memory_take() returned for an address. memory_is_as_noted()
 * ends that: it reads everything again in one system call, the first note last. Returns true if nothing has changed.
 * Otherwise drops what has changed from the memory that is kept, so that reading again helps; also false if there was
 * too much to note.
 */
void memory_note_all(void);
void memory_note(uintptr_t address, const void *bytes, size_t count);
bool memory_is_as_noted(void);

/* These keep pages until memory_renew(). Between memory_note_all() and memory_is_as_noted() they note memory. */
uintptr_t memory_word(uintptr_t address);
uint32_t memory_int(uintptr_t address);
uint16_t memory_half(uintptr_t address);
uint8_t memory_byte(uintptr_t address);
/* Copies a string, cut to `size` - 1 characters. An empty string when there is none. */
void memory_text(char *text, uintptr_t address, size_t size);
void memory_renew(void);
