/* SPDX-License-Identifier: MIT */
/* OTLP's JSON form, made into its binary form. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* Appends the message. Returns 0, or -errno with one sentence in `why`. Keys that are not known are skipped. */
int otlp_from_json(const char *json, size_t len, struct buf *out, struct buf *why);
