/* SPDX-License-Identifier: MIT */
#include "asprof/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

/* Root's folder is below /run, where nobody else can create one of its name. */
static void folder_path(struct buf *path)
{
	const char *own = getenv("XDG_RUNTIME_DIR");

	if (!geteuid())
		buf_add_str(path, "/run/duet-asprof");
	else if (own && *own == '/')
		buf_printf(path, "%s/duet-asprof", own);
	else
		buf_printf(path, "/tmp/.duet-asprof-%u", geteuid());
}

/* Returns a descriptor of the folder, or -errno with why. Creates it if `create`. */
static int open_folder(bool create, struct buf *why)
{
	struct stat st;
	struct buf path;
	int fd = -ENOMEM;

	buf_init(&path);
	folder_path(&path);
	if (!path.failed && create && mkdir(path.data, 0700) < 0 && errno != EEXIST)
		buf_printf(why, "%s cannot be created: %s", path.data, strerror(errno));
	if (!path.failed)
		fd = open(path.data, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && !path.failed)
		fd = -errno;
	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 077)) {
		buf_printf(why, "%s must belong to user %u alone (mode 0700): remove it", path.data, geteuid());
		close(fd);
		fd = -EPERM;
	}
	buf_release(&path);
	return fd;
}

/* The folder is reached by its descriptor: its path may be longer than an address has room for. */
static struct sockaddr_un address_of(int folder, pid_t pid, uint64_t start_ticks)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%d-%llu", folder, pid,
		 (unsigned long long)start_ticks);
	return address;
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int bytes = 2 * MEETING_MAX;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return fd;
}

static int connect_in(int folder, pid_t pid, uint64_t start_ticks)
{
	struct sockaddr_un address = address_of(folder, pid, start_ticks);
	int err, fd = new_socket();

	if (fd < 0 || !connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	err = errno == ECONNREFUSED ? -ENOENT : -errno; /* a recorder that was killed leaves its name */
	close(fd);
	return err;
}

int meeting_connect(pid_t pid, uint64_t start_ticks, struct buf *why)
{
	int fd, folder = open_folder(false, why);

	if (folder < 0)
		return folder;
	fd = connect_in(folder, pid, start_ticks);
	close(folder);
	if (fd < 0 && fd != -ENOENT)
		buf_printf(why, "the recorder of process %d does not answer: %s", pid, strerror(-fd));
	return fd;
}

static int listen_in(int folder, pid_t pid, uint64_t start_ticks)
{
	struct sockaddr_un address = address_of(folder, pid, start_ticks);
	int fd = connect_in(folder, pid, start_ticks);

	if (fd >= 0) {
		close(fd);
		return -EADDRINUSE;
	}
	unlink(address.sun_path);
	fd = new_socket();
	if (fd >= 0 && (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int meeting_listen(pid_t pid, uint64_t start_ticks, struct buf *why)
{
	int fd, folder = open_folder(true, why);

	if (folder < 0) {
		if (!why->len)
			buf_printf(why, "no place for the recorder's socket: %s", strerror(-folder));
		return folder;
	}
	fd = listen_in(folder, pid, start_ticks);
	close(folder);
	if (fd < 0)
		buf_printf(why, "the recorder of process %d cannot listen: %s", pid, strerror(-fd));
	return fd;
}

void meeting_end(pid_t pid, uint64_t start_ticks)
{
	struct sockaddr_un address;
	struct buf why;
	int folder;

	buf_init(&why);
	folder = open_folder(false, &why);
	buf_release(&why);
	if (folder < 0)
		return;
	address = address_of(folder, pid, start_ticks);
	unlink(address.sun_path);
	close(folder);
}

/* ---- packets ---- */

union rights {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* Returns 0 or -errno. `fd`: -1 for none. */
static int send_packet(int connection, uint32_t code, const char *text, size_t bytes, int fd)
{
	union rights rights = {
		.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct iovec parts[] = {{&code, sizeof(code)}, {(void *)text, bytes < MEETING_MAX ? bytes : MEETING_MAX}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&rights.head), &fd, sizeof(fd));
		message.msg_control = rights.bytes;
		message.msg_controllen = sizeof(rights.bytes);
	}
	return sendmsg(connection, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Returns 0 or -errno: -EPIPE at the end. *ret_fd is -1 when there is none. */
static int receive_packet(int connection, uint32_t *ret_code, struct buf *text, int *ret_fd)
{
	char *bytes = malloc(MEETING_MAX);
	union rights rights;
	struct iovec parts[] = {{ret_code, sizeof(*ret_code)}, {bytes, MEETING_MAX}};
	struct msghdr message = {.msg_iov = parts,
				 .msg_iovlen = 2,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	struct cmsghdr *head;
	ssize_t len;

	*ret_fd = -1;
	do /* a second Ctrl-C does not take the report away */
		len = bytes ? recvmsg(connection, &message, MSG_CMSG_CLOEXEC) : -1;
	while (bytes && len < 0 && errno == EINTR);
	if (len < (ssize_t)sizeof(*ret_code)) {
		int err = !bytes ? -ENOMEM : len < 0 ? -errno : -EPIPE;

		free(bytes);
		return err;
	}
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(head), sizeof(*ret_fd));
	buf_add(text, bytes, (size_t)len - sizeof(*ret_code));
	free(bytes);
	return 0;
}

int meeting_ask(int connection, const char *arguments, struct meeting_answer *ret, struct buf *why)
{
	uint32_t code = 0;
	int err = strlen(arguments) > MEETING_MAX ? -E2BIG : 0;

	*ret = (struct meeting_answer){.report = -1};
	buf_init(&ret->text);
	if (!err)
		err = send_packet(connection, 0, arguments, strlen(arguments), -1);
	if (!err)
		err = receive_packet(connection, &code, &ret->text, &ret->report);
	ret->code = (enum asprof_code)code;
	if (err < 0)
		buf_printf(why, err == -EPIPE ? "the recorder has ended" : "the recorder does not answer: %s",
			   strerror(-err));
	return err;
}

void meeting_answer_release(struct meeting_answer *answer)
{
	buf_release(&answer->text);
	if (answer->report >= 0)
		close(answer->report);
	answer->report = -1;
}

int meeting_receive(int connection, struct buf *ret_arguments)
{
	uint32_t code;
	int fd, err = receive_packet(connection, &code, ret_arguments, &fd);

	if (fd >= 0)
		close(fd);
	return err;
}

int meeting_reply(int connection, const struct meeting_answer *answer)
{
	return send_packet(connection, answer->code, answer->text.data ? answer->text.data : "", answer->text.len,
			   answer->report);
}
