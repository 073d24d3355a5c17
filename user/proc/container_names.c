/* SPDX-License-Identifier: MIT */
#include "proc/container_names.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/root.h"

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
	int fd = open_folder(root, folder);
	int err;

	if (fd < 0)
		return false;
	buf_clear(text);
	err = root_read(fd, file, (uid_t)-1, FILE_MAX, text);
	close(fd);
	return !err && !text->failed;
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
	int fd = open_folder(root, containerd_folder);
	DIR *dir = fd < 0 ? NULL : fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;
	bool is_there = false;

	for (int i = 0; dir && !is_there && i < NAMESPACES_MAX && (entry = readdir(dir)); i++)
		if (entry->d_name[0] != '.')
			is_there = read_task(root, entry->d_name, id, text, ret);
	if (dir)
		closedir(dir);
	if (fd >= 0)
		close(fd);
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
	if (ref->delegated)
		return;
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
