/* SPDX-License-Identifier: MIT */
/*
 * replace_tmp PID EVENT FOLDER: mounts FOLDER over /tmp in that process's mount namespace when /tmp is opened there
 * (EVENT "open") or when a name that begins with EVENT appears in it. Says READY, then REPLACED.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_TREE_CLONE_FLAG 1
#define MOVE_FROM_EMPTY_PATH 4

static bool is_awaited(const struct inotify_event *event, const char *awaited)
{
	if (!strcmp(awaited, "open"))
		return event->mask & IN_OPEN && event->mask & IN_ISDIR && !event->len;
	return event->mask & (IN_CREATE | IN_MOVED_TO) && !strncmp(event->name, awaited, strlen(awaited));
}

static bool await(int watch, const char *awaited)
{
	_Alignas(struct inotify_event) char events[4096];
	const struct inotify_event *event;
	ssize_t len;

	while ((len = read(watch, events, sizeof(events))) > 0)
		for (char *at = events; at < events + len; at += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)at;
			if (is_awaited(event, awaited))
				return true;
		}
	return false;
}

int main(int argc, char **argv)
{
	char path[64];
	int tree, mounts, watch = inotify_init1(IN_CLOEXEC);

	if (argc != 4)
		return 2;
	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", argv[1]);
	mounts = open(path, O_RDONLY | O_CLOEXEC);
	tree = (int)syscall(SYS_open_tree, AT_FDCWD, argv[3], OPEN_TREE_CLONE_FLAG);
	if (tree < 0 || setns(mounts, CLONE_NEWNS) < 0 ||
	    inotify_add_watch(watch, "/tmp", IN_OPEN | IN_CREATE | IN_MOVED_TO) < 0) {
		perror("replace_tmp");
		return 1;
	}
	puts("READY");
	fflush(stdout);
	if (!await(watch, argv[2]) || syscall(SYS_move_mount, tree, "", AT_FDCWD, "/tmp", MOVE_FROM_EMPTY_PATH) < 0) {
		perror("replace_tmp");
		return 1;
	}
	puts("REPLACED");
	return 0;
}
