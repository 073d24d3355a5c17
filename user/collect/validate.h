/* SPDX-License-Identifier: MIT */
/* Nothing trusted unread: length, type, version and inner lengths of records, from BPF and from agents. */
#ifndef COLLECT_VALIDATE_H
#define COLLECT_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True when `bytes` at `data` (8-byte aligned) are one whole, well-formed kernel record. */
bool record_check(const void *data, size_t bytes);
/*
 * The same for the payload of an agent record of this type; counts and lengths
 * inside agree with `bytes`. Trailing padding < 8 bytes is allowed.
 */
bool agent_record_check(uint16_t type, const void *payload, size_t bytes);
/* A control message from an agent: size, type, version; strings inside are NUL-terminated. */
bool agent_message_check(const void *data, size_t bytes);

#endif
