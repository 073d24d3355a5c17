/* SPDX-License-Identifier: MIT */
/*
 * The cgroup v2 hierarchy: finds paths by id and ids by path. An id is the 64-bit inode number of the cgroup's folder
 * (Linux 5.5), which BPF stores with a sample. An id is never reused and a v2 cgroup is never renamed, so id and path
 * stay together. Paths are as in /proc/PID/cgroup: "/" is the root. Whoever may make a cgroup chooses its name, so a
 * path may hold any byte but newline.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * Finds the container that a cgroup's path names. Each runtime writes it in its own way. Whoever may make cgroups can
 * also fake such a path: give only the part of cgroup_trusted_len().
 */
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
};

/*
 * Finds the outermost container of a cgroup path such as "/system.slice/docker-….scope". What is below its root
 * cgroup is named by whoever runs in it.
 */
void container_parse(const char *path, struct container_ref *ret);
const char *container_kind_name(enum container_kind kind); /* "docker", "kubernetes", …; "" for CONTAINER_NONE */
/* True if `text` is exactly `len` hexadecimal digits, of either case. */
bool container_is_hex(const char *text, size_t len);

/*
 * Returns the length of the leading part of a cgroup's path below the mount point that only root or our user can have
 * named: each folder above a name is theirs alone. What is below a folder that was removed is not known.
 */
size_t cgroup_trusted_len(const char *mount, const char *path);

#define CGROUP_PATH_MAX 4096 /* bytes; longer paths are not supported */
#define CGROUP_ROOT_ID 1 /* the same in every hierarchy, mounted or not */

struct cgroup_tree {
	int fd; /* root of the mount; -1 when there is no v2 hierarchy */
	char mount[256]; /* mount point, for messages: "/sys/fs/cgroup" or, beside v1, "/sys/fs/cgroup/unified" */
};

/* Finds where v2 is mounted. Returns 0, or -ENOENT when it is not: then the tree is valid but empty. */
int cgroup_tree_open(struct cgroup_tree *tree);
void cgroup_tree_release(struct cgroup_tree *tree);

/*
 * Sets `path` to the path of a cgroup. Returns 0, -ESTALE when the cgroup no longer exists, -EPERM without
 * CAP_DAC_READ_SEARCH (use cgroup_walk() then), or another -errno when the path is not known.
 */
int cgroup_path(const struct cgroup_tree *tree, uint64_t id, struct buf *path);
/*
 * Sets `path` to the path of an open cgroup folder; if it was removed since, to its last path. Returns 0, -EXDEV when
 * it is outside of the tree, or another -errno.
 */
int cgroup_path_of_fd(const struct cgroup_tree *tree, int fd, struct buf *path);
/*
 * Finds a cgroup by "/a/b", "a/b", or a path that starts with the mount point. Returns 0 with its id and its path (in
 * the form above), or -errno: -ENOENT, -EXDEV for a v1 cgroup.
 */
int cgroup_find(const struct cgroup_tree *tree, const char *name, uint64_t *ret_id, struct buf *path);

/* Called for each cgroup, parents first. Returns false to end the walk. */
typedef bool (*cgroup_visitor)(void *context, uint64_t id, const char *path);
/* Visits at most CGROUP_WALK_MAX cgroups. Returns 0 or -errno. */
#define CGROUP_WALK_MAX 65536
int cgroup_walk(const struct cgroup_tree *tree, cgroup_visitor visit, void *context);

/*
 * Reads /proc/PID/cgroup: sets the process's path in v2, or with `v1` its paths in all v1 hierarchies, one per line, as
 * "cpu,cpuacct:/path".
 * The process may have been in another cgroup when it was sampled. Returns 0 or -errno.
 */
int cgroup_of_process(pid_t pid, bool v1, struct buf *ret_paths);
void cgroup_parse_membership(const char *text, bool v1, struct buf *ret_paths);

/* The files that show whether a process's cgroup, or one above it, is frozen. -1: there is no such file. */
struct cgroup_freezer {
	int v1, v2;
};
void cgroup_freezer_open(struct cgroup_freezer *freezer, pid_t pid);
void cgroup_freezer_release(struct cgroup_freezer *freezer);
/* True also while it is being frozen. False when that is not known. */
bool cgroup_is_frozen(const struct cgroup_freezer *freezer);
/* Copies the path in the v1 hierarchy of a controller, or with "" in v2. False when there is none. */
bool cgroup_parse_path(const char *text, const char *controller, char path[CGROUP_PATH_MAX]);

/* True if `path` is `top` or below it. */
bool cgroup_is_below(const char *path, const char *top);
