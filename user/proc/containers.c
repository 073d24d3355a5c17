/* SPDX-License-Identifier: MIT */
#include "proc/containers.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/root.h"
#include "base/text.h"

#define FILE_MAX (4u << 20) /* bytes of a state file; containers.json lists all containers of a host */
#define NAMESPACES_MAX 64 /* most containerd namespaces that are searched */

static const char docker_folder[] = "var/lib/docker/containers";
static const char containerd_folder[] = "run/containerd/io.containerd.runtime.v2.task";
static const char *const storage_folders[] = {
	"var/lib/containers/storage/overlay-containers",
	"var/lib/containers/storage/vfs-containers",
};
/* The folders where podman and CRI-O write the configuration for the OCI runtime. */
static const char *const bundle_folders[] = {
	"run/containers/storage/overlay-containers",
	"var/lib/containers/storage/overlay-containers",
	"run/containers/storage/vfs-containers",
	"var/lib/containers/storage/vfs-containers",
};

/* ---- parsers ---- */

static void copy_text(char *ret, const json_t *value)
{
	if (json_is_string(value))
		snprintf(ret, CONTAINER_NAME_MAX + 1, "%s", json_string_value(value));
}

/* jansson limits the nesting and refuses ill-formed UTF-8, NUL in strings, and anything after the value. */
static json_t *parse(const char *json, size_t len)
{
	json_error_t error;

	return json_loadb(json, len, 0, &error);
}

