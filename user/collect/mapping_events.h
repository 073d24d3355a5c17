/* SPDX-License-Identifier: MIT */
/* The kernel's own records of exec, fork and executable mappings, of every process. Inside collect/ only. */
#ifndef COLLECT_MAPPING_EVENTS_H
#define COLLECT_MAPPING_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "proc/mapping_log.h"

struct mapping_events;

/* `most_bytes` of rings on all CPUs together. 0 or -errno. */
int mapping_events_open(struct mapping_events **ret, size_t most_bytes);
void mapping_events_close(struct mapping_events *events);
size_t mapping_events_bytes(const struct mapping_events *events); /* of rings */
uint64_t mapping_events_count(const struct mapping_events *events); /* of records made, as far as read */
/* Takes in what has come; *lost grows by what had no room. */
void mapping_events_read(struct mapping_events *events, struct mapping_log *log, uint64_t *lost);

#endif
