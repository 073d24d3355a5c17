/* SPDX-License-Identifier: MIT */
/*
 * The cgroup v2 hierarchy: paths by id, ids by path. An id is what BPF takes with a sample, the 64-bit inode number
 * of the cgroup's folder (Linux 5.5); it is never used again, and v2 does not rename, so id and path stay together.
 * Paths are as /proc/PID/cgroup prints them: "/" is the root. They come from whoever may make a cgroup: any byte but
 * newline may be in them.
 */
#ifndef PROC_CGROUP_H
#define PROC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

#define CGROUP_PATH_MAX 4096 /* bytes; longer ones are not known */
#define CGROUP_ROOT_ID 1 /* of every hierarchy, mounted or not */

struct cgroup_tree {
	int fd; /* of the mount's root; -1 when there is no v2 hierarchy */
	char mount[256]; /* where, for messages: "/sys/fs/cgroup" or, beside v1, "/sys/fs/cgroup/unified" */
};

/* Looks where v2 is mounted. -ENOENT when it is not; the tree is valid all the same, and empty. */
int cgroup_tree_open(struct cgroup_tree *tree);
void cgroup_tree_release(struct cgroup_tree *tree);

/*
 * Sets `path`. 0, -ESTALE when the cgroup is gone, -EPERM without CAP_DAC_READ_SEARCH: cgroup_walk() finds it then.
 * Other -errno: not known.
 */
int cgroup_path(const struct cgroup_tree *tree, uint64_t id, struct buf *path);
/* Of an open folder; of one that is gone meanwhile, where it was. 0, -EXDEV outside of the tree, other -errno. */
int cgroup_path_of_fd(const struct cgroup_tree *tree, int fd, struct buf *path);
/* By "/a/b", "a/b" or with the mount in front. 0 with the path as above, or -errno: -ENOENT, -EXDEV for one of v1. */
int cgroup_find(const struct cgroup_tree *tree, const char *name, uint64_t *ret_id, struct buf *path);

/* Called for each cgroup, parents first; false ends the walk. */
typedef bool (*cgroup_visitor)(void *context, uint64_t id, const char *path);
/* At most CGROUP_WALK_MAX cgroups. 0 or -errno. */
#define CGROUP_WALK_MAX 65536
int cgroup_walk(const struct cgroup_tree *tree, cgroup_visitor visit, void *context);

/*
 * Of /proc/PID/cgroup: the path in v2, or with `v1` those of all v1 hierarchies, a line each. Where the process is now,
 * not where it was. 0 or -errno.
 */
int cgroup_of_process(pid_t pid, bool v1, struct buf *ret_paths);
void cgroup_parse_membership(const char *text, bool v1, struct buf *ret_paths);
/* `path` is `top` or below it. */
bool cgroup_is_below(const char *path, const char *top);

#endif
