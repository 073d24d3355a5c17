/* SPDX-License-Identifier: MIT */
/*
 * What people call a container, from the state files of root's runtimes. They hold what users chose: any byte may be in
 * a name. Nothing is read outside of the runtimes' own folders, whatever links lie in them, and nothing blocks.
 */
#ifndef PROC_CONTAINER_NAMES_H
#define PROC_CONTAINER_NAMES_H

#include <stddef.h>

#include "proc/container.h"

#define CONTAINER_NAME_MAX 255 /* bytes; Kubernetes allows 253, the others more or less the same */

struct container_names {
	char name[CONTAINER_NAME_MAX + 1];
	char pod[CONTAINER_NAME_MAX + 1];
	char namespace[CONTAINER_NAME_MAX + 1]; /* of the pod */
};

/*
 * Looks the container up below `root`, the host's root directory ("/"), and, for CONTAINER_NONE, whether the first
 * two components of `path` are containerd's namespace and id, which follow no pattern: then the kind is set too. What
 * is not known stays "".
 */
void container_names_read(const char *root, const char *path, struct container_ref *ref, struct container_names *ret);

/* The parsers; anything but what is expected leaves `ret` as it is. */
void container_names_docker(const char *json, size_t len, struct container_names *ret); /* config.v2.json */
void container_names_oci(const char *json, size_t len, struct container_names *ret); /* config.json, its annotations */
/* containers.json of containers/storage, which podman and CRI-O share. */
void container_names_storage(const char *json, size_t len, const char *id, struct container_names *ret);

#endif
