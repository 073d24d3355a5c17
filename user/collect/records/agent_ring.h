/* SPDX-License-Identifier: MIT */
/* The loader's end of the ring that one agent writes (headers/duet_ring.h). The agent is not trusted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "duet_agent.h"
#include "duet_ring.h"

struct agent_ring;

/* The size of a lane for which `bytes` are requested: the next power of two, at least a page. */
size_t agent_ring_lane_bytes(size_t bytes);
/*
 * Creates and maps a sealed memfd (it can neither shrink nor grow) with a header page and two lanes. Returns 0 or
 * -errno. The caller owns *ret.
 */
int agent_ring_new(struct agent_ring **ret, size_t sample_bytes, size_t metadata_bytes);
void agent_ring_free(struct agent_ring *ring);
int agent_ring_fd(const struct agent_ring *ring); /* to send with START; owned by the ring */
void agent_ring_close_fd(struct agent_ring *ring); /* call after sending; the mapping stays */
size_t agent_ring_bytes(const struct agent_ring *ring);
size_t agent_ring_touched(const struct agent_ring *ring); /* bytes of RAM that either side has written to */

/* `payload` is a private copy that passed agent_record_check(). It is valid during the call. */
typedef void (*agent_ring_handler)(void *context, uint16_t type, const void *payload, uint32_t size);
/*
 * Passes published records of one lane to `handler`: at most `budget` records, and no more bytes than the lane holds.
 * Returns the number of records consumed, or -EPROTO if the ring is inconsistent; do not read it again then. Adds the
 * number of malformed records to *bad.
 */
int agent_ring_read(struct agent_ring *ring, enum duet_lane lane, agent_ring_handler handler, void *context, int budget,
		    uint64_t *bad);
uint64_t agent_ring_handler_ns(const struct agent_ring *ring); /* the agent's own value, unchecked */
uint64_t agent_ring_counter(const struct agent_ring *ring, enum duet_agent_counter counter);
