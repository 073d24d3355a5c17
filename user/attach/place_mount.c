/* SPDX-License-Identifier: MIT */
#include "attach/place_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/place.h"
#include "base/child.h"
#include "base/rights.h"
#include "base/root.h"

#define MNT_DETACH 2 /* from <sys/mount.h>, which conflicts with <linux/mount.h> */

/* What the helper has made so far. */
struct scene {
	int tmp; /* the target's /tmp */
	int mount; /* a tmpfs with the library in it; -1 = none */
	int folder; /* where it is mounted; -1 = none */
	char name[PLACE_NAME_MAX]; /* name of the folder */
};

/* Enters the target's mount namespace. Open descriptors keep their meaning. */
static int enter_mounts(const struct visit *visit)
{
	int fd = openat(visit->proc, "ns/mnt", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 || setns(fd, CLONE_NEWNS) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

static int set_text(int context, const char *key, const char *value)
{
	return syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno : 0;
}

/*
 * Makes a tmpfs that is mounted nowhere, so that nobody else can reach it. Returns a descriptor or -errno: -ENOSYS
 * before Linux 5.2.
 */
static int new_mount(void)
{
	int mount = -1, err, context = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

	if (context < 0)
		return -errno;
	err = set_text(context, "mode", "755");
	if (!err)
		err = set_text(context, "size", "4m");
	if (!err && syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		err = -errno;
	if (!err) {
		mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
		err = mount < 0 ? -errno : 0;
	}
	close(context);
	return err ? err : mount;
}

/* Writes everything before the target can see the mount. */
static int fill_mount(struct scene *scene)
{
	scene->mount = new_mount();
	return scene->mount < 0 ? scene->mount : place_write(scene->mount);
}

/* Makes the folder for the mount, with only the file rights of the target's user. */
static int make_folder(const struct visit *visit, struct scene *scene)
{
	const struct attach_target *target = visit->target;
	int err = rights_use_files_of(target->uid, target->gid);

	if (!err)
		err = rights_keep(RIGHT(CAP_SYS_ADMIN));
	if (err)
		return err;
	scene->folder = place_folder(visit, scene->tmp, target->uid, scene->name);
	return scene->folder < 0 ? scene->folder : 0;
}

static int show(const struct scene *scene)
{
	return syscall(SYS_move_mount, scene->mount, "", scene->folder, "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

static int set_up(const struct visit *visit, struct scene *scene)
{
	int err = fill_mount(scene);

	if (!err)
		err = enter_mounts(visit);
	if (!err)
		err = make_folder(visit, scene);
	return err ? err : show(scene);
}

/* Unmounts by descriptor: whatever the target has done to the names, this removes our mount and no other. */
static void take_down(const struct scene *scene)
{
	if (scene->mount >= 0 && fchdir(scene->mount) == 0)
		/* Fails if the tmpfs was never mounted. Then the tmpfs ends with this process. */
		syscall(SYS_umount2, ".", MNT_DETACH);
	if (scene->folder >= 0)
		unlinkat(scene->tmp, scene->name, AT_REMOVEDIR);
}

/* Sends the outcome, then waits until the other end is closed, which also happens when that process dies. */
static void help(const struct visit *visit, int tmp, int socket)
{
	struct scene scene = {.tmp = tmp, .mount = -1, .folder = -1};
	struct place_mount_outcome outcome = {.error = set_up(visit, &scene)};
	char none;

	snprintf(outcome.path, sizeof(outcome.path), "/tmp/%s/" PLACE_LIBRARY, scene.name);
	if (send(socket, &outcome, sizeof(outcome), MSG_NOSIGNAL) == sizeof(outcome) && !outcome.error)
		while (recv(socket, &none, sizeof(none), 0) < 0 && errno == EINTR)
			;
	take_down(&scene);
}

static int start_helper(const struct visit *visit, int tmp, struct place_mount *mount)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	mount->helper = fork();
	if (mount->helper == 0) {
		close(VISIT_RESULT_FD); /* only the attach child itself may hold the result socket open */
		close(pair[0]);
		help(visit, tmp, pair[1]);
		_exit(0);
	}
	close(pair[1]);
	mount->socket = pair[0];
	if (mount->helper > 0)
		return 0;
	close(pair[0]);
	mount->helper = 0;
	return -EAGAIN;
}

int place_mount_open(const struct visit *visit, struct place_mount *ret_mount)
{
	struct place_mount mount = {.socket = -1};
	struct place_mount_outcome outcome;
	int tmp = root_open(visit->root, "/tmp", O_RDONLY | O_DIRECTORY, false);
	int err;

	if (tmp < 0)
		return tmp;
	err = start_helper(visit, tmp, &mount);
	close(tmp);
	if (!err)
		err = recv(mount.socket, &outcome, sizeof(outcome), 0) == sizeof(outcome) ? outcome.error : -EIO;
	if (err) {
		place_mount_close(&mount);
		return err;
	}
	snprintf(mount.path, sizeof(mount.path), "%s", outcome.path);
	*ret_mount = mount;
	return 0;
}

void place_mount_close(struct place_mount *mount)
{
	int status;

	if (!mount || !mount->helper)
		return;
	close(mount->socket);
	(void)child_await(mount->helper, &status);
	mount->helper = 0;
}
