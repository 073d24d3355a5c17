/* SPDX-License-Identifier: MIT */
/* The agent's end of the ring (headers/duet_ring.h): mapping it, and writing metadata records. */
#pragma once

#include <stddef.h>

#include "duet_agent.h"
#include "duet_ring.h"

struct ring {
	struct duet_ring_page *page;
	struct duet_lane_view lanes[DUET_LANES];
	bool stalled; /* the last wait for room was in vain: do not wait again until there is room */
};

/* A piece of a record. The pieces are written one after the other. */
struct ring_part {
	const void *data;
	size_t bytes;
};

/* Returns true if the file has this size and is sealed: one that shrinks in use would end the JVM by SIGBUS. */
bool ring_file_is_safe(int fd, uint64_t bytes);
/* Maps the loader's memfd, which stays the caller's, each lane twice. Returns 0, or -errno and why (constant text). */
int ring_map(struct ring *ring, int fd, uint64_t bytes, const char **ret_why);
void ring_unmap(struct ring *ring);

/* Whether ring_write() may wait for room. */
enum ring_when_full { RING_DROP, RING_WAIT };

/*
 * Writes one record into the metadata lane. When there is no room, RING_WAIT (only on the agent's own thread) sleeps up
 * to half a second until the loader makes some. Without room, drops and counts the record, and returns false.
 */
bool ring_write(struct ring *ring, enum duet_agent_record_type type, const struct ring_part *parts, size_t count,
		enum ring_when_full when_full);

/* Returns the largest size of a metadata record of the agent's thread. A lane is at least four times as large. */
size_t ring_metadata_most(const struct ring *ring);
/* Returns true when the lane has room for two records of that size. The agent answers no WANT until then. */
bool ring_has_room(const struct ring *ring);
/* Touches the pages of the next samples, so that who writes these has no page faults. Changes no byte. */
void ring_touch(struct ring *ring);
