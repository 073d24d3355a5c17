/* SPDX-License-Identifier: MIT */
/* The resource of an OTLP file: a process and the machine, by the semantic conventions. */
#pragma once

#include "base/buf.h"
#include "profile/profile.h"

/* Appends the packed message for the thread's process. Sets to->failed when out of memory. */
void otlp_pack_resource(const struct profile *profile, const struct profile_thread *thread, struct buf *to);

/* Makes the id of the profile of a sample's process and event: the same whenever the recording is written. */
void otlp_profile_id(const struct profile *profile, const struct profile_sample *sample, uint8_t ret[16]);
