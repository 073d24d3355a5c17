/* SPDX-License-Identifier: MIT */
/* What names a container: paths of cgroups, lines of /proc/PID/cgroup, the runtimes' JSON. First a path. */
#include "fuzz.h"
#include "proc/cgroup.h"
#include "proc/containers.h"

static void check_ref(const char *path, const struct container_ref *ref)
{
	FUZZ_CHECK(ref->root_len <= strlen(path));
	FUZZ_CHECK((ref->kind == CONTAINER_NONE) == !ref->id[0]);
	FUZZ_CHECK(!strchr(ref->id, '/') && strcmp(ref->id, ".") && strcmp(ref->id, ".."));
	FUZZ_CHECK(memchr(ref->pod_uid, '\0', sizeof(ref->pod_uid)));
}

static void check_names(const struct container_names *names)
{
	FUZZ_CHECK(memchr(names->name, '\0', sizeof(names->name)));
	FUZZ_CHECK(memchr(names->pod, '\0', sizeof(names->pod)));
	FUZZ_CHECK(memchr(names->namespace, '\0', sizeof(names->namespace)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char *path = input_line(&input);
	size_t left = input.left;
	char *text = input_text(&input, left);
	struct container_names names = {0};
	struct container_ref ref;
	struct buf paths;

	container_parse(path, &ref);
	check_ref(path, &ref);
	container_names_docker(text, left, &names);
	container_names_oci(text, left, &names);
	container_names_storage(text, left, ref.id, &names);
	check_names(&names);
	buf_init(&paths);
	cgroup_parse_membership(text, size & 1, &paths);
	FUZZ_CHECK(paths.len <= left);
	buf_release(&paths);
	free(path);
	free(text);
	return 0;
}
