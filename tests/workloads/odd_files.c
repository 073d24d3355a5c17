/* SPDX-License-Identifier: MIT */
/*
 * I/O of files, sockets and calls that are less usual, each in a function and a thread of the same name:
 *
 *   odd_files GATE FOLDER
 *
 * Says READY; begins when the file GATE exists; says "NAME bytes LEAF" for each thread: the bytes that its calls of the
 * function moved, and the name of what it moved them to. Then DONE.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TIMES 20
#define BLOCK 4096
#define MESSAGES 5

static const char *folder;
static char block[BLOCK];
static volatile uint64_t sink;

/*
 * A kind of I/O. prepare() opens what move() uses, and fills `leaf`. move() does the I/O in a function of the name, and
 * returns the bytes.
 */
struct kind {
	const char *name;
	void (*prepare)(struct kind *kind);
	ssize_t (*move)(struct kind *kind);
	int fd, other;
	struct sockaddr_in to;
	char leaf[200];
};

static void check(int is_right)
{
	if (!is_right)
		abort();
}

static void open_file(struct kind *kind)
{
	snprintf(kind->leaf, sizeof(kind->leaf), "%s/%s", folder, kind->name);
	kind->fd = open(kind->leaf, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(kind->fd >= 0 && ftruncate(kind->fd, BLOCK) == 0);
}

/* ---- files ---- */

static void prepare_fifo(struct kind *kind)
{
	snprintf(kind->leaf, sizeof(kind->leaf), "%s/%s", folder, kind->name);
	check(mkfifo(kind->leaf, 0600) == 0);
	kind->fd = open(kind->leaf, O_RDWR | O_CLOEXEC);
}

static __attribute__((noipa)) ssize_t in_fifo(struct kind *kind)
{
	ssize_t moved = write(kind->fd, block, 100);

	sink++;
	return moved;
}

static void prepare_eventfd(struct kind *kind)
{
	kind->fd = eventfd(0, EFD_CLOEXEC);
	strcpy(kind->leaf, "[eventfd]");
}

static __attribute__((noipa)) ssize_t in_eventfd(struct kind *kind)
{
	uint64_t one = 1;
	ssize_t moved = write(kind->fd, &one, sizeof(one));

	sink++;
	return moved;
}

static void prepare_memfd(struct kind *kind)
{
	kind->fd = memfd_create("odd", MFD_CLOEXEC);
	strcpy(kind->leaf, "memfd:odd");
}

static __attribute__((noipa)) ssize_t in_memfd(struct kind *kind)
{
	ssize_t moved = pwrite(kind->fd, block, BLOCK, 0);

	sink++;
	return moved;
}

static void prepare_deleted(struct kind *kind)
{
	open_file(kind);
	check(unlink(kind->leaf) == 0);
	strcat(kind->leaf, " (deleted)");
}

static __attribute__((noipa)) ssize_t in_deleted(struct kind *kind)
{
	ssize_t moved = pwrite(kind->fd, block, BLOCK, 0);

	sink++;
	return moved;
}

/* It has no descriptor, so the leaf is the function that makes the call. */
static void prepare_msync(struct kind *kind)
{
	open_file(kind);
	strcpy(kind->leaf, "msync");
}

static __attribute__((noipa)) ssize_t in_msync(struct kind *kind)
{
	char *mapped = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, kind->fd, 0);

	check(mapped != MAP_FAILED);
	mapped[0]++;
	check(msync(mapped, BLOCK, MS_SYNC) == 0);
	munmap(mapped, BLOCK);
	return 0;
}

/* ---- sockets ---- */

/* Returns a socket that is bound to a free port of this host. */
static int bound(int type, struct sockaddr_in *address)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof(*address);

	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	check(fd >= 0 && bind(fd, (struct sockaddr *)address, bytes) == 0 &&
	      getsockname(fd, (struct sockaddr *)address, &bytes) == 0);
	return fd;
}

static void name_peer(struct kind *kind, const struct sockaddr_in *peer)
{
	snprintf(kind->leaf, sizeof(kind->leaf), "127.0.0.1:%u", ntohs(peer->sin_port));
}

static void prepare_accept(struct kind *kind)
{
	struct sockaddr_in peer;

	kind->fd = bound(SOCK_STREAM, &kind->to);
	check(listen(kind->fd, 1) == 0);
	close(bound(SOCK_STREAM, &peer)); /* its port is free, and the client will have it each time */
	kind->other = ntohs(peer.sin_port);
	name_peer(kind, &peer);
}

/* A client that resets the connection, so that its port is free for the next one. */
static void connect_to(const struct kind *kind, int *client)
{
	struct sockaddr_in own = {.sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)kind->other)};
	struct linger at_once = {.l_onoff = 1};

	*client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(setsockopt(*client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0 &&
	      bind(*client, (struct sockaddr *)&own, sizeof(own)) == 0 &&
	      connect(*client, (const struct sockaddr *)&kind->to, sizeof(kind->to)) == 0);
}

static __attribute__((noipa)) int in_accept(int listener)
{
	int fd = accept(listener, NULL, NULL);

	sink++;
	return fd;
}

