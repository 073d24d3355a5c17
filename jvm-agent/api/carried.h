/* SPDX-License-Identifier: MIT */
/*
 * The executable `duet` inside the library, without its symbols. libasyncProfiler.so contains it, so that one file is a
 * full installation. libduet.so, which the executable itself contains, does not.
 */
#ifndef API_CARRIED_H
#define API_CARRIED_H

#include <stdint.h>

extern const unsigned char carried_executable[];
extern const uint64_t carried_executable_bytes; /* 0: none */

#endif
