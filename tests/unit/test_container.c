/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/containers.h"

#define ID "4f2a9c0d1e3b5a6978c0d1e2f3a4b5c6d7e8f90123456789abcdef0123456789"
#define ID2 "a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90"
#define UID "0b5d7c3a-8a44-4f0e-9d7e-2f3c1b6a9e10"
#define UID_ "0b5d7c3a_8a44_4f0e_9d7e_2f3c1b6a9e10"
#define USER "/user.slice/user-1000.slice/user@1000.service"
#define PODS "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"
#define GUARANTEED "/kubepods.slice/kubepods-pod" UID_ ".slice"

/* ---- paths ---- */

struct row {
	const char *path;
	enum container_kind kind;
	const char *id;
	const char *pod_uid;
	const char *below; /* the part of the path below the container's own root */
};

static const struct row rows[] = {
	/* Docker: cgroupfs, systemd, rootless, in Docker, with systemd inside */
	{"/docker/" ID, CONTAINER_DOCKER, ID, "", ""},
	{"/system.slice/docker-" ID ".scope", CONTAINER_DOCKER, ID, "", ""},
	{USER "/user.slice/docker-" ID ".scope", CONTAINER_DOCKER, ID, "", ""},
	{"/docker/" ID "/docker/" ID2, CONTAINER_DOCKER, ID, "", "/docker/" ID2},
	{"/docker/" ID "/system.slice/nginx.service", CONTAINER_DOCKER, ID, "", "/system.slice/nginx.service"},
	/* Kubernetes: containerd, CRI-O, Docker; three classes; both drivers; kind; containerd without systemd */
	{PODS "/cri-containerd-" ID ".scope", CONTAINER_CONTAINERD, ID, UID, ""},
	{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" ID ".scope",
	 CONTAINER_CONTAINERD, ID, UID, ""},
	{GUARANTEED "/cri-containerd-" ID ".scope", CONTAINER_CONTAINERD, ID, UID, ""},
	{GUARANTEED "/crio-" ID ".scope", CONTAINER_CRIO, ID, UID, ""},
	{GUARANTEED "/crio-" ID ".scope/container", CONTAINER_CRIO, ID, UID, "/container"},
	{PODS "/docker-" ID ".scope", CONTAINER_DOCKER, ID, UID, ""},
	{"/kubepods/burstable/pod" UID "/" ID, CONTAINER_KUBERNETES, ID, UID, ""},
	{"/kubepods/besteffort/pod" UID "/" ID, CONTAINER_KUBERNETES, ID, UID, ""},
	{"/kubepods/pod" UID "/" ID, CONTAINER_KUBERNETES, ID, UID, ""},
	{"/kubepods/burstable/pod" UID "/crio-" ID, CONTAINER_CRIO, ID, UID, ""},
	{"/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" ID, CONTAINER_KUBERNETES, ID,
	 "0123456789abcdef0123456789abcdef", ""},
	{"/system.slice/containerd.service/kubepods-burstable-pod" UID_ ".slice:cri-containerd:" ID,
	 CONTAINER_CONTAINERD, ID, UID, ""},
	{"/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_ ".slice", CONTAINER_DOCKER,
	 ID2, "", "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_ ".slice"},
	/* podman: both drivers, rootless, in a pod, split; not its monitors */
	{"/machine.slice/libpod-" ID ".scope", CONTAINER_PODMAN, ID, "", ""},
	{"/machine.slice/libpod-" ID ".scope/container", CONTAINER_PODMAN, ID, "", "/container"},
	{"/libpod_parent/libpod-" ID, CONTAINER_PODMAN, ID, "", ""},
	{"/libpod_parent/" ID2 "/libpod-" ID, CONTAINER_PODMAN, ID, "", ""},
	{"/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope", CONTAINER_PODMAN, ID, "", ""},
	{USER "/user.slice/libpod-" ID ".scope/container", CONTAINER_PODMAN, ID, "", "/container"},
	{"/system.slice/web.service/libpod-payload-" ID, CONTAINER_PODMAN, ID, "", ""},
	{"/machine.slice/libpod-conmon-" ID ".scope", CONTAINER_NONE, "", "", ""},
	{"/libpod_parent/libpod-conmon-" ID, CONTAINER_NONE, "", "", ""},
	{"/libpod_parent/" ID, CONTAINER_NONE, "", "", ""},
	{PODS "/crio-conmon-" ID ".scope", CONTAINER_NONE, "", "", ""},
	/* systemd-nspawn, LXC; virtual machines are none */
	{"/machine.slice/machine-web.scope/payload", CONTAINER_NSPAWN, "web", "", "/payload"},
	{"/machine.slice/machine-my\\x2dweb.scope", CONTAINER_NSPAWN, "my-web", "", ""},
	{"/machine.slice/systemd-nspawn@db.service/payload/system.slice", CONTAINER_NSPAWN, "db", "",
	 "/payload/system.slice"},
	{"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt", CONTAINER_NONE, "", "", ""},
	{"/lxc.payload.web/system.slice/nginx.service", CONTAINER_LXC, "web", "", "/system.slice/nginx.service"},
	{"/lxc/web", CONTAINER_LXC, "web", "", ""},
	{"/lxc.payload/web/init.scope", CONTAINER_LXC, "web", "", "/init.scope"},
	{"/lxc.monitor.web", CONTAINER_NONE, "", "", ""},
	/* others with such ids */
	{"/system.slice/nerdctl-" ID ".scope", CONTAINER_CONTAINERD, ID, "", ""},
	{"/ecs/b6a7d1c2/" ID, CONTAINER_OTHER, ID, "", ""},
	{"/actions_job/" ID, CONTAINER_OTHER, ID, "", ""},
	/* plain */
	{"/", CONTAINER_NONE, "", "", ""},
	{"", CONTAINER_NONE, "", "", ""},
	{"/system.slice/nginx.service", CONTAINER_NONE, "", "", ""},
	{USER "/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope", CONTAINER_NONE, "", "", ""},
	{"/kubepods.slice/kubepods-besteffort.slice", CONTAINER_NONE, "", "", ""},
	{"/docker", CONTAINER_NONE, "", "", ""},
	/* hostile paths, and paths that look like a container's */
	{"/docker/" ID "0", CONTAINER_NONE, "", "", ""},
	{"/docker/xyz" ID, CONTAINER_NONE, "", "", ""},
	{"/machine.slice/machine-.scope", CONTAINER_NONE, "", "", ""},
	{"/machine.slice/machine-\\x2e\\x2e.scope", CONTAINER_NONE, "", "", ""},
	{"/machine.slice/machine-\\x2f\\x00\\xzz.scope", CONTAINER_NSPAWN, "\\x2f\\x00\\xzz", "", ""},
	{"/lxc/..", CONTAINER_NONE, "", "", ""},
	{"/lxc.payload.", CONTAINER_NONE, "", "", ""},
	{"/lxc/a;b\"\xff", CONTAINER_LXC, "a;b\"\xff", "", ""},
	{"//docker//" ID "//", CONTAINER_DOCKER, ID, "", "//"},
	{"/kubepods/pod0123456789012345678901234567890123456/" ID, CONTAINER_KUBERNETES, ID, "", ""},
	{"/kubepods/pod/" ID, CONTAINER_KUBERNETES, ID, "", ""},
	{"/lxc/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
	 "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
	 "01234567890123456789012345678901234567890123456789012345",
	 CONTAINER_NONE, "", "", ""},
};

static void paths_of_the_world(void **state)
{
	struct container_ref ref;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *row = &rows[i];

		container_parse(row->path, &ref);
		if (ref.kind != row->kind)
			fail_msg("%s: %s", row->path, container_kind_name(ref.kind));
		assert_string_equal(ref.id, row->id);
		assert_string_equal(ref.pod_uid, row->pod_uid);
		if (row->kind != CONTAINER_NONE)
			assert_string_equal(row->path + ref.root_len, row->below);
	}
}

