/* SPDX-License-Identifier: MIT */
/* Checks records from BPF and from agents before use: length, type, version, and the lengths inside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if the `bytes` at `data` (8-byte aligned) are one whole, well-formed kernel record. */
bool record_check(const void *data, size_t bytes);
/*
 * Returns true for a well-formed payload of an agent record of this type: the counts and lengths in it agree with
 * `bytes`. Trailing padding of less than 8 bytes is allowed.
 */
bool agent_record_check(uint16_t type, const void *payload, size_t bytes);
/* True for a well-formed message from an agent: size, type and version fit, strings inside end in NUL. */
bool agent_message_check(const void *data, size_t bytes);
