/* SPDX-License-Identifier: MIT */
/*
 * Reads the names of a container from the state files of root's runtimes. Users chose those names, so any byte may be
 * in them. Nothing outside of the runtimes' own folders is read, even if links in them lead out, and no read blocks.
 */
#pragma once

#include <stddef.h>

#include "proc/container.h"

#define CONTAINER_NAME_MAX 255 /* bytes; Kubernetes allows 253, the others about the same */

struct container_names {
	char name[CONTAINER_NAME_MAX + 1];
	char pod[CONTAINER_NAME_MAX + 1];
	char namespace[CONTAINER_NAME_MAX + 1]; /* the pod's namespace */
};

/*
 * Looks up the container below `root`, the host's root directory ("/"). For CONTAINER_NONE it also checks whether the
 * first two components of `path` are containerd's namespace and id, which follow no pattern; if so it sets the kind
 * too. Unknown names stay "".
 */
void container_names_read(const char *root, const char *path, struct container_ref *ref, struct container_names *ret);

/* Parsers; they leave `ret` unchanged when the text is not what they expect. */
void container_names_docker(const char *json, size_t len, struct container_names *ret); /* config.v2.json */
void container_names_oci(const char *json, size_t len, struct container_names *ret); /* config.json: its annotations */
/* containers.json of containers/storage, used by podman and CRI-O. */
void container_names_storage(const char *json, size_t len, const char *id, struct container_names *ret);
