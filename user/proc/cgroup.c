/* SPDX-License-Identifier: MIT */
#include "proc/cgroup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/io.h"

#define FILE_KERNFS 0xfe /* FILEID_KERNFS, include/linux/exportfs.h: the file handle is the id */
#define MAX_DEPTH 64 /* depth of folders in a walk; a hostile owner could nest them without end */
#define MEMBERSHIP_MAX 65536 /* bytes of /proc/PID/cgroup */

/* ---- the hierarchy ---- */

/* These cover systemd's three layouts: unified, hybrid, and legacy, where v2 is not mounted or is somewhere else. */
int cgroup_tree_open(struct cgroup_tree *tree)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs fs;

	*tree = (struct cgroup_tree){.fd = -1};
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (statfs(places[i], &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		tree->fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (tree->fd < 0)
			return -errno;
		snprintf(tree->mount, sizeof(tree->mount), "%s", places[i]);
		return 0;
	}
	return -ENOENT;
}

void cgroup_tree_release(struct cgroup_tree *tree)
{
	io_close(&tree->fd);
}

static void set_path(struct buf *path, const char *text)
{
	buf_clear(path);
	buf_add_str(path, *text ? text : "/");
}

int cgroup_path_of_fd(const struct cgroup_tree *tree, int fd, struct buf *path)
{
	static const char deleted[] = " (deleted)";
	char link[32], text[CGROUP_PATH_MAX];
	size_t mount_len = strlen(tree->mount);
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, text, sizeof(text) - 1);
	if (len < 0)
		return -errno;
	if (len == sizeof(text) - 1)
		return -ENAMETOOLONG;
	text[len] = '\0';
	if (strncmp(text, tree->mount, mount_len) || (text[mount_len] && text[mount_len] != '/'))
		return -EXDEV;
	/* A live cgroup's name may end like this too. A removed one has no files; its link count stays 2. */
	if (len > (ssize_t)strlen(deleted) && !strcmp(text + len - strlen(deleted), deleted) &&
	    faccessat(fd, "cgroup.procs", F_OK, 0) < 0)
		text[len - (ssize_t)strlen(deleted)] = '\0';
	set_path(path, text + mount_len);
	return 0;
}

