/* SPDX-License-Identifier: MIT */
#include "api/start_recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "duet_recorder.h"

#include "api/carried.h"
#include "api/spawn.h"
#include "libc_versions.h"

#define GREETING_MS 10000
#define MEMFD_CLOEXEC 1u
#define MEMFD_EXEC 16u /* Linux 6.3 */

extern char **environ;

/* ---- executables ---- */

/* fstat() of newer C libraries does not exist in older ones. */
static int read_stat(int fd, struct stat *ret)
{
	return (int)syscall(SYS_fstat, fd, ret);
}

/*
 * Returns true if other users cannot replace or change the file: the library may be in a folder like /tmp. Often a user
 * has a group of his own, which may write to his files.
 */
static bool is_trusted(const struct stat *st)
{
	bool is_own_group = st->st_gid == 0 || st->st_gid == getegid();

	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & S_IWOTH) &&
	       (is_own_group || !(st->st_mode & S_IWGRP));
}

/* Returns a descriptor, or -1. `folder` is changed. */
static int open_trusted(char *folder, const char *name)
{
	struct stat st;
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;

	if (dir >= 0 && !read_stat(dir, &st) && is_trusted(&st))
		fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (dir >= 0)
		close(dir);
	if (fd >= 0 && (read_stat(fd, &st) || !S_ISREG(st.st_mode) || !is_trusted(&st))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Stores the folder of this library, without links. Returns false if the library was removed. */
static bool own_folder(char folder[PATH_MAX])
{
	Dl_info info;
	char *slash;

	if (!dladdr((const void *)(uintptr_t)start_recorder, &info) || !info.dli_fname ||
	    !realpath(info.dli_fname, folder))
		return false;
	slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

static int open_beside(int which)
{
	static const char *const places[][2] = {
		{"", "duet"}, {"/../bin", "duet"}, {"", "asprof"}, {"/../bin", "asprof"}};
	char folder[PATH_MAX];
	size_t length;

	if (!own_folder(folder))
		return -1;
	length = strlen(folder);
	if (length + strlen(places[which][0]) >= sizeof(folder))
		return -1;
	strcpy(folder + length, places[which][0]);
	return open_trusted(folder, places[which][1]);
}

static bool write_all(int fd, const unsigned char *bytes, uint64_t count)
{
	while (count) {
		ssize_t written = write(fd, bytes, count);

		if (written < 0 && errno != EINTR)
			return false;
		if (written > 0) {
			bytes += written;
			count -= (uint64_t)written;
		}
	}
	return true;
}

/* Returns a descriptor of the executable that the library carries, or -1. */
static int open_carried(void)
{
	int fd = -1;

	if (!carried_executable_bytes)
		return -1;
	fd = (int)syscall(SYS_memfd_create, "duet", MEMFD_CLOEXEC | MEMFD_EXEC);
	if (fd < 0)
		fd = (int)syscall(SYS_memfd_create, "duet", MEMFD_CLOEXEC);
	if (fd >= 0 && !write_all(fd, carried_executable, carried_executable_bytes)) {
		close(fd);
		fd = -1;
	}
	madvise((void *)(uintptr_t)carried_executable, carried_executable_bytes, MADV_DONTNEED);
	return fd;
}

enum { CANDIDATES = 5 }; /* four places, and the carried executable */

static int open_candidate(int which)
{
	return which < CANDIDATES - 1 ? open_beside(which) : open_carried();
}

/* ---- environment of the recorder ---- */

/*
 * Returns true for a variable that would make the recorder load libraries, or make the library in it start a recording.
 */
static bool is_left_out(const char *variable)
{
	static const char *const names[] = {"LD_PRELOAD=", "LD_LIBRARY_PATH=", "LD_AUDIT=", "ASPROF_COMMAND="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Returns the list, whose strings are the process's own, or NULL. */
static char **copy_environment(void)
{
	size_t count = 0, kept = 0;
	char **copy;

	while (environ && environ[count])
		count++;
	copy = malloc((count + 1) * sizeof(*copy));
	for (size_t i = 0; copy && i < count && environ[i]; i++)
		if (!is_left_out(environ[i]))
			copy[kept++] = environ[i];
	if (copy)
		copy[kept] = NULL;
	return copy;
}

/* The recorder takes its pid from the socket, whose ends were made here. */
static int start(int executable, int end)
{
	char descriptor[16], path[32];
	char *argv[] = {(char *)"duet", (char *)"asprof", (char *)DUET_RECORDER_WORD, descriptor, NULL};
	char **envp = copy_environment();
	struct spawn spawn = {.executable = executable, .path = path, .argv = argv, .envp = envp, .kept = end};
	int pid;

	if (!envp)
		return -ENOMEM;
	snprintf(descriptor, sizeof(descriptor), "%d", end);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", executable);
	pid = spawn_detached(&spawn);
	free(envp);
	return pid;
}

/* Returns true if the recorder is of this build: another one may use other questions and answers. */
static bool has_greeted(int socket)
{
	struct {
		struct duet_answer head;
		char version[sizeof(DUET_VERSION) + 1];
	} greeting = {0};
	struct pollfd fd = {.fd = socket, .events = POLLIN};
	const ssize_t bytes = sizeof(greeting.head) + strlen(DUET_VERSION);

	while (poll(&fd, 1, GREETING_MS) < 0 && errno == EINTR)
		;
	return recv(socket, &greeting, sizeof(greeting), MSG_DONTWAIT) == bytes &&
	       !strcmp(greeting.version, DUET_VERSION);
}

/* Returns 0 or -errno. */
static int try_candidate(int executable, struct started_recorder *ret)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	ret->pid = start(executable, ends[1]);
	close(ends[1]);
	ret->socket = ends[0];
	if (ret->pid > 0 && has_greeted(ends[0]))
		return 0;
	close(ends[0]);
	return ret->pid < 0 ? ret->pid : -EPROTO;
}

int start_recorder(struct started_recorder *ret, char *why, size_t size)
{
	int error = -ENOENT;

	for (int which = 0; which < CANDIDATES && error; which++) {
		int executable = open_candidate(which);

		if (executable < 0)
			continue;
		error = try_candidate(executable, ret);
		close(executable);
	}
	if (error == -ENOENT)
		snprintf(why, size, "There is no duet %s beside the library, in its folder or in ../bin", DUET_VERSION);
	else if (error)
		snprintf(why, size, "duet could not be started: %s",
			 error == -EPROTO ? "it has another version, or ended at once" : strerror(-error));
	return error;
}
