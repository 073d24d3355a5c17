/* SPDX-License-Identifier: MIT */
/* The loader's end of the ring that one agent writes (headers/duet_ring.h). The other side is not trusted. */
#ifndef COLLECT_AGENT_RING_H
#define COLLECT_AGENT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "duet_agent.h"
#include "duet_ring.h"

struct agent_ring;

size_t agent_ring_lane_bytes(size_t bytes); /* that a lane has which is asked for so: a power of two */
/* A new sealed memfd (no shrink, no grow), mapped: of two lanes, and a page. 0 or -errno. */
int agent_ring_new(struct agent_ring **ret, size_t sample_bytes, size_t metadata_bytes);
void agent_ring_free(struct agent_ring *ring);
int agent_ring_fd(const struct agent_ring *ring); /* to send with START; stays owned by the ring */
void agent_ring_close_fd(struct agent_ring *ring); /* after sending */
size_t agent_ring_bytes(const struct agent_ring *ring);
size_t agent_ring_touched(const struct agent_ring *ring); /* bytes of RAM that either side has written to */

/* `payload` is a private copy that passed agent_record_check(), valid during the call. */
typedef void (*agent_ring_handler)(void *context, uint16_t type, const void *payload, uint32_t size);
/*
 * Hands over published records of one lane, at most `budget` and no more bytes than the lane has. Records consumed, or
 * -EPROTO when the ring is inconsistent: then it must not be read again. *bad counts records malformed inside.
 */
int agent_ring_read(struct agent_ring *ring, enum duet_lane lane, agent_ring_handler handler, void *context, int budget,
		    uint64_t *bad);
uint64_t agent_ring_handler_ns(const struct agent_ring *ring); /* as the agent claims */
uint64_t agent_ring_counter(const struct agent_ring *ring, enum duet_agent_counter counter);

#endif
