/* SPDX-License-Identifier: MIT */
/* OTLP's JSON form, made into its binary form. */
#pragma once

#include "base/buf.h"

/* Replaces JSON by the message. Returns 0, or -errno with the cause in `why`. Keys that are not known are skipped. */
int otlp_from_json(struct buf *contents, struct buf *why);
