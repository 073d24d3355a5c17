/* SPDX-License-Identifier: MIT */
#include "proc/container.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

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

/* ---- results ---- */

/* Stores the id, unless it cannot be a file name, and the end of the container's root cgroup in the path. */
static void found(struct walk *walk, enum container_kind kind, const char *id, size_t len, const char *end)
{
	struct container_ref *ref = walk->ref;

	if (!len || len > CONTAINER_ID_MAX || is_text(id, len, ".") || is_text(id, len, ".."))
		return;
	ref->delegated |= ref->kind != CONTAINER_NONE;
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
	if (is_text(part->parent, part->parent_len, "libpod_parent"))
		return CONTAINER_NONE;
	return CONTAINER_OTHER;
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
	/* user@1000.service is a user's own service manager. That user can make any cgroups below it. */
	if (starts_with(part->text, part->len, "user@"))
		walk->ref->delegated = true;
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
	for (const char *at = path + strspn(path, "/"); *at; at += strspn(at, "/")) {
		struct part part = {at, strcspn(at, "/"), before.text, before.len};

		before = part;
		at += part.len;
		take_part(&walk, &part);
	}
	if (ret->kind == CONTAINER_NONE)
		*ret = (struct container_ref){0};
}
