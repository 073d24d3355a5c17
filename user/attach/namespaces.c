/* SPDX-License-Identifier: MIT */
#include "attach/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rights.h"
#include "base/buf.h"
#include "base/io.h"

/* Returns a descriptor of the target's namespace, -ENOENT when we are in it already, or another -errno. */
static int open_foreign(const struct visit *visit, const char *name)
{
	char ours[32], theirs[16];
	struct stat mine, other;
	int fd;

	snprintf(ours, sizeof(ours), "/proc/self/ns/%s", name);
	snprintf(theirs, sizeof(theirs), "ns/%s", name);
	fd = openat(visit->proc, theirs, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (stat(ours, &mine) == 0 && fstat(fd, &other) == 0 &&
	    (mine.st_ino != other.st_ino || mine.st_dev != other.st_dev))
		return fd;
	close(fd);
	return -ENOENT;
}

/* Returns 0 when the child is in the target's namespace. */
static int enter(const struct visit *visit, const char *name, int type)
{
	int err, fd = open_foreign(visit, name);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = setns(fd, type) < 0 ? -errno : 0;
	close(fd);
	return err;
}

int namespaces_enter(struct visit *visit)
{
	int err = enter(visit, "net", CLONE_NEWNET);

	/* The owner of a rootless container has rights over its network only inside its user namespace. */
	if (err == -EPERM) {
		err = enter(visit, "user", CLONE_NEWUSER);
		if (!err)
			err = enter(visit, "net", CLONE_NEWNET);
	}
	if (err)
		visit_fail(visit, err, "cannot enter the network namespace of JVM %d (%s): %s", visit->target->pid,
			   strerror(-err),
			   geteuid() ? "run duet as root" : "give duet CAP_SYS_ADMIN, or start it in that namespace");
	return err;
}

/* Reads the second column (effective) of "Uid:" or "Gid:". The ids are those of the user namespace that we are in. */
static bool read_id(const char *status, const char *field, unsigned int *ret_id)
{
	const char *line = strstr(status, field);

	return line && sscanf(line + strlen(field), "%*u %u", ret_id) == 1;
}

static int become(uid_t uid, gid_t gid)
{
	if (geteuid() == uid && getegid() == gid)
		return 0;
	if (geteuid() != uid && setgroups(1, &gid) < 0)
		return -errno;
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

int namespaces_become_user(struct visit *visit)
{
	unsigned int uid = 0, gid = 0;
	struct buf status;
	int err;

	buf_init(&status);
	err = io_read_again(visit->status, 64u << 10, &status);
	if (!err && !(read_id(status.data, "\nUid:", &uid) && read_id(status.data, "\nGid:", &gid)))
		err = -EBADMSG;
	buf_release(&status);
	if (err)
		return visit_fail(visit, err, "cannot read the user of process %d: %s", visit->target->pid,
				  strerror(-err));
	err = become(uid, gid);
	if (!err)
		err = rights_keep(RIGHTS_NONE);
	prctl(PR_SET_DUMPABLE, 0); /* the target's user must not be able to trace this process or read its memory */
	if (err)
		visit_fail(visit, err, "JVM %d belongs to user %u, group %u: run duet as that user or %s",
			   visit->target->pid, uid, gid,
			   geteuid() ? "as root" : "give it CAP_SETUID and CAP_SETGID");
	return err;
}
