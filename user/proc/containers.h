/* SPDX-License-Identifier: MIT */
/* The cgroups that samples came from, each looked up once: path, container, names. */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "proc/cgroup.h"
#include "proc/process.h"

/*
 * Reads the names of a container from the state files of root's runtimes. Users chose those names, so any byte may be
 * in them. Nothing outside of the runtimes' own folders is read, even if links in them lead out, and no read blocks.
 */
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

struct container {
	char *path; /* the cgroup's path, as in cgroup.h; "" if it is no longer known */
	struct container_ref ref;
	struct container_names names;
};

struct containers {
	struct cgroup_tree tree;
	const char *root; /* the host's root: "/", or a folder made by a test */
	struct map by_id; /* cgroup id -> struct container, owned */
	struct map by_path; /* hash of "controllers:path" in v1 -> struct container, owned */
	struct map made; /* cgroup id -> path, owned: recently made cgroups */
	uint64_t walked_ns; /* when all cgroups were last listed; that is done when the kernel refuses file handles */
};

/* Cannot fail. Without cgroup v2 no cgroup is ever found. */
void containers_open(struct containers *containers, const char *root);
void containers_release(struct containers *containers);
/* Forgets the lookups when there are many. Each cgroup is looked up again at its next sample. */
void containers_trim(struct containers *containers);
/* Looks up all cgroups that exist, so that those that are removed later are known. */
void containers_scan(struct containers *containers);

/* Records the path of a cgroup that was just made, in case it is removed before it is looked up. */
void containers_made(struct containers *containers, uint64_t cgroup_id, const char *path);

/*
 * Returns the container of the cgroup with this id. Never NULL; valid until the next call. A cgroup that cannot be
 * found has no path and no container: nothing is guessed.
 */
const struct container *containers_get(struct containers *containers, uint64_t cgroup_id);
/* Returns the process's container now by its v1 cgroups, or NULL. For hosts with v1: v2 has only its root. */
const struct container *containers_of_process(struct containers *containers, pid_t pid);

/*
 * Finds the cgroup of the running container with this name, this id, or an id that starts with these 4 or more digits.
 * Returns 0 with its id and path (v2 only), or with a sentence in `why` -ENOENT, -ENOTUNIQ when several containers
 * match, or -ENOMEM.
 */
int containers_find(struct containers *containers, const char *wanted, uint64_t *ret_id, struct buf *ret_path,
		    struct buf *why);

/* Visits all running containers that cgroup v2 has, each once. */
typedef void (*container_visit)(void *context, uint64_t cgroup_id, const struct container *container);
void containers_each(struct containers *containers, container_visit visit, void *context);

/* Appends "namespace/pod/name", "name", the short id, or a plain cgroup's path. Not made safe to print. */
void container_label(const struct container *container, struct buf *out);

/* Which processes of the host are profiled: those of a cgroup or container, and those of a name. */
struct selection {
	const char *comm; /* not owned; NULL for any */
	uint64_t cgroup_id; /* 0 for any */
	struct buf cgroup; /* path of that cgroup */
	size_t found; /* processes that it had when selection_count() looked */
};

void selection_open(struct selection *selection, const char *comm);
void selection_release(struct selection *selection);
/* Finds the cgroup by path, or container id or name; NULL: any. Returns 0, or -errno with a sentence in `why`. */
int selection_find(struct selection *selection, struct containers *containers, const char *cgroup,
		   const char *container, struct buf *why);
/* Makes the choice that BPF makes for each sample. Returns false for a process that cannot be read. */
bool selection_has(const struct selection *selection, const struct process *process);
/* Counts those of the table that it has. If there are none, appends that as a sentence, with a name that is near. */
void selection_count(struct selection *selection, const struct process_table *processes, struct buf *none);