/* Each runtime has its own key for the same label. */
static void copy_labels(const json_t *labels, struct container_names *ret)
{
	static const char *const names[] = {"io.kubernetes.container.name", "io.kubernetes.cri.container-name",
					    "nerdctl/name"};
	static const char *const pods[] = {"io.kubernetes.pod.name", "io.kubernetes.cri.sandbox-name"};
	static const char *const namespaces[] = {"io.kubernetes.pod.namespace", "io.kubernetes.cri.sandbox-namespace"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		copy_text(ret->name, json_object_get(labels, names[i]));
	for (size_t i = 0; i < sizeof(pods) / sizeof(*pods); i++)
		copy_text(ret->pod, json_object_get(labels, pods[i]));
	for (size_t i = 0; i < sizeof(namespaces) / sizeof(*namespaces); i++)
		copy_text(ret->namespace, json_object_get(labels, namespaces[i]));
}

/* Docker's names have a leading slash. Kubernetes' is "/k8s_app_pod_…"; the label's short one replaces that. */
void container_names_docker(const char *json, size_t len, struct container_names *ret)
{
	json_t *config = parse(json, len);
	const json_t *name = json_object_get(config, "Name");

	copy_text(ret->name, name);
	if (ret->name[0] == '/')
		memmove(ret->name, ret->name + 1, strlen(ret->name));
	copy_labels(json_object_get(json_object_get(config, "Config"), "Labels"), ret);
	json_decref(config);
}

void container_names_oci(const char *json, size_t len, struct container_names *ret)
{
	json_t *config = parse(json, len);

	copy_labels(json_object_get(config, "annotations"), ret);
	json_decref(config);
}

void container_names_storage(const char *json, size_t len, const char *id, struct container_names *ret)
{
	json_t *containers = parse(json, len);
	const json_t *container;
	size_t i;

	json_array_foreach(containers, i, container) {
		const char *theirs = json_string_value(json_object_get(container, "id"));

		if (theirs && !strcmp(theirs, id))
			copy_text(ret->name, json_array_get(json_object_get(container, "names"), 0));
	}
	json_decref(containers);
}

/* ---- files ---- */

/* The folder itself may be a link, because administrators move such folders. Paths below it must not lead out of it. */
static int open_folder(const char *root, const char *folder)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", root, folder) >= (int)sizeof(path))
		return -1;
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Returns true when the file was read. */
static bool read_state(const char *root, const char *folder, const char *file, struct buf *text)
{
	IO_FD(fd) = open_folder(root, folder);

	buf_clear(text);
	return fd >= 0 && !root_read(fd, file, (uid_t)-1, FILE_MAX, text);
}

static bool read_docker(const char *root, const char *id, struct buf *text, struct container_names *ret)
{
	char file[CONTAINER_ID_MAX + 32];

	snprintf(file, sizeof(file), "%s/config.v2.json", id);
	if (!read_state(root, docker_folder, file, text))
		return false;
	container_names_docker(text->data, text->len, ret);
	return true;
}

static bool read_task(const char *root, const char *namespace, const char *id, struct buf *text,
		      struct container_names *ret)
{
	char file[2 * CONTAINER_ID_MAX + 32];

	snprintf(file, sizeof(file), "%s/%s/config.json", namespace, id);
	if (!read_state(root, containerd_folder, file, text))
		return false;
	container_names_oci(text->data, text->len, ret);
	return true;
}

/* Tries all containerd namespaces, as the id shows none: "k8s.io", "default", or what ctr -n was given. */
static bool read_containerd(const char *root, const char *id, struct buf *text, struct container_names *ret)
{
	IO_FD(fd) = open_folder(root, containerd_folder);
	DIR *dir = fd < 0 ? NULL : fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;
	bool is_there = false;

	for (int i = 0; dir && !is_there && i < NAMESPACES_MAX && (entry = readdir(dir)); i++)
		if (entry->d_name[0] != '.')
			is_there = read_task(root, entry->d_name, id, text, ret);
	if (dir)
		closedir(dir);
	return is_there;
}

static bool read_storage(const char *root, const char *id, struct buf *text, struct container_names *ret)
{
	char file[CONTAINER_ID_MAX + 32];
	bool is_there = false;

	for (size_t i = 0; i < sizeof(storage_folders) / sizeof(*storage_folders); i++)
		if (read_state(root, storage_folders[i], "containers.json", text))
			container_names_storage(text->data, text->len, id, ret);
	snprintf(file, sizeof(file), "%s/userdata/config.json", id);
	for (size_t i = 0; !is_there && i < sizeof(bundle_folders) / sizeof(*bundle_folders); i++)
		is_there = read_state(root, bundle_folders[i], file, text);
	if (is_there)
		container_names_oci(text->data, text->len, ret);
	return is_there || ret->name[0];
}

/* Tries a path like "/default/my-id": containerd's own client uses namespace and id, and both can be any word. */
static void try_containerd(const char *root, const char *path, struct container_ref *ref, struct buf *text,
			   struct container_names *ret)
{
	const char *namespace = path + strspn(path, "/");
	size_t namespace_len = strcspn(namespace, "/");
	const char *id = namespace + namespace_len + strspn(namespace + namespace_len, "/");
	size_t id_len = strcspn(id, "/");
	char namespace_text[CONTAINER_ID_MAX + 1], id_text[CONTAINER_ID_MAX + 1];

	if (!isalnum((unsigned char)namespace[0]) || !isalnum((unsigned char)id[0]) ||
	    namespace_len > CONTAINER_ID_MAX || id_len > CONTAINER_ID_MAX)
		return;
	snprintf(namespace_text, sizeof(namespace_text), "%.*s", (int)namespace_len, namespace);
	snprintf(id_text, sizeof(id_text), "%.*s", (int)id_len, id);
	if (!read_task(root, namespace_text, id_text, text, ret))
		return;
	*ref = (struct container_ref){.kind = CONTAINER_CONTAINERD, .root_len = (size_t)(id + id_len - path)};
	memcpy(ref->id, id_text, id_len + 1);
}

void container_names_read(const char *root, const char *path, struct container_ref *ref, struct container_names *ret)
{
	BUF(text);

	*ret = (struct container_names){0};
	if (ref->kind == CONTAINER_NONE)
		try_containerd(root, path, ref, &text, ret);
	else if (ref->kind == CONTAINER_DOCKER)
		read_docker(root, ref->id, &text, ret);
	else if (ref->kind == CONTAINER_CONTAINERD)
		read_containerd(root, ref->id, &text, ret);
	else if (ref->kind == CONTAINER_PODMAN || ref->kind == CONTAINER_CRIO)
		read_storage(root, ref->id, &text, ret);
	else if (ref->kind == CONTAINER_KUBERNETES)
		(void)(read_containerd(root, ref->id, &text, ret) || read_docker(root, ref->id, &text, ret) ||
		       read_storage(root, ref->id, &text, ret));
	else if (ref->kind == CONTAINER_OTHER)
		(void)(read_docker(root, ref->id, &text, ret) || read_containerd(root, ref->id, &text, ret));
	else
		snprintf(ret->name, sizeof(ret->name), "%s", ref->id); /* LXC and nspawn have only this name */
}

#define CACHED_MAX 8192 /* cgroups: 8 MB; at this number all are dropped, because a user keeps making new ones */
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

static void container_free(void *item)
{
	struct container *container = item;

	free(container->path);
	free(container);
}

/* Empties a map of what it owns, if it has at least `many`. */
static void trim(struct map *map, void (*free_one)(void *item), size_t many)
{
	size_t cursor = 0;
	uint64_t key, value;

	if (map->len < many)
		return;
	while (map_next(map, &cursor, &key, &value))
		free_one((void *)(uintptr_t)value);
	map_release(map);
}

void containers_release(struct containers *containers)
{
	trim(&containers->by_id, container_free, 0);
	trim(&containers->by_path, container_free, 0);
	trim(&containers->made, free, 0);
	cgroup_tree_release(&containers->tree);
}

void containers_trim(struct containers *containers)
{
	trim(&containers->by_id, container_free, TRIMMED_MAX + 1);
	trim(&containers->by_path, container_free, TRIMMED_MAX + 1);
}

/* The container is what root's part of the path says. Returns NULL when out of memory. */
static struct container *add(struct containers *containers, struct map *map, uint64_t key, const char *mount,
			     const char *path)
{
	struct container *container = calloc(1, sizeof(*container));
	BUF(trusted);

	if (!container)
		return NULL;
	container->path = strdup(path);
	buf_add(&trusted, path, cgroup_trusted_len(mount, path));
	container_parse(trusted.data, &container->ref);
	container_names_read(containers->root, trusted.data, &container->ref, &container->names);
	trim(map, container_free, CACHED_MAX);
	if (!container->path || trusted.failed || map_put_ptr(map, key, container) < 0) {
		container_free(container);
		return NULL;
	}
	return container;
}

static bool add_visited(void *context, uint64_t id, const char *path)
{
	struct containers *containers = context;

	if (!map_get_ptr(&containers->by_id, id))
		add(containers, &containers->by_id, id, containers->tree.mount, path);
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

	trim(&containers->made, free, MADE_MAX);
	copy = map_get_ptr(&containers->made, cgroup_id) ? NULL : strdup(path);
	if (copy && map_put_ptr(&containers->made, cgroup_id, copy) < 0)
		free(copy);
}

const struct container *containers_get(struct containers *containers, uint64_t cgroup_id)
{
	struct container *known = map_get_ptr(&containers->by_id, cgroup_id);
	const char *made = map_get_ptr(&containers->made, cgroup_id);
	BUF(path);
	int err;

	if (known)
		return known;
	err = cgroup_path(&containers->tree, cgroup_id, &path);
	if (!err) {
		known = add(containers, &containers->by_id, cgroup_id, containers->tree.mount, path.data);
	} else if (err != -ESTALE && clock_monotonic_ns() - containers->walked_ns > WALK_AGE_NS) {
		containers_scan(containers);
		known = map_get_ptr(&containers->by_id, cgroup_id);
	}
	if (!known && made) /* the kernel no longer has its path */
		known = add(containers, &containers->by_id, cgroup_id, containers->tree.mount, made);
	return known ? known : &unknown;
}

/* `line`: "cpu,cpuacct:/path" or "name=systemd:/path". */
static struct container *add_v1(struct containers *containers, uint64_t key, const char *line)
{
	const char *name = strncmp(line, "name=", 5) ? line : line + 5;
	char mount[NAME_MAX + sizeof("/sys/fs/cgroup/")];

	snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%.*s", (int)strcspn(name, ":"), name);
	return add(containers, &containers->by_path, key, mount, strchr(line, ':') + 1);
}

const struct container *containers_of_process(struct containers *containers, pid_t pid)
{
	const struct container *found = NULL;
	BUF(paths);
	char *next;

	(void)cgroup_of_process(pid, true, &paths);
	next = paths.data;
	while (!found && *next) {
		char *line = strsep(&next, "\n");
		uint64_t key = hash_bytes(line, strlen(line), 0);
		struct container *container = map_get_ptr(&containers->by_path, key);

		if (container && strcmp(container->path, strchr(line, ':') + 1))
			container = NULL; /* another path with the same hash: this one is not cached or used */
		else if (!container)
			container = add_v1(containers, key, line);
		if (container && container->ref.kind != CONTAINER_NONE)
			found = container;
		if (!next)
			break;
	}
	return found;
}

struct search {
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

static void match(void *context, uint64_t id, const struct container *container)
{
	struct search *search = context;

	if (is_meant(container, search->wanted) && !search->matches++) {
		search->id = id;
		search->path = strdup(container->path);
	}
}

int containers_find(struct containers *containers, const char *wanted, uint64_t *ret_id, struct buf *ret_path,
		    struct buf *why)
{
	struct search search = {.wanted = wanted};
	int err = 0;

	containers_each(containers, match, &search);
	if (!search.matches) {
		err = -ENOENT;
		buf_printf(why,
			   "no container '%s' runs here: give its name or the first digits of its id, or --cgroup PATH "
			   "if a user or a container runs it%s",
			   wanted, containers->tree.fd < 0 ? "; this host has no cgroup v2 to find it by" : "");
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

struct each {
	struct containers *containers;
	container_visit visit;
	void *context;
};

static bool visit_if_container(void *context, uint64_t id, const char *path)
{
	const struct each *each = context;
	const struct container *container = container_at(each->containers, id, path);

	if (container)
		each->visit(each->context, id, container);
	return true;
}

void containers_each(struct containers *containers, container_visit visit, void *context)
{
	struct each each = {containers, visit, context};

	containers_scan(containers);
	(void)cgroup_walk(&containers->tree, visit_if_container, &each);
}

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

void selection_open(struct selection *selection, const char *comm)
{
	*selection = (struct selection){.comm = comm};
	buf_init(&selection->cgroup);
}

void selection_release(struct selection *selection)
{
	buf_release(&selection->cgroup);
}

int selection_find(struct selection *selection, struct containers *containers, const char *cgroup,
		   const char *container, struct buf *why)
{
	const struct cgroup_tree *tree = &containers->tree;
	int err = 0;

	if (container)
		err = containers_find(containers, container, &selection->cgroup_id, &selection->cgroup, why);
	else if (cgroup)
		err = cgroup_find(tree, cgroup, &selection->cgroup_id, &selection->cgroup);
	if (!err || why->len)
		return err;
	if (tree->fd < 0)
		buf_printf(why, "--cgroup needs cgroup v2, which is not mounted on /sys/fs/cgroup or .../unified");
	else
		buf_printf(why, "no cgroup '%s' below %s: %s; systemd-cgls lists all", cgroup, tree->mount,
			   err == -EXDEV ? "it is not in cgroup v2" : strerror(-err));
	return err;
}

bool selection_has(const struct selection *selection, const struct process *process)
{
	BUF(path);

	if (selection->comm && strncmp(process->comm, selection->comm, sizeof(process->comm) - 1) != 0)
		return false;
	if (!selection->cgroup_id)
		return true;
	return !cgroup_of_process(process->pid, false, &path) && cgroup_is_below(path.data, selection->cgroup.data);
}

void selection_count(struct selection *selection, const struct process_table *processes, struct buf *none)
{
	struct text_guess guess = {.typed = selection->comm};

	selection->found = 0;
	for (size_t i = 0; i < processes->all.len; i++) {
		const struct process *process = processes->all.items[i];

		selection->found += selection_has(selection, process);
		if (selection->comm)
			text_guess(&guess, process->comm);
	}
	if (selection->found)
		return;
	buf_printf(none, "no process%s%s%s%s%s", selection->comm ? " of the name '" : "",
		   selection->comm ? selection->comm : "", selection->comm ? "'" : "",
		   selection->cgroup_id ? " in the cgroup " : "", selection->cgroup_id ? selection->cgroup.data : "");
	if (guess.word[0])
		buf_printf(none, " (did you mean %s?)", guess.word);
}
