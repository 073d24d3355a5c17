/* SPDX-License-Identifier: MIT */
/* In which cloud the machine is, by what firmware and cloud-init left in files: nobody is asked over the network. */
#ifndef CLOUD_H
#define CLOUD_H

#include "base/buf.h"

/* "" for what is not known. */
struct cloud {
	struct buf provider; /* "aws", "gcp" or "azure", gProfiler's words */
	struct buf region;
	struct buf zone;
	struct buf type; /* of the machine: "m5.large" */
};

void cloud_read(struct cloud *cloud, const char *root); /* of the file system; "" for the host's own */
void cloud_release(struct cloud *cloud);

#endif