int cgroup_path(const struct cgroup_tree *tree, uint64_t id, struct buf *path)
{
	struct {
		struct file_handle head;
		uint64_t id;
	} handle = {.head = {.handle_bytes = sizeof(handle.id), .handle_type = FILE_KERNFS}, .id = id};
	IO_FD(fd) = -1;

	if (id == CGROUP_ROOT_ID) {
		set_path(path, "/");
		return 0;
	}
	if (tree->fd < 0)
		return -ENOENT;
	memcpy(handle.head.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(tree->fd, &handle.head, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : cgroup_path_of_fd(tree, fd, path);
}

static int find_below(const struct cgroup_tree *tree, const char *name, uint64_t *ret_id, struct buf *path)
{
	IO_FD(fd) = openat(tree->fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;
	struct stat st;
	int err;

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return -EXDEV;
	err = cgroup_path_of_fd(tree, fd, path);
	if (!err)
		*ret_id = st.st_ino;
	return err;
}

int cgroup_find(const struct cgroup_tree *tree, const char *name, uint64_t *ret_id, struct buf *path)
{
	int err = -ENOENT, below = 0;

	if (tree->fd < 0)
		return -ENOENT;
	if (*name == '/') /* perhaps a path that starts with the mount point; or the root's own */
		err = find_below(tree, name, ret_id, path);
	if (err) {
		name += strspn(name, "/");
		below = find_below(tree, *name ? name : ".", ret_id, path);
	}
	return below && err == -EXDEV ? err : below;
}

struct tree_walk {
	cgroup_visitor visit;
	void *context;
	struct buf path;
	size_t left; /* number of cgroups that may still be visited */
};

static int walk_folder(struct tree_walk *walk, int fd, int depth);

static int walk_child(struct tree_walk *walk, int fd, const char *name, int depth)
{
	size_t len = walk->path.len;
	int child = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err = 0;

	if (child < 0)
		return 0; /* removed since it was listed, or not accessible */
	buf_add_char(&walk->path, '/');
	buf_add_str(&walk->path, name);
	if (walk->path.len < CGROUP_PATH_MAX && !walk->path.failed)
		err = walk_folder(walk, child, depth + 1);
	else
		close(child);
	buf_cut(&walk->path, len);
	return err;
}

/* Takes ownership of fd. Returns 1 to end the walk. */
static int walk_folder(struct tree_walk *walk, int fd, int depth)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	struct stat st;
	int err = 0;

	if (!dir || fstat(fd, &st) < 0) {
		dir ? closedir(dir) : close(fd);
		return 0;
	}
	if (!walk->left-- || !walk->visit(walk->context, st.st_ino, walk->path.len ? walk->path.data : "/"))
		err = 1;
	while (!err && depth < MAX_DEPTH && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			err = walk_child(walk, fd, entry->d_name, depth);
	closedir(dir);
	return err;
}

int cgroup_walk(const struct cgroup_tree *tree, cgroup_visitor visit, void *context)
{
	struct tree_walk walk = {.visit = visit, .context = context, .left = CGROUP_WALK_MAX};
	int fd = tree->fd < 0 ? -1 : openat(tree->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return tree->fd < 0 ? -ENOENT : -errno;
	buf_init(&walk.path);
	walk_folder(&walk, fd, 0);
	buf_release(&walk.path);
	return 0;
}

/* The line of v2 is "0::/path". Lines of v1 are "3:cpu,cpuacct:/path" or "1:name=systemd:/path". */
void cgroup_parse_membership(const char *text, bool v1, struct buf *ret_paths)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n");
		bool is_v1 = strncmp(line, "0::", 3) != 0;
		const char *colon = memchr(line, ':', len);
		const char *path = colon ? memchr(colon + 1, ':', len - (size_t)(colon + 1 - line)) : NULL;

		if (!path || path[1] != '/' || is_v1 != v1 || line + len - path > CGROUP_PATH_MAX)
			continue;
		if (ret_paths->len)
			buf_add_char(ret_paths, '\n');
		path = v1 ? colon : path;
		buf_add(ret_paths, path + 1, (size_t)(line + len - (path + 1)));
	}
}

static int read_membership(pid_t pid, struct buf *text)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	return io_read_file(AT_FDCWD, path, MEMBERSHIP_MAX, text);
}

int cgroup_of_process(pid_t pid, bool v1, struct buf *ret_paths)
{
	BUF(text);
	int err = read_membership(pid, &text);

	if (!err)
		cgroup_parse_membership(text.data, v1, ret_paths);
	return err;
}

/* Returns true if a list like "cpu,cpuacct" has this controller. */
static bool lists(const char *list, size_t len, const char *controller)
{
	size_t bytes = strlen(controller);

	for (size_t at = 0, next; at <= len; at = next + 1) {
		next = at + strcspn(list + at, ",:");
		if (next - at == bytes && !memcmp(list + at, controller, bytes))
			return true;
	}
	return false;
}

bool cgroup_parse_path(const char *text, const char *controller, char path[CGROUP_PATH_MAX])
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n");
		const char *list = memchr(line, ':', len);
		const char *end = list ? memchr(list + 1, ':', len - (size_t)(list + 1 - line)) : NULL;
		size_t bytes = end ? (size_t)(line + len - (end + 1)) : 0;

		if (!end || end[1] != '/' || bytes >= CGROUP_PATH_MAX ||
		    !lists(list + 1, (size_t)(end - (list + 1)), controller))
			continue;
		memcpy(path, end + 1, bytes);
		path[bytes] = '\0';
		return true;
	}
	return false;
}

