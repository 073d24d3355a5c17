/* SPDX-License-Identifier: MIT */
#include "proc/containers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define CACHED_MAX 65536 /* cgroups; at this number all are dropped, because a user keeps making new ones */
#define MADE_MAX 4096 /* 1 MB of paths at most; at this number all are dropped */
#define TRIMMED_MAX 4096 /* kept between windows: 3 MB */
#define WALK_AGE_NS NS_PER_SEC
#define DIGITS_MIN 4 /* minimum length of a partial id on the command line */

static const struct container unknown = {.path = ""};

void containers_open(struct containers *containers, const char *root)
{
	*containers = (struct containers){.root = root};
	(void)cgroup_tree_open(&containers->tree);
}

static void container_free(struct container *container)
{
	if (container)
		free(container->path);
	free(container);
}

static void forget_all(struct map *map)
{
	size_t cursor = 0;
	uint64_t key, value;

	while (map_next(map, &cursor, &key, &value))
		container_free((struct container *)(uintptr_t)value);
	map_release(map);
}

static void forget_made(struct map *made)
{
	size_t cursor = 0;
	uint64_t key, value;

	while (map_next(made, &cursor, &key, &value))
		free((char *)(uintptr_t)value);
	map_release(made);
}

void containers_release(struct containers *containers)
{
	forget_all(&containers->by_id);
	forget_all(&containers->by_path);
	forget_made(&containers->made);
	cgroup_tree_release(&containers->tree);
}

void containers_trim(struct containers *containers)
{
	if (containers->by_id.len > TRIMMED_MAX)
		forget_all(&containers->by_id);
	if (containers->by_path.len > TRIMMED_MAX)
		forget_all(&containers->by_path);
}

/* Returns NULL when out of memory. */
static struct container *add(struct containers *containers, struct map *map, uint64_t key, const char *path)
{
	struct container *container = calloc(1, sizeof(*container));

	if (!container)
		return NULL;
	container->path = strdup(path);
	if (container->path) {
		container_parse(path, &container->ref);
		container_names_read(containers->root, path, &container->ref, &container->names);
	}
	if (map->len >= CACHED_MAX)
		forget_all(map);
	if (!container->path || map_put_ptr(map, key, container) < 0) {
		container_free(container);
		return NULL;
	}
	return container;
}

static bool add_visited(void *context, uint64_t id, const char *path)
{
	struct containers *containers = context;

	if (!map_get_ptr(&containers->by_id, id))
		add(containers, &containers->by_id, id, path);
	return true;
}

void containers_scan(struct containers *containers)
{
	containers->walked_ns = clock_monotonic_ns();
	(void)cgroup_walk(&containers->tree, add_visited, containers);
}

void containers_made(struct containers *containers, uint64_t cgroup_id, const char *path)
{
	char *copy;

	if (containers->made.len >= MADE_MAX)
		forget_made(&containers->made);
	copy = map_get_ptr(&containers->made, cgroup_id) ? NULL : strdup(path);
	if (copy && map_put_ptr(&containers->made, cgroup_id, copy) < 0)
		free(copy);
}

/* For a cgroup whose path the kernel no longer has. */
static struct container *add_gone(struct containers *containers, uint64_t cgroup_id)
{
	const char *path = map_get_ptr(&containers->made, cgroup_id);

	return path ? add(containers, &containers->by_id, cgroup_id, path) : NULL;
}

const struct container *containers_get(struct containers *containers, uint64_t cgroup_id)
{
	struct container *known = map_get_ptr(&containers->by_id, cgroup_id);
	BUF(path);
	int err;

	if (known)
		return known;
	err = cgroup_path(&containers->tree, cgroup_id, &path);
	if (!err) {
		known = add(containers, &containers->by_id, cgroup_id, path.data);
	} else if (err != -ESTALE && clock_monotonic_ns() - containers->walked_ns > WALK_AGE_NS) {
		containers_scan(containers);
		known = map_get_ptr(&containers->by_id, cgroup_id);
	}
	if (!known)
		known = add_gone(containers, cgroup_id);
	return known ? known : &unknown;
}

