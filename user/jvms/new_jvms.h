/* SPDX-License-Identifier: MIT */
/* JVMs that start during a recording, by the kernel's record that libjvm.so is mapped, before any sample. */
#pragma once

#include "proc/maps.h"
#include "proc/process.h"

/*
 * Returns the next process that has mapped a libjvm.so, with its current mappings; NULL when there is none. *seen is 0
 * before the first call, and belongs to this function. The process need not be one of those to be profiled.
 */
struct process *new_jvms_next(const struct mapping_log *log, uint64_t *seen, struct process_table *processes);
