/* SPDX-License-Identifier: MIT */
/* The cgroups that samples came from, each looked up once: path, container, names. */
#ifndef PROC_CONTAINERS_H
#define PROC_CONTAINERS_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "proc/cgroup.h"
#include "proc/container.h"
#include "proc/container_names.h"

struct container {
	char *path; /* of the cgroup, as cgroup.h has it; "" when it is not known any more */
	struct container_ref ref;
	struct container_names names;
};

struct containers {
	struct cgroup_tree tree;
	const char *root; /* of the host: "/", or a folder that tests made */
	struct map by_id; /* cgroup id -> struct container, owned */
	struct map by_path; /* hash of a v1 path -> the same, owned */
	struct map made; /* cgroup id -> path, owned: of those that were made lately */
	uint64_t walked_ns; /* when all cgroups were last looked through, because handles are refused */
};

/* Works, and knows nothing, where there is no cgroup v2. */
void containers_open(struct containers *containers, const char *root);
void containers_release(struct containers *containers);
/* Forgets those that were looked up, when they are many: each is looked up again when a sample comes from it. */
void containers_trim(struct containers *containers);
/* Takes in all cgroups there are, so that those which end meanwhile are known. */
void containers_scan(struct containers *containers);

/* One was just made; its path is asked for when it is gone before it is looked up. */
void containers_made(struct containers *containers, uint64_t cgroup_id, const char *path);

/*
 * Of the cgroup with this id. Never NULL; valid until the next call. Nothing is guessed: a cgroup that cannot be found
 * has no path and no container.
 */
const struct container *containers_get(struct containers *containers, uint64_t cgroup_id);
/*
 * The container of a process by v1, for hosts where v2 does not tell (all is in its root): where it is now. NULL when
 * it is in none.
 */
const struct container *containers_of_process(struct containers *containers, pid_t pid);

/*
 * The cgroup of the container that runs with this name, id, or at least 4 first digits of its id. 0 with its id and
 * path (only v2); -ENOENT; -ENOTUNIQ when several are meant; in both cases with a sentence in `why`.
 */
int containers_find(struct containers *containers, const char *wanted, uint64_t *ret_id, struct buf *ret_path,
		    struct buf *why);

/* What people call it: "namespace/pod/name", "name", its short id; of a plain cgroup its path. Raw bytes. */
void container_label(const struct container *container, struct buf *out);

#endif