static int open_below(const char *mount, const char *membership, const char *controller, const char *name)
{
	char group[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX + 320];

	if (!cgroup_parse_path(membership, controller, group))
		return -1;
	snprintf(path, sizeof(path), "%s%s/%s", mount, group, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void cgroup_freezer_open(struct cgroup_freezer *freezer, pid_t pid)
{
	struct cgroup_tree tree;
	BUF(text);

	*freezer = (struct cgroup_freezer){-1, -1};
	if (!read_membership(pid, &text)) {
		freezer->v1 = open_below("/sys/fs/cgroup/freezer", text.data, "freezer", "freezer.state");
		if (!cgroup_tree_open(&tree))
			freezer->v2 = open_below(tree.mount, text.data, "", "cgroup.events");
		cgroup_tree_release(&tree);
	}
}

void cgroup_freezer_release(struct cgroup_freezer *freezer)
{
	io_close(&freezer->v1);
	io_close(&freezer->v2);
}

static bool file_says(int fd, const char *what)
{
	char text[128];
	ssize_t len = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = '\0';
	return strstr(text, what);
}

bool cgroup_is_frozen(const struct cgroup_freezer *freezer)
{
	return file_says(freezer->v1, "FROZEN") || file_says(freezer->v1, "FREEZING") ||
	       file_says(freezer->v2, "frozen 1");
}

static bool is_trusted(int folder)
{
	struct stat st;

	return !fstat(folder, &st) && (!st.st_uid || st.st_uid == geteuid()) && !(st.st_mode & S_IWOTH) &&
	       (!(st.st_mode & S_IWGRP) || !st.st_gid);
}

size_t cgroup_trusted_len(const char *mount, const char *path)
{
	IO_FD(folder) = open(mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *at = path + strspn(path, "/");

	/* ".." leads out of our cgroup namespace. */
	while (*at && strncmp(at, "..", 2) && folder >= 0 && is_trusted(folder)) {
		size_t len = strcspn(at, "/");
		char name[NAME_MAX + 1];
		int below;

		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		below = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		io_close(&folder);
		folder = below;
		at += len + strspn(at + len, "/");
	}
	return (size_t)(at - path);
}

bool cgroup_is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	while (len && top[len - 1] == '/')
		len--;
	return !strncmp(path, top, len) && (!path[len] || path[len] == '/');
}

#define HEX_ID 64 /* length of an id of Docker, containerd, CRI-O and podman */

/* One component of the path, without ".scope", and the component above it. */
struct part {
	const char *text;
	size_t len;
	const char *parent;
	size_t parent_len;
};

/* What the components read so far have shown. */
struct walk {
	struct container_ref *ref;
	const char *path;
	bool in_pods; /* inside Kubernetes' cgroups */
};

static bool is_text(const char *text, size_t len, const char *want)
{
	return strlen(want) == len && memcmp(text, want, len) == 0;
}

static bool starts_with(const char *text, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *text, size_t len, const char *suffix)
{
	return len >= strlen(suffix) && memcmp(text + len - strlen(suffix), suffix, strlen(suffix)) == 0;
}

bool container_is_hex(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return len > 0;
}

const char *container_kind_name(enum container_kind kind)
{
	static const char *const names[CONTAINER_KIND_MAX] = {
		[CONTAINER_NONE] = "",		   [CONTAINER_DOCKER] = "docker",
		[CONTAINER_CONTAINERD] = "containerd", [CONTAINER_CRIO] = "cri-o",
		[CONTAINER_PODMAN] = "podman",	   [CONTAINER_KUBERNETES] = "kubernetes",
		[CONTAINER_NSPAWN] = "systemd-nspawn", [CONTAINER_LXC] = "lxc",
		[CONTAINER_OTHER] = "container",
	};

	return kind < CONTAINER_KIND_MAX ? names[kind] : "";
}

/* Stores the id, unless it cannot be a file name, and the end of the container's root cgroup in the path. */
static void found(struct walk *walk, enum container_kind kind, const char *id, size_t len, const char *end)
{
	struct container_ref *ref = walk->ref;

	if (!len || len > CONTAINER_ID_MAX || is_text(id, len, ".") || is_text(id, len, ".."))
		return;
	ref->kind = kind;
	memcpy(ref->id, id, len);
	ref->id[len] = '\0';
	ref->root_len = (size_t)(end - walk->path);
}

/* systemd writes a character that is not allowed in a unit's name as \x2d. */
static size_t unescape(const char *text, size_t len, char *ret)
{
	size_t out = 0;
	unsigned int code;

	for (size_t i = 0; i < len && out < CONTAINER_ID_MAX; i++) {
		if (len - i >= 4 && memcmp(text + i, "\\x", 2) == 0 && container_is_hex(text + i + 2, 2) &&
		    sscanf(text + i + 2, "%2x", &code) == 1 && code && code != '/') {
			ret[out++] = (char)code;
			i += 3;
		} else {
			ret[out++] = text[i];
		}
	}
	return out;
}

/* ---- Kubernetes ---- */

/*
 * Reads the pod's uid: "pod<uid>" with the cgroupfs driver, "kubepods-burstable-pod<uid>.slice" with the systemd
 * driver, which writes '_' for the '-' of a UUID. Guaranteed pods are directly below the root, without a class.
 */
static void take_pod(struct walk *walk, const char *text, size_t len)
{
	const char *slice = memmem(text, len, ".slice", strlen(".slice"));
	size_t start = 0;

	walk->in_pods |= memmem(text, len, "kubepods", strlen("kubepods")) != NULL;
	if (!walk->in_pods)
		return;
	if (slice)
		len = (size_t)(slice - text);
	if (!starts_with(text, len, "pod")) {
		for (start = len; start > 0 && !starts_with(text + start, len - start, "-pod"); start--)
			;
		start += start > 0;
	}
	if (!starts_with(text + start, len - start, "pod"))
		return;
	start += strlen("pod");
	if (start == len || len - start > CONTAINER_UID_MAX)
		return;
	for (size_t i = 0; i < len - start; i++)
		walk->ref->pod_uid[i] = text[start + i] == '_' ? '-' : text[start + i];
	walk->ref->pod_uid[len - start] = '\0';
}

/* ---- runtimes with ids of 64 digits ---- */

static const struct {
	const char *prefix;
	enum container_kind kind;
} prefixes[] = {
	{"docker", CONTAINER_DOCKER},	      {"cri-containerd", CONTAINER_CONTAINERD},
	{"nerdctl", CONTAINER_CONTAINERD},    {"crio", CONTAINER_CRIO},
	{"libpod", CONTAINER_PODMAN},	      {"libpod-payload", CONTAINER_PODMAN},
	{"crio-conmon", CONTAINER_NONE}, /* these monitor a container from outside */
	{"libpod-conmon", CONTAINER_NONE},
};

static enum container_kind kind_of_prefix(const char *prefix, size_t len)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (is_text(prefix, len, prefixes[i].prefix))
			return prefixes[i].kind;
	return CONTAINER_OTHER;
}

/* An id without prefix: the component above decides. Below libpod_parent it is that of a podman pod. */
static enum container_kind kind_of_parent(const struct walk *walk, const struct part *part)
{
	if (walk->in_pods)
		return CONTAINER_KUBERNETES;
	if (is_text(part->parent, part->parent_len, "docker"))
		return CONTAINER_DOCKER;
	return is_text(part->parent, part->parent_len, "libpod_parent") ? CONTAINER_NONE : CONTAINER_OTHER;
}

/* Finds "<id>", "docker-<id>.scope", "kubepods-…-pod<uid>.slice:cri-containerd:<id>". False: there is no id. */
static bool take_hex(struct walk *walk, const struct part *part, const char *end)
{
	const char *id = part->text + part->len - HEX_ID;
	enum container_kind kind;
	const char *colon;

	if (part->len < HEX_ID || !container_is_hex(id, HEX_ID))
		return false;
	if (part->len == HEX_ID) {
		kind = kind_of_parent(walk, part);
	} else if (id[-1] == '-') {
		kind = kind_of_prefix(part->text, part->len - HEX_ID - 1);
	} else if (id[-1] == ':') {
		colon = memrchr(part->text, ':', part->len - HEX_ID - 1);
		colon = colon ? colon + 1 : part->text;
		kind = kind_of_prefix(colon, (size_t)(id - 1 - colon));
	} else {
		return false;
	}
	if (kind != CONTAINER_NONE)
		found(walk, kind, id, HEX_ID, end);
	return true;
}

/* ---- runtimes with names ---- */

static void take_named(struct walk *walk, const struct part *part, bool is_scope, const char *end)
{
	static const char nspawn[] = "systemd-nspawn@", service[] = ".service", machine[] = "machine-",
			  payload[] = "lxc.payload.", virtual[] = "machine-qemu\\x2d";
	char name[CONTAINER_ID_MAX + 1];
	const char *text = part->text;
	size_t len = part->len;

	if (starts_with(text, len, nspawn) && ends_with(text, len, service))
		found(walk, CONTAINER_NSPAWN, name,
		      unescape(text + strlen(nspawn), len - strlen(nspawn) - strlen(service), name), end);
	else if (is_scope && starts_with(text, len, machine) && !starts_with(text, len, virtual))
		found(walk, CONTAINER_NSPAWN, name, unescape(text + strlen(machine), len - strlen(machine), name), end);
	else if (starts_with(text, len, payload))
		found(walk, CONTAINER_LXC, text + strlen(payload), len - strlen(payload), end);
	else if (is_text(part->parent, part->parent_len, "lxc") ||
		 is_text(part->parent, part->parent_len, "lxc.payload"))
		found(walk, CONTAINER_LXC, text, len, end);
}

static void take_part(struct walk *walk, struct part *part)
{
	const char *end = part->text + part->len;
	bool is_scope = ends_with(part->text, part->len, ".scope");

	take_pod(walk, part->text, part->len);
	if (is_scope)
		part->len -= strlen(".scope");
	if (!take_hex(walk, part, end))
		take_named(walk, part, is_scope, end);
}

void container_parse(const char *path, struct container_ref *ret)
{
	struct walk walk = {.ref = ret, .path = path};
	struct part before = {.text = ""};

	*ret = (struct container_ref){0};
	for (const char *at = path + strspn(path, "/"); *at && !ret->kind; at += strspn(at, "/")) {
		struct part part = {at, strcspn(at, "/"), before.text, before.len};

		before = part;
		at += part.len;
		take_part(&walk, &part);
	}
	if (ret->kind == CONTAINER_NONE)
		*ret = (struct container_ref){0};
}
