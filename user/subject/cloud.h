/* SPDX-License-Identifier: MIT */
/* Finds the cloud that the machine runs in, from files of the firmware and cloud-init. No network requests. */
#pragma once

#include "base/buf.h"

/* A field is "" when unknown. */
struct cloud {
	struct buf provider; /* "aws", "gcp" or "azure", gProfiler's words */
	struct buf region;
	struct buf zone;
	struct buf type; /* machine type: "m5.large" */
};

void cloud_read(struct cloud *cloud, const char *root); /* `root`: prefix of all paths; "" for the host */
void cloud_release(struct cloud *cloud);