static void lines_of_proc(void **state)
{
	static const char text[] = "12:pids:/docker/" ID "\n1:name=systemd:/a:b\n"
				   "bad\n3:cpu\n4:x:no-slash\n0::/system.slice/x.service\n";
	struct buf paths;

	buf_init(&paths);
	cgroup_parse_membership(text, false, &paths);
	assert_string_equal(paths.data, "/system.slice/x.service");
	buf_clear(&paths);
	cgroup_parse_membership(text, true, &paths);
	assert_string_equal(paths.data, "pids:/docker/" ID "\nname=systemd:/a:b");
	buf_release(&paths);
}

static void path_of_a_controller(void **state)
{
	static const char text[] = "bad\n5:cpuset,freezer:/a\n6:freezers:/b\n7:cpu,cpuacct:/c:d\n8:x:no-slash\n0::/e\n";
	char path[CGROUP_PATH_MAX];

	assert_true(cgroup_parse_path(text, "freezer", path));
	assert_string_equal(path, "/a");
	assert_true(cgroup_parse_path(text, "cpuacct", path));
	assert_string_equal(path, "/c:d");
	assert_true(cgroup_parse_path(text, "", path));
	assert_string_equal(path, "/e");
	assert_false(cgroup_parse_path(text, "x", path));
	assert_false(cgroup_parse_path(text, "memory", path));
}

