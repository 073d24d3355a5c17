/* SPDX-License-Identifier: MIT */
#include "jvms/flight_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/packet.h"
#include "base/root.h"

static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm"};

#define PLACES (sizeof(places) / sizeof(*places))
#define TIMEOUT_MS 5000
#define HOLES_TIMES 64 /* a file of so many times what it occupies has holes, and was not written by a JVM */
#define TAKE_MS (600 * 1000) /* for a recording of some gigabytes */

/* What the child needs to know. */
struct task {
	const char *name; /* of the folder */
	const char *settings;
};

/* What the child has made. */
struct made {
	int parent, folder;
};

/* ---- the child ---- */

static int write_settings(int folder, const char *settings)
{
	int err, fd = openat(folder, FLIGHT_SETTINGS, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	err = io_write_all(fd, settings, strlen(settings));
	close(fd);
	return err;
}

/* Nobody knows the name, so a folder that exists is somebody's mistake: it is an error. */
static int make_in(int root, const char *place, const struct task *task, struct made *ret)
{
	int err;

	ret->parent = root_open(root, place, O_RDONLY | O_DIRECTORY, false);
	if (ret->parent < 0)
		return ret->parent;
	err = mkdirat(ret->parent, task->name, 0700) < 0 ? -errno : 0;
	if (!err) {
		ret->folder = root_open_entry(ret->parent, task->name, O_RDONLY | O_DIRECTORY);
		err = ret->folder < 0 ? ret->folder : write_settings(ret->folder, task->settings);
		if (err)
			unlinkat(ret->parent, task->name, AT_REMOVEDIR);
	}
	if (err)
		close(ret->parent);
	return err;
}

/* Returns the index of the place, or -errno. */
static int make(int root, const struct task *task, struct made *ret)
{
	int err = -ENOENT;

	for (size_t i = 0; i < PLACES; i++) {
		err = make_in(root, places[i], task, ret);
		if (!err)
			return (int)i;
	}
	return err;
}

static int copy(int from, const struct stat *st, int to)
{
	if (!root_is_stored(from, st))
		return -EPERM;
	if (st->st_size / HOLES_TIMES > st->st_blocks * 512)
		return -EFBIG;
	return io_copy(from, to, (uint64_t)st->st_size);
}

/* Reads a regular file of this user's only. Empties it but does not remove it: the JVM appends as it exits. */
static int take(int folder, int to)
{
	int err = -ENODATA, fd = openat(folder, FLIGHT_FILE, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ENODATA : -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		err = -EPERM;
	else if (st.st_size)
		err = copy(fd, &st, to);
	if (!err && ftruncate(fd, 0) < 0)
		err = -errno;
	close(fd);
	return err;
}

static void clear(const struct made *made, const char *name)
{
	unlinkat(made->folder, FLIGHT_FILE, 0);
	unlinkat(made->folder, FLIGHT_SETTINGS, 0);
	unlinkat(made->parent, name, AT_REMOVEDIR);
}

/* Each packet is a request to take the recording, and brings the descriptor to write to; one without ends the child. */
static void work(int socket, int root, const void *context)
{
	const struct task *task = context;
	struct made made = {-1, -1};
	char none;
	int to, place = make(root, task, &made);

	user_child_answer(socket, place);
	if (place < 0)
		return;
	while (packet_receive(socket, &none, sizeof(none), -1, &to) > 0 && to >= 0) {
		user_child_answer(socket, take(made.folder, to));
		close(to);
	}
	clear(&made, task->name);
	user_child_answer(socket, 0);
}

/* ---- the parent ---- */

int flight_folder_open(struct flight_folder *folder, pid_t pid, uint64_t start_ticks, const char *settings)
{
	struct task task = {.settings = settings};
	uint64_t random[2];
	char name[48];
	int place;

	*folder = (struct flight_folder)FLIGHT_FOLDER_NONE;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EAGAIN;
	snprintf(name, sizeof(name), ".duet-jfr-%016lx%016lx", random[0], random[1]);
	task.name = name;
	place = user_child_start(&folder->child, pid, start_ticks, work, &task);
	if (!place)
		place = user_child_await(&folder->child, TIMEOUT_MS);
	if (place >= (int)PLACES)
		place = -EPROTO;
	if (place < 0)
		user_child_release(&folder->child);
	else
		snprintf(folder->path, sizeof(folder->path), "%s/%s", places[place], name);
	return place < 0 ? place : 0;
}

int flight_folder_take(const struct flight_folder *folder, int to)
{
	int err = packet_send(folder->child.socket, "", 1, to, MSG_DONTWAIT);

	return err ? err : user_child_await(&folder->child, TAKE_MS);
}

void flight_folder_release(struct flight_folder *folder)
{
	if (folder->child.pid && !packet_send(folder->child.socket, "", 1, -1, MSG_DONTWAIT))
		(void)user_child_await(&folder->child, TIMEOUT_MS);
	user_child_release(&folder->child);
	*folder = (struct flight_folder)FLIGHT_FOLDER_NONE;
}
