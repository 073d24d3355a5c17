/* SPDX-License-Identifier: MIT */
#include "attach/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/place.h"
#include "base/root.h"

/* From here on the process is in the target's mount namespace; descriptors stay what they are. */
static int enter_mounts(const struct visit *visit)
{
	int fd = openat(visit->proc, "ns/mnt", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 || setns(fd, CLONE_NEWNS) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

/* By descriptor and name, not by path: /tmp is the target's. */
static void take_down(int tmp, const char *folder)
{
	if (fchdir(tmp) == 0)
		while (umount2(folder, MNT_DETACH | UMOUNT_NOFOLLOW) == 0) /* also what a killed helper left */
			;
	unlinkat(tmp, folder, AT_REMOVEDIR);
}

static int mount_over(int folder)
{
	if (fchdir(folder) < 0 || mount("duet", ".", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=4m") < 0)
		return -errno;
	return 0;
}

static int set_up(const struct visit *visit, int tmp, const char *folder)
{
	int fd, err = enter_mounts(visit);

	if (err)
		return err;
	take_down(tmp, folder);
	fd = place_folder(tmp, folder);
	err = fd < 0 ? fd : mount_over(fd);
	if (fd >= 0)
		close(fd);
	fd = err ? err : place_folder(tmp, folder); /* now what is mounted there */
	err = fd < 0 ? fd : place_write(fd);
	if (fd >= 0)
		close(fd);
	if (err)
		take_down(tmp, folder);
	return err;
}

/* Tells the outcome, then waits for the other end to be closed, by intent or by death. */
static void help(const struct visit *visit, int tmp, const char *folder, int socket)
{
	int err = set_up(visit, tmp, folder);
	char none;

	if (send(socket, &err, sizeof(err), MSG_NOSIGNAL) == sizeof(err) && err)
		return;
	while (recv(socket, &none, sizeof(none), 0) < 0 && errno == EINTR)
		;
	if (!err)
		take_down(tmp, folder);
}

static int start_helper(const struct visit *visit, int tmp, const char *folder, struct stage *stage)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	stage->helper = fork();
	if (stage->helper == 0) {
		close(pair[0]);
		help(visit, tmp, folder, pair[1]);
		_exit(0);
	}
	close(pair[1]);
	stage->socket = pair[0];
	if (stage->helper > 0)
		return 0;
	close(pair[0]);
	stage->helper = 0;
	return -EAGAIN;
}

int stage_open(const struct visit *visit, struct stage *ret_stage)
{
	struct stage stage = {.socket = -1};
	char folder[PLACE_NAME_MAX];
	int tmp = root_open(visit->root, "/tmp", O_RDONLY | O_DIRECTORY, false);
	int err, outcome;

	if (tmp < 0)
		return tmp;
	place_name(visit, folder, sizeof(folder));
	snprintf(stage.path, sizeof(stage.path), "/tmp/%s/" PLACE_LIBRARY, folder);
	err = start_helper(visit, tmp, folder, &stage);
	close(tmp);
	if (!err)
		err = recv(stage.socket, &outcome, sizeof(outcome), 0) == sizeof(outcome) ? outcome : -EIO;
	if (err)
		stage_close(&stage);
	else
		*ret_stage = stage;
	return err;
}

void stage_close(struct stage *stage)
{
	if (!stage || !stage->helper)
		return;
	close(stage->socket);
	while (waitpid(stage->helper, NULL, 0) < 0 && errno == EINTR)
		;
	stage->helper = 0;
}
