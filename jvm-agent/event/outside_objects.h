/* SPDX-License-Identifier: MIT */
/*
 * Objects that do not fit into their thread's buffer (TLAB) and are allocated outside. JDK 12 to 24 count bytes of the
 * buffer twice when that happens: the next object in the buffer is sampled too early, by up to an interval, and objects
 * outside too seldom. The error is small if the JVM samples closely, and the agent then leaves out samples at random.
 */
#ifndef EVENT_OUTSIDE_OBJECTS_H
#define EVENT_OUTSIDE_OBJECTS_H

#include <jni.h>
#include <stdint.h>

struct stay;

void outside_objects_begin(void); /* forgets all objects */
/* Counts an object that the calling thread has allocated and the JVM has sampled at this interval. */
void outside_objects_count(struct stay *stay, jobject object, uint64_t size, uint64_t interval);
/* Returns the interval at which the JVM should sample, which is not longer than the present one. */
uint64_t outside_objects_interval(uint64_t interval);

#endif
