/* SPDX-License-Identifier: MIT */
/*
 *   asprof_hostile jvm HOW LIBJVM    a process that looks like a JVM, and answers to commands
 *   asprof_hostile recorder HOW FILE its own recorder, for root's `asprof`
 *
 * Prints READY, and goes on until it is killed. See the rows of `replies` and `reports`.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "duet_recorder.h"

#define NAME "x\033]0;owned\007\xc2\x9b" /* of a process: at most 15 bytes */

static int listen_at(const char *path, int type, int backlog)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, backlog) < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static void ready(void)
{
	puts("READY");
	fflush(stdout);
}

/* ---- the JVM ---- */

static void on_quit(int signo)
{
}

static void reply_escape(int fd)
{
	static const char text[] = "0\nname \033]0;owned\007\033[31mred\033[0m\033[2J \xc2\x9b""6n \xe2\x80\xae rev\r\n"
				   "\tat a.b\nzero \0 byte \xff\nno end \033[5n";

	(void)!write(fd, text, sizeof(text) - 1);
}

static void reply_endless(int fd)
{
	static char many[65536];

	(void)!write(fd, "0\n", 2);
	memset(many, 'A', sizeof(many));
	while (write(fd, many, sizeof(many)) > 0)
		;
}

/* Never closed. */
static void reply_silent(int fd)
{
	(void)!write(fd, "0\n", 2);
	pause();
}

static const struct {
	const char *how;
	void (*reply)(int fd);
} replies[] = {
	{"escape", reply_escape},
	{"endless", reply_endless},
	{"silent", reply_silent},
};

static void be_jvm(const char *how, const char *libjvm)
{
	int listener, file = open(libjvm, O_RDONLY | O_CLOEXEC);
	char path[64], bytes[4096];

	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
		exit(1);
	signal(SIGQUIT, on_quit);
	snprintf(path, sizeof(path), "/tmp/.java_pid%d", getpid());
	listener = listen_at(path, SOCK_STREAM, 5);
	ready();
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		(void)!read(fd, bytes, sizeof(bytes));
		for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++)
			if (!strcmp(replies[i].how, how))
				replies[i].reply(fd);
		close(fd);
	}
}

/* ---- the recorder ---- */

static unsigned long long start_ticks(void)
{
	char stat[1024] = "", *at;
	FILE *file = fopen("/proc/self/stat", "r");

	(void)!fread(stat, 1, sizeof(stat) - 1, file);
	fclose(file);
	at = strrchr(stat, ')');
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

static int memory_of(const char *path)
{
	int fd = memfd_create("report", MFD_ALLOW_SEALING), from = open(path, O_RDONLY);
	char bytes[65536];
	ssize_t more;

	while ((more = read(from, bytes, sizeof(bytes))) > 0)
		(void)!write(fd, bytes, (size_t)more);
	close(from);
	return fd;
}

static int seal(int fd)
{
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return fd;
}

static int report_sparse(const char *file)
{
	int fd = memfd_create("report", MFD_ALLOW_SEALING);

	(void)!ftruncate(fd, 1ll << 40);
	return fd;
}

static int report_holes(const char *file)
{
	int fd = memory_of(file);

	(void)!ftruncate(fd, 1ll << 40);
	return seal(fd);
}

static int report_large(const char *file)
{
	int fd = memory_of(file);

	(void)!ftruncate(fd, (1ll << 30) + 4096);
	return seal(fd);
}

static int report_open(const char *file)
{
	return memory_of(file); /* may be cut while it is read */
}

static int report_sealed(const char *file)
{
	return seal(memory_of(file));
}

static int report_folder(const char *file)
{
	return open("/tmp", O_RDONLY | O_DIRECTORY);
}

static int report_device(const char *file)
{
	return open("/dev/zero", O_RDONLY);
}

static int report_pipe(const char *file)
{
	int ends[2];

	(void)!pipe(ends);
	return ends[0];
}

static const struct {
	const char *how;
	int (*report)(const char *file);
} reports[] = {
	{"sparse", report_sparse}, {"holes", report_holes},   {"large", report_large},	 {"open", report_open},
	{"sealed", report_sealed}, {"folder", report_folder}, {"device", report_device}, {"pipe", report_pipe},
};

static int report_of(const char *how, const char *file)
{
	for (size_t i = 0; i < sizeof(reports) / sizeof(*reports); i++)
		if (!strcmp(reports[i].how, how))
			return reports[i].report(file);
	exit(1);
}

static void answer(int to, const char *text, int report)
{
	struct duet_answer head = {.is_private = 1};
	struct iovec parts[] = {{&head, sizeof(head)}, {(void *)text, strlen(text)}};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} rights = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	if (report >= 0) {
		memcpy(CMSG_DATA(&rights.head), &report, sizeof(report));
		message.msg_control = rights.bytes;
		message.msg_controllen = sizeof(rights.bytes);
	}
	(void)!sendmsg(to, &message, MSG_NOSIGNAL);
	if (report >= 0)
		close(report);
}

static void serve(int fd, const char *how, const char *file)
{
	char bytes[65536];
	ssize_t len;

	while ((len = recv(fd, bytes, sizeof(bytes) - 1, 0)) >= (ssize_t)sizeof(struct duet_question)) {
		const char *words = bytes + sizeof(struct duet_question);

		bytes[len] = '\0';
		if (!strncmp(words, "status", 6))
			answer(fd, "Profiling is running for 1 seconds\n\033]0;owned\007", -1);
		else
			answer(fd, "", report_of(how, file));
	}
	close(fd);
}

static void be_recorder(const char *how, const char *file)
{
	char path[64];
	int listener;

	snprintf(path, sizeof(path), "/tmp/.duet-asprof-%u", getuid());
	mkdir(path, 0700);
	snprintf(path + strlen(path), 32, "/%d-%llu", getpid(), start_ticks());
	listener = listen_at(path, SOCK_SEQPACKET, strcmp(how, "full") ? 16 : 0);
	for (int i = 0; i < 3 && !strcmp(how, "full"); i++) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

		snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
		(void)!connect(fd, (struct sockaddr *)&address, sizeof(address));
	}
	ready();
	while (!strcmp(how, "full") || !strcmp(how, "mute"))
		pause();
	for (;;)
		serve(accept(listener, NULL, NULL), how, file);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(argv[1], "name")) {
		prctl(PR_SET_NAME, NAME);
		ready();
		pause();
	} else if (!strcmp(argv[1], "jvm")) {
		be_jvm(argv[2], argv[3]);
	} else {
		be_recorder(argv[2], argv[3]);
	}
	return 0;
}
