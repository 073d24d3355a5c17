/* SPDX-License-Identifier: MIT */
/* A JVM without code blobs, for tests of what is in one. */
#pragma once

#include "hotspot/jvmstructs.h"

bool jvmstructs_blob_at(uintptr_t pc, struct code_blob *ret)
{
	(void)pc, (void)ret;
	return false;
}

void jvmstructs_blob_name(const struct code_blob *blob, char *name, size_t size)
{
	(void)blob, (void)name, (void)size;
}

bool jvmstructs_is_nmethod(const char *name)
{
	return false;
}
