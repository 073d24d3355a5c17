/* SPDX-License-Identifier: MIT */
/* HotSpot's counters in a JVM without counter memory (-XX:-UsePerfData). */
#pragma once

#include <stdint.h>

/*
 * Returns the address of the 64 bits that hold this counter, or 0 when none is found. HotSpot makes the counters of
 * java.lang.management even then, on the C heap, and keeps pointers to them in libjvm's variables: all these are
 * searched, which takes some milliseconds. `libjvm` is where its ELF header is mapped. Reads through reader/memory.h.
 */
uintptr_t counters_find(uintptr_t libjvm, const char *name);