static void below(void **state)
{
	assert_true(cgroup_is_below("/a/b", "/a"));
	assert_true(cgroup_is_below("/a", "/a"));
	assert_true(cgroup_is_below("/a", "/"));
	assert_false(cgroup_is_below("/ab", "/a"));
	assert_false(cgroup_is_below("/", "/a"));
}

/* ---- names ---- */

static char root[] = "/tmp/duet-container.XXXXXX";

static int root_setup(void **state)
{
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int root_teardown(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* Makes the folders of `path` below the root; the caller makes the file. */
static const char *place(const char *path)
{
	static char full[512];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	return full;
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(place(path), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* The label of the cgroup at `path`. */
static const char *label(const char *path)
{
	static char text[512];
	struct container container = {.path = (char *)path};
	struct buf out;

	container_parse(path, &container.ref);
	container_names_read(root, path, &container.ref, &container.names);
	buf_init(&out);
	container_label(&container, &out);
	snprintf(text, sizeof(text), "%s", out.data);
	buf_release(&out);
	return text;
}

#define CONTAINERD "run/containerd/io.containerd.runtime.v2.task/"
#define STORAGE "lib/containers/storage/overlay-containers/"

static void names_of_runtimes(void **state)
{
	assert_string_equal(label("/docker/" ID), "4f2a9c0d1e3b");
	put("var/lib/docker/containers/" ID "/config.v2.json", "{\"ID\":\"" ID "\",\"Name\":\"/web\"}");
	assert_string_equal(label("/docker/" ID), "web");
	assert_string_equal(label("/system.slice/docker-" ID ".scope"), "web");
	put(CONTAINERD "k8s.io/" ID2 "/config.json",
	    "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"app\","
	    "\"io.kubernetes.cri.sandbox-name\":\"pod-1\",\"io.kubernetes.cri.sandbox-namespace\":\"prod\"}}");
	assert_string_equal(label("/kubepods/pod" UID "/" ID2), "prod/pod-1/app");
	assert_string_equal(label(GUARANTEED "/cri-containerd-" ID2 ".scope"), "prod/pod-1/app");
	put("var/" STORAGE "containers.json",
	    "[{\"id\":\"x\",\"names\":[\"no\"]},{\"id\":\"" ID "\",\"names\":[\"db\"]}]");
	assert_string_equal(label("/machine.slice/libpod-" ID ".scope"), "db");
	put("run/containers/storage/overlay-containers/" ID2 "/userdata/config.json",
	    "{\"annotations\":{\"io.kubernetes.container.name\":\"app\",\"io.kubernetes.pod.name\":\"pod-2\","
	    "\"io.kubernetes.pod.namespace\":\"dev\"}}");
	assert_string_equal(label(PODS "/crio-" ID2 ".scope"), "dev/pod-2/app");
	assert_string_equal(label("/lxc/box"), "box");
	assert_string_equal(label("/system.slice/cron.service"), "/system.slice/cron.service");
}

/* ctr -n default run … my-id */
static void containerd_without_a_pattern(void **state)
{
	assert_string_equal(label("/default/my-id"), "/default/my-id");
	put(CONTAINERD "default/my-id/config.json", "{}");
	assert_string_equal(label("/default/my-id/sub"), "my-id");
}

/* Users who may make cgroups must not get the names of root's containers. */
static void made_up_paths_get_no_names(void **state)
{
	put("var/lib/docker/containers/" ID "/config.v2.json", "{\"Name\":\"/web\"}");
	assert_string_equal(label("/lxc/mine/docker/" ID), "mine");
}

/* What another user may have named is no container: not by the names that he took, and not for who asks for one. */
static void cgroups_of_users_are_no_containers(void **state)
{
	static const char user[] = "/user.slice/user@1000.service";
	struct containers containers;

	if (geteuid())
		skip();
	put("user.slice/user@1000.service/docker-" ID ".scope/cgroup.procs", "");
	put("docker/" ID "/mine/docker-" ID2 ".scope/cgroup.procs", "");
	assert_int_equal(chown(place(user + 1), 1000, 1000), 0);
	assert_int_equal(chmod(root, 0755), 0);
	containers_open(&containers, root);
	snprintf(containers.tree.mount, sizeof(containers.tree.mount), "%s", root);
	containers_made(&containers, UINT64_MAX - 1, "/user.slice/user@1000.service/docker-" ID ".scope");
	containers_made(&containers, UINT64_MAX - 2, "/docker/" ID "/mine/docker-" ID2 ".scope");
	containers_made(&containers, UINT64_MAX - 3, "/user.slice/user@1000.service/gone/docker-" ID ".scope");
	assert_int_equal(containers_get(&containers, UINT64_MAX - 1)->ref.kind, CONTAINER_NONE);
	assert_int_equal(containers_get(&containers, UINT64_MAX - 2)->ref.kind, CONTAINER_DOCKER);
	assert_string_equal(containers_get(&containers, UINT64_MAX - 2)->ref.id, ID);
	assert_int_equal(containers_get(&containers, UINT64_MAX - 3)->ref.kind, CONTAINER_NONE);
	assert_int_equal(chmod(place("user.slice"), 0777), 0); /* its name may be another's too */
	assert_int_equal(cgroup_trusted_len(root, user), strlen("/user.slice/"));
	assert_int_equal(cgroup_trusted_len(root, "/../docker/" ID), 1);
	containers_release(&containers);
}

static void state_files_that_lie(void **state)
{
	static const char file[] = "var/lib/docker/containers/" ID "/config.v2.json";
	static const char *const lies[] = {
		"",
		"[",
		"[]",
		"null",
		"{\"Name\":7}",
		"{\"Name\":\"\\u0000\"}",
		"{\"Name\":\"\xff\"}",
		"{\"Name\":\"/a\"} and more",
		"{\"Config\":[],\"Name\":{}}",
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		put(file, lies[i]);
		assert_string_equal(label("/docker/" ID), "4f2a9c0d1e3b");
	}
	put("secret.json", "{\"Name\":\"/secret\"}");
	unlink(place(file));
	assert_int_equal(symlink("../../../../../secret.json", place(file)), 0);
	assert_string_equal(label("/docker/" ID), "4f2a9c0d1e3b");
	unlink(place(file));
	assert_int_equal(mkfifo(place(file), 0600), 0); /* a reader that waits would hang here */
	assert_string_equal(label("/docker/" ID), "4f2a9c0d1e3b");
}

static void long_names_are_cut(void **state)
{
	struct container_names names = {0};
	char json[1200];

	snprintf(json, sizeof(json), "{\"Name\":\"/%01000d\"}", 7);
	container_names_docker(json, strlen(json), &names);
	assert_true(strlen(names.name) < sizeof(names.name));
}

/* ---- cgroups that are removed while they are open ---- */

static void expect_path_of(const char *name, int flags, bool is_removed, const char *expected)
{
	struct cgroup_tree tree = {.fd = -1};
	struct buf path;
	char folder[256];
	int fd;

	buf_init(&path);
	snprintf(tree.mount, sizeof(tree.mount), "%s", root);
	snprintf(folder, sizeof(folder), "%s%s", root, name);
	fd = open(folder, flags | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	if (is_removed)
		assert_int_equal(rmdir(folder), 0);
	assert_int_equal(cgroup_path_of_fd(&tree, fd, &path), 0);
	assert_string_equal(path.data, expected);
	close(fd);
	buf_release(&path);
}

static void removed_while_it_is_open(void **state)
{
	put("docker/gone/inner/cgroup.procs", "");
	put("docker/named (deleted)/cgroup.procs", "");
	put("docker/named/cgroup.procs", ""); /* not the container that is meant */
	expect_path_of("/docker/gone/inner", O_PATH, false, "/docker/gone/inner");
	expect_path_of("/docker/named (deleted)", O_PATH, false, "/docker/named (deleted)");
	expect_path_of("", O_PATH, false, "/");
	assert_int_equal(unlink(place("docker/gone/inner/cgroup.procs")), 0);
	expect_path_of("/docker/gone/inner", O_PATH, true, "/docker/gone/inner");
	expect_path_of("/docker/gone", O_PATH, true, "/docker/gone");
}

/* ---- this host's own ---- */

static void ids_and_paths_of_this_host(void **state)
{
	struct containers containers;
	struct buf line, path;
	uint64_t id = 0;

	buf_init(&line);
	buf_init(&path);
	containers_open(&containers, "/");
	assert_string_equal(containers_get(&containers, CGROUP_ROOT_ID)->path, "/");
	assert_string_equal(containers_get(&containers, UINT64_MAX)->path, "");
	assert_int_equal(cgroup_of_process(getpid(), false, &line), 0);
	if (containers.tree.fd >= 0 && cgroup_find(&containers.tree, line.data, &id, &path) == 0) {
		assert_string_equal(path.data, line.data);
		assert_string_equal(containers_get(&containers, id)->path, line.data);
	}
	containers_release(&containers);
	buf_release(&line);
	buf_release(&path);
}

static void gone_before_it_is_looked_up(void **state)
{
	struct containers containers;
	const struct container *gone;

	put("docker/x", "");
	assert_int_equal(chmod(root, 0755), 0);
	containers_open(&containers, "/no/such/host");
	snprintf(containers.tree.mount, sizeof(containers.tree.mount), "%s", root);
	for (uint64_t id = 1; id <= 5000; id++) /* more than are kept */
		containers_made(&containers, UINT64_MAX - id, "/docker/" ID);
	containers_made(&containers, UINT64_MAX - 5000, "/docker/again");
	gone = containers_get(&containers, UINT64_MAX - 5000);
	assert_string_equal(gone->path, "/docker/" ID);
	assert_int_equal(gone->ref.kind, CONTAINER_DOCKER);
	assert_string_equal(containers_get(&containers, UINT64_MAX - 1)->path, ""); /* forgotten */
	assert_string_equal(containers_get(&containers, UINT64_MAX - 6000)->path, "");
	containers_release(&containers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_of_the_world),
		cmocka_unit_test(lines_of_proc),
		cmocka_unit_test(path_of_a_controller),
		cmocka_unit_test(below),
		cmocka_unit_test_setup_teardown(names_of_runtimes, root_setup, root_teardown),
		cmocka_unit_test_setup_teardown(containerd_without_a_pattern, root_setup, root_teardown),
		cmocka_unit_test_setup_teardown(made_up_paths_get_no_names, root_setup, root_teardown),
		cmocka_unit_test_setup_teardown(cgroups_of_users_are_no_containers, root_setup, root_teardown),
		cmocka_unit_test_setup_teardown(state_files_that_lie, root_setup, root_teardown),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test_setup_teardown(removed_while_it_is_open, root_setup, root_teardown),
		cmocka_unit_test(ids_and_paths_of_this_host),
		cmocka_unit_test_setup_teardown(gone_before_it_is_looked_up, root_setup, root_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
