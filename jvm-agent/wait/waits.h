/* SPDX-License-Identifier: MIT */
/* One value for each thread that waits, by a key. For all threads, without locks; not in signal handlers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WAITS_MAX 262144 /* virtual threads wait in such numbers */

/*
 * Only the key's thread sets both words. The thread that exchanges the value for NULL owns the value, and it alone
 * frees the place. If it was marked as visited then, the visitor owns it. All 0 is empty; unused pages cost no memory.
 */
struct waits {
	struct waits_place {
		uint64_t key; /* 0: free */
		void *value; /* bit 0 is set while it is visited */
	} places[WAITS_MAX];
};

/*
 * Stores a value under a key, until waits_take() or waits_end(). There must be no value under this key. The value is
 * the address of a structure. Returns false when there is no room; then the caller still owns the value.
 */
bool waits_put(struct waits *waits, uint64_t key, void *value); /* key != 0, value != NULL */
/* The caller owns it again. Returns NULL when there is none, or when it is visited: the visitor owns it then. */
void *waits_take(struct waits *waits, uint64_t key);
/* Passes the values that are kept now to `take`, which owns them. Values that are put meanwhile may stay. */
void waits_end(struct waits *waits, void (*take)(void *context, void *value), void *context);
/*
 * Gives back the memory of pages that hold no value; each thread that has waited has touched one. Call when no thread
 * begins to wait any more: a value that is put at this very moment is lost, and never freed.
 */
void waits_trim(struct waits *waits);
/*
 * Passes the values that are kept now to `visit`, and keeps them. One that was to be taken meanwhile is passed to
 * `take` afterwards, which then owns it. One thread may visit at a time, and none may end.
 */
void waits_visit(struct waits *waits, void (*visit)(void *context, void *value),
		 void (*take)(void *context, void *value), void *context);
