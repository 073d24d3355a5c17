/* SPDX-License-Identifier: MIT */
/*
 * Which container a cgroup's path names. Runtimes spell it in many ways, and whoever may make cgroups may make up
 * such a path too: the id is what the path says, and a name is looked up only where root's runtimes put theirs.
 */
#ifndef PROC_CONTAINER_H
#define PROC_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_ID_MAX 255 /* NAME_MAX: LXC and nspawn have names for ids */
#define CONTAINER_SHORT_ID 12 /* what docker and its like print */
#define CONTAINER_UID_MAX 36 /* of a pod: a UUID; 32 hexadecimal digits for a static pod */

enum container_kind {
	CONTAINER_NONE, /* a plain cgroup: service, scope, user session, root */
	CONTAINER_DOCKER,
	CONTAINER_CONTAINERD,
	CONTAINER_CRIO,
	CONTAINER_PODMAN,
	CONTAINER_KUBERNETES, /* of a pod; the cgroupfs driver does not say by which runtime */
	CONTAINER_NSPAWN,
	CONTAINER_LXC,
	CONTAINER_OTHER, /* 64 hexadecimal digits below a name we do not know */
	CONTAINER_KIND_MAX
};

struct container_ref {
	enum container_kind kind;
	char id[CONTAINER_ID_MAX + 1]; /* "" for CONTAINER_NONE; never "." or "..", no '/' in it */
	char pod_uid[CONTAINER_UID_MAX + 1]; /* "" outside of pods */
	size_t root_len; /* bytes of the path that are the container's own root cgroup */
	/*
	 * A container inside a container, or below a user's own manager: somebody else than root's runtime may have
	 * made the name, so root's runtimes are not asked for it.
	 */
	bool delegated;
};

/* The innermost container of a cgroup path ("/system.slice/docker-….scope"). */
void container_parse(const char *path, struct container_ref *ret);
const char *container_kind_name(enum container_kind kind); /* "docker", "kubernetes", …; "" for CONTAINER_NONE */
/* Digits only, both cases; exactly `len`. */
bool container_is_hex(const char *text, size_t len);

#endif
