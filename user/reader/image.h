/* SPDX-License-Identifier: MIT */
/* Opens the JVM in a process for reading: finds its libjvm and reads its version. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct image {
	uintptr_t libjvm; /* address of its ELF header in the process */
	int java_version; /* 8, 11, 17, … */
	char name[64]; /* "OpenJDK 64-Bit Server VM" */
	char release[64]; /* "17.0.15+6-Debian-1deb12u1" */
};

/* Opens the process's JVM in jvm-agent/hotspot/. 0, or -errno and a clause without subject in *why (constant). */
int image_open(struct image *image, pid_t pid, const char **ret_why);
