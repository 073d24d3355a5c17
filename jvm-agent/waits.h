/* SPDX-License-Identifier: MIT */
/*
 * One value for each thread that waits, found by a key. Callable on all threads at once, without locks; not in signal
 * handlers. A key may be used by one thread at a time only.
 */
#ifndef WAITS_H
#define WAITS_H

#include <stdbool.h>
#include <stdint.h>

#define WAITS_MAX 16384

/*
 * Only the key's thread sets both words. The thread that exchanges the value for NULL owns the value, and it alone
 * frees the place. All 0 is empty. Pages that no thread has used cost no memory.
 */
struct waits {
	struct waits_place {
		uint64_t key; /* 0: free */
		void *value;
	} places[WAITS_MAX];
};

/*
 * Stores a value under a key, until waits_take() or waits_end(). There must be no value under this key. Returns false
 * when there is no room; then the caller still owns the value.
 */
bool waits_put(struct waits *waits, uint64_t key, void *value); /* key != 0, value != NULL */
void *waits_take(struct waits *waits, uint64_t key); /* the caller owns it again; NULL when there is none */
/*
 * Passes the values that are kept now to `take`, which then owns them. Values that other threads put meanwhile may
 * stay.
 */
void waits_end(struct waits *waits, void (*take)(void *context, void *value), void *context);

#endif
