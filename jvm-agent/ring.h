/* SPDX-License-Identifier: MIT */
/* The agent's end of the ring (headers/duet_ring.h): mapping it, and writing metadata records. */
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stddef.h>

#include "duet_agent.h"
#include "duet_ring.h"

struct ring {
	struct duet_ring_page *page;
	struct duet_lane_view lanes[DUET_LANES];
	bool stalled; /* the last wait for room was in vain: do not wait again until there is some */
};

/* A piece of a record; the pieces are laid end to end. */
struct ring_part {
	const void *data;
	size_t bytes;
};

/* An unsealed file could be cut while handlers use it: SIGBUS would end the JVM. And is it of this size? */
bool ring_file_is_safe(int fd, uint64_t bytes);
/*
 * Maps the loader's memfd, each lane twice in a row. The fd stays the caller's.
 * 0 or -errno, and then one sentence in *ret_why (constant text).
 */
int ring_map(struct ring *ring, int fd, uint64_t bytes, const char **ret_why);
void ring_unmap(struct ring *ring);

/* How long ring_write() may wait for room. */
enum ring_patience { RING_DROP, RING_WAIT };

/*
 * One record into the metadata lane. When there is no room: RING_WAIT (only on the agent's own thread) sleeps up to
 * half a second for the loader; then the record is dropped and counted. False when it was.
 */
bool ring_write(struct ring *ring, enum duet_agent_record_type type, const struct ring_part *parts, size_t count,
		enum ring_patience patience);
/* The answer to what is not there. Agent's thread only. */
void ring_write_gone(struct ring *ring, const struct duet_want *want);

/* No record of metadata that the agent's thread writes is larger; lanes have at least four times as much. */
size_t ring_metadata_most(const struct ring *ring);
/* Has the loader made room for a record of that size? While it has not, nothing is answered. */
bool ring_has_room(const struct ring *ring);

#endif