const struct container *containers_of_process(struct containers *containers, pid_t pid)
{
	const struct container *found = NULL;
	BUF(paths);
	char *next;

	(void)cgroup_of_process(pid, true, &paths);
	next = paths.data;
	while (!found && *next) {
		char *path = strsep(&next, "\n");
		uint64_t key = hash_bytes(path, strlen(path), 0);
		struct container *container = map_get_ptr(&containers->by_path, key);

		if (container && strcmp(container->path, path))
			container = NULL; /* another path with the same hash: this one is not cached or used */
		else if (!container)
			container = add(containers, &containers->by_path, key, path);
		if (container && container->ref.kind != CONTAINER_NONE)
			found = container;
		if (!next)
			break;
	}
	return found;
}

/* ---- by name ---- */

struct search {
	struct containers *containers;
	const char *wanted;
	uint64_t id;
	char *path;
	size_t matches;
};

static bool is_meant(const struct container *container, const char *wanted)
{
	size_t len = strlen(wanted);

	if (!strcmp(container->names.name, wanted) || !strcmp(container->ref.id, wanted))
		return true;
	return len >= DIGITS_MIN && container_is_hex(wanted, len) && !strncmp(container->ref.id, wanted, len) &&
	       container_is_hex(container->ref.id, strlen(container->ref.id));
}

/* Returns the container whose own root cgroup this is, not a cgroup inside of it; or NULL. */
static const struct container *container_at(struct containers *containers, uint64_t id, const char *path)
{
	const struct container *container = containers_get(containers, id);
	bool is_root = container->ref.kind != CONTAINER_NONE && !strcmp(container->path, path) &&
		       strlen(path) == container->ref.root_len;

	return is_root ? container : NULL;
}

static bool match_visited(void *context, uint64_t id, const char *path)
{
	struct search *search = context;
	const struct container *container = container_at(search->containers, id, path);

	if (!container || !is_meant(container, search->wanted))
		return true;
	if (search->matches++)
		return true;
	search->id = id;
	search->path = strdup(path);
	return true;
}

int containers_find(struct containers *containers, const char *wanted, uint64_t *ret_id, struct buf *ret_path,
		    struct buf *why)
{
	struct search search = {.containers = containers, .wanted = wanted};
	int err = 0;

	containers_scan(containers);
	(void)cgroup_walk(&containers->tree, match_visited, &search);
	if (!search.matches) {
		err = -ENOENT;
		buf_printf(why, "no container '%s' runs here: give its name or the first digits of its id%s", wanted,
			   containers->tree.fd < 0 ? "; this host has no cgroup v2 to find it by" : "");
	} else if (search.matches > 1) {
		err = -ENOTUNIQ;
		buf_printf(why, "%zu containers are called '%s': give the first digits of an id", search.matches,
			   wanted);
	} else if (!search.path) {
		err = -ENOMEM;
		buf_add_str(why, "out of memory");
	} else {
		*ret_id = search.id;
		buf_clear(ret_path);
		buf_add_str(ret_path, search.path);
	}
	free(search.path);
	return err;
}

/* ---- all of them ---- */

struct each {
	struct containers *containers;
	void (*visit)(void *context, const struct container *container);
	void *context;
};

static bool visit_if_container(void *context, uint64_t id, const char *path)
{
	const struct each *each = context;
	const struct container *container = container_at(each->containers, id, path);

	if (container)
		each->visit(each->context, container);
	return true;
}

void containers_each(struct containers *containers, void (*visit)(void *context, const struct container *container),
		     void *context)
{
	struct each each = {containers, visit, context};

	containers_scan(containers);
	(void)cgroup_walk(&containers->tree, visit_if_container, &each);
}

/* ---- names ---- */

void container_label(const struct container *container, struct buf *out)
{
	const struct container_names *names = &container->names;
	const struct container_ref *ref = &container->ref;

	if (ref->kind == CONTAINER_NONE) {
		buf_add_str(out, container->path[0] ? container->path : "[unknown cgroup]");
		return;
	}
	if (names->pod[0])
		buf_printf(out, "%s/%s", names->namespace, names->pod);
	if (names->pod[0] && names->name[0])
		buf_add_char(out, '/');
	if (names->name[0])
		buf_add_str(out, names->name);
	else if (!names->pod[0])
		buf_printf(out, "%.*s", CONTAINER_SHORT_ID, ref->id);
}