static ssize_t connect_and_accept(struct kind *kind)
{
	int client;

	connect_to(kind, &client);
	close(in_accept(kind->fd));
	close(client);
	return 0;
}

static void prepare_refused(struct kind *kind)
{
	close(bound(SOCK_STREAM, &kind->to));
	name_peer(kind, &kind->to);
}

static __attribute__((noipa)) ssize_t in_refused(struct kind *kind)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	check(connect(fd, (struct sockaddr *)&kind->to, sizeof(kind->to)) < 0);
	close(fd);
	return 0;
}

static void prepare_datagrams(struct kind *kind)
{
	kind->other = bound(SOCK_DGRAM, &kind->to);
	kind->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	name_peer(kind, &kind->to);
}

static __attribute__((noipa)) ssize_t in_datagrams(struct kind *kind)
{
	ssize_t moved = sendto(kind->fd, block, 100, 0, (struct sockaddr *)&kind->to, sizeof(kind->to));

	sink++;
	return moved;
}

/* The receiver has no peer, but each datagram has. */
static void prepare_received(struct kind *kind)
{
	struct sockaddr_in own;

	kind->fd = bound(SOCK_DGRAM, &kind->to);
	kind->other = bound(SOCK_DGRAM, &own);
	name_peer(kind, &own);
	for (int i = 0; i < TIMES; i++)
		check(sendto(kind->other, block, 100, 0, (struct sockaddr *)&kind->to, sizeof(kind->to)) == 100);
}

static __attribute__((noipa)) ssize_t in_received(struct kind *kind)
{
	struct iovec part = {block, BLOCK};
	struct sockaddr_in from;
	struct msghdr message = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &part, .msg_iovlen = 1};
	ssize_t moved = recvmsg(kind->fd, &message, 0);

	sink++;
	return moved;
}

static void prepare_messages(struct kind *kind)
{
	int ends[2];

	check(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
	kind->fd = ends[0];
	kind->other = ends[1];
	strcpy(kind->leaf, "[unix socket]");
}

static __attribute__((noipa)) ssize_t in_messages(struct kind *kind)
{
	struct iovec parts[MESSAGES];
	struct mmsghdr messages[MESSAGES] = {0};
	ssize_t sum = 0;

	for (size_t i = 0; i < MESSAGES; i++) {
		parts[i] = (struct iovec){block, 100 + i};
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	check(sendmmsg(kind->fd, messages, MESSAGES, 0) == MESSAGES);
	check(recvmmsg(kind->other, messages, MESSAGES, 0, NULL) == MESSAGES);
	for (size_t i = 0; i < MESSAGES; i++)
		sum += 2 * (ssize_t)messages[i].msg_len;
	return sum;
}

/* The kernel stores the name without a NUL at its end. */
static void prepare_abstract(struct kind *kind)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t bytes = offsetof(struct sockaddr_un, sun_path) + 1;
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	bytes += (socklen_t)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "odd%d", (int)getpid());
	kind->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(bind(listener, (struct sockaddr *)&address, bytes) == 0 && listen(listener, 1) == 0 &&
	      connect(kind->fd, (struct sockaddr *)&address, bytes) == 0);
	snprintf(kind->leaf, sizeof(kind->leaf), "unix:@%s", address.sun_path + 1);
}

static __attribute__((noipa)) ssize_t in_abstract(struct kind *kind)
{
	ssize_t moved = write(kind->fd, block, 100);

	sink++;
	return moved;
}

/* ---- none ---- */

static void prepare_other(struct kind *kind)
{
}

/* getpid() of the 32-bit architecture has the number of another architecture's writev(). */
static __attribute__((noipa)) ssize_t no_other(struct kind *kind)
{
	long pid = 20;

#ifdef __x86_64__
	__asm__ volatile("int $0x80" : "+a"(pid) : : "memory", "r8", "r9", "r10", "r11");
#endif
	sink += (uint64_t)pid;
	return 0;
}

/* ---- the threads ---- */

#define KIND(kind) {.name = "in_" #kind, .prepare = prepare_##kind, .move = in_##kind}
static struct kind kinds[] = {
	{.name = "in_accept", .prepare = prepare_accept, .move = connect_and_accept},
	KIND(fifo),
	KIND(eventfd),
	KIND(memfd),
	KIND(deleted),
	KIND(msync),
	KIND(refused),
	KIND(datagrams),
	KIND(received),
	KIND(messages),
	KIND(abstract),
	{.name = "no_other", .prepare = prepare_other, .move = no_other},
};

static void *moves(void *context)
{
	struct kind *kind = context;
	ssize_t sum = 0;

	pthread_setname_np(pthread_self(), kind->name);
	kind->prepare(kind);
	for (int i = 0; i < TIMES; i++) {
		ssize_t moved = kind->move(kind);

		check(moved >= 0);
		sum += moved;
	}
	printf("%s %zd %s\n", kind->name, sum, kind->leaf);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	folder = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("READY");
	while (access(argv[1], F_OK))
		usleep(1000);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		pthread_t thread;

		check(pthread_create(&thread, NULL, moves, &kinds[i]) == 0);
		pthread_join(thread, NULL);
	}
	puts("DONE");
	return 0;
}
