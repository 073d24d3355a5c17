/* SPDX-License-Identifier: MIT */
/*
 * Finds the container that a cgroup's path names. Each runtime writes it in its own way. Whoever may make cgroups can
 * also fake such a path. So the id is only what the path says, and a name is looked up only in the folders of root's
 * runtimes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_ID_MAX 255 /* NAME_MAX: LXC and nspawn use names as ids */
#define CONTAINER_SHORT_ID 12 /* digits that docker and similar tools print */
#define CONTAINER_UID_MAX 36 /* a pod's UUID; a static pod has 32 hexadecimal digits */

enum container_kind {
	CONTAINER_NONE, /* no container: a service, scope, user session or the root */
	CONTAINER_DOCKER,
	CONTAINER_CONTAINERD,
	CONTAINER_CRIO,
	CONTAINER_PODMAN,
	CONTAINER_KUBERNETES, /* a pod's container; the cgroupfs driver's paths do not name the runtime */
	CONTAINER_NSPAWN,
	CONTAINER_LXC,
	CONTAINER_OTHER, /* 64 hexadecimal digits below an unknown name */
	CONTAINER_KIND_MAX
};

struct container_ref {
	enum container_kind kind;
	char id[CONTAINER_ID_MAX + 1]; /* "" for CONTAINER_NONE; never "." or "..", contains no '/' */
	char pod_uid[CONTAINER_UID_MAX + 1]; /* "" outside of pods */
	size_t root_len; /* length of the part of the path that names the container's own root cgroup */
	/*
	 * True for a container inside a container, or below a user's own service manager. A runtime other than root's
	 * may have made the name, so root's runtimes are not searched for it.
	 */
	bool delegated;
};

/* Finds the innermost container of a cgroup path such as "/system.slice/docker-….scope". */
void container_parse(const char *path, struct container_ref *ret);
const char *container_kind_name(enum container_kind kind); /* "docker", "kubernetes", …; "" for CONTAINER_NONE */
/* True if `text` is exactly `len` hexadecimal digits, of either case. */
bool container_is_hex(const char *text, size_t len);
