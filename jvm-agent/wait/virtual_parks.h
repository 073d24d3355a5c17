/* SPDX-License-Identifier: MIT */
/*
 * Parks of virtual threads that leave their carrier. They do not call Unsafe.park(), but JVMTI reports when a virtual
 * thread leaves a carrier, and when it has one again.
 */
#ifndef WAIT_VIRTUAL_PARKS_H
#define WAIT_VIRTUAL_PARKS_H

#include <jvmti.h>

struct stay;

/* Both are called on the virtual thread, inside stay_enter(). */
struct virtual_parks {
	void (*begins)(struct stay *stay, JNIEnv *env, jthread thread); /* it is about to park without its carrier */
	void (*ended)(struct stay *stay, JNIEnv *env, jthread thread); /* it has a carrier again, whatever it did */
};

/*
 * Both are called on the agent's thread. The JVM may not have virtual threads, or not report them: then the first does
 * nothing. `parks` is static, and may be called for a while after virtual_parks_close().
 */
void virtual_parks_open(const struct virtual_parks *parks);
void virtual_parks_close(void);

#endif
