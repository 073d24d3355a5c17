/* SPDX-License-Identifier: MIT */
/*
 * I/O of known files and peers in known functions, by threads with the functions' names, which measure it themselves:
 *
 *   transfers GATE FOLDER SECONDS
 *
 * Says "PORT n", the port of the TCP peer, and READY; begins when the file GATE exists; says "NAME ns bytes" for each
 * thread: the time that its calls took, and what they moved. Then DONE.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BLOCK (512 << 10)
#define FILE_BYTES (1 << 20)

static uint64_t end_ns;
static int file = -1, tcp[2], unix_ends[2], pipe_ends[2];
static volatile uint64_t sink;
static char block[BLOCK];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- transfers; each returns the bytes that it has moved, or -1 ---- */

static __attribute__((noipa)) ssize_t in_file(void)
{
	static off_t at;
	ssize_t moved = pwrite(file, block, BLOCK, at);

	at = (at + BLOCK) % FILE_BYTES;
	sink++;
	return moved;
}

static __attribute__((noipa)) ssize_t in_sync(void)
{
	ssize_t err = fdatasync(file);

	sink++;
	return err;
}

static __attribute__((noipa)) ssize_t in_tcp(void)
{
	char bytes[1000];
	ssize_t moved = recv(tcp[0], bytes, sizeof(bytes), 0);

	sink++;
	return moved;
}

static __attribute__((noipa)) ssize_t in_unix(void)
{
	char bytes[1000];
	ssize_t moved = read(unix_ends[0], bytes, sizeof(bytes));

	sink++;
	return moved;
}

static __attribute__((noipa)) ssize_t in_pipe(void)
{
	char bytes[1000];
	ssize_t moved = read(pipe_ends[0], bytes, sizeof(bytes));

	sink++;
	return moved;
}

/* ---- the threads ---- */

struct mover {
	const char *name;
	ssize_t (*move)(void);
	uint64_t ns, bytes;
	pthread_t thread;
};

static struct mover movers[] = {
	{.name = "in_file", .move = in_file}, {.name = "in_sync", .move = in_sync}, {.name = "in_tcp", .move = in_tcp},
	{.name = "in_unix", .move = in_unix}, {.name = "in_pipe", .move = in_pipe},
};

static void *moves(void *context)
{
	struct mover *mover = context;

	pthread_setname_np(pthread_self(), mover->name);
	while (now_ns() < end_ns) {
		uint64_t before_ns = now_ns();
		ssize_t moved = mover->move();

		mover->ns += now_ns() - before_ns;
		if (moved < 0)
			abort();
		mover->bytes += (uint64_t)moved;
		if (mover->move == in_file || mover->move == in_sync)
			usleep(1000);
	}
	return NULL;
}

/* Sends to all that receive, every 2 to 12 ms, until all have ended. */
static void *sends(void *context)
{
	unsigned seed = 5;

	for (;;) {
		usleep(2000 + (unsigned)rand_r(&seed) % 10000);
		if (send(tcp[1], block, 700, MSG_NOSIGNAL) < 0 || write(unix_ends[1], block, 300) < 0 ||
		    write(pipe_ends[1], block, 500) < 0)
			return NULL;
	}
}

/* The client has a peer whose port is known, and is the one that receives. */
static unsigned open_tcp(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int server = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t bytes = sizeof(address);

	tcp[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(server, (struct sockaddr *)&address, bytes) || listen(server, 1) ||
	    getsockname(server, (struct sockaddr *)&address, &bytes) ||
	    connect(tcp[0], (struct sockaddr *)&address, bytes))
		abort();
	tcp[1] = accept(server, NULL, NULL);
	return ntohs(address.sin_port);
}

static void open_unix(const char *folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int server = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/peer", folder);
	unix_ends[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(server, (struct sockaddr *)&address, sizeof(address)) || listen(server, 1) ||
	    connect(unix_ends[0], (struct sockaddr *)&address, sizeof(address)))
		abort();
	unix_ends[1] = accept(server, NULL, NULL);
}

static void open_all(const char *folder)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/moved", folder);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || pipe(pipe_ends))
		abort();
	open_unix(folder);
	printf("PORT %u\n", open_tcp());
}

int main(int argc, char **argv)
{
	pthread_t sender;

	if (argc != 4)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_all(argv[2]);
	puts("READY");
	while (access(argv[1], F_OK))
		usleep(1000);
	end_ns = now_ns() + (uint64_t)atol(argv[3]) * 1000000000u;
	if (pthread_create(&sender, NULL, sends, NULL))
		abort();
	for (size_t i = 0; i < sizeof(movers) / sizeof(*movers); i++)
		if (pthread_create(&movers[i].thread, NULL, moves, &movers[i]))
			abort();
	for (size_t i = 0; i < sizeof(movers) / sizeof(*movers); i++) {
		pthread_join(movers[i].thread, NULL);
		printf("%s %llu %llu\n", movers[i].name, (unsigned long long)movers[i].ns,
		       (unsigned long long)movers[i].bytes);
	}
	puts("DONE");
	return 0;
}
