/* SPDX-License-Identifier: MIT */
/*
 * I/O by io_uring, each kind in a function and a thread of the same name:
 *
 *   rings GATE FOLDER
 *
 * Says READY; begins when the file GATE exists; says "NAME ns bytes LEAF" for each kind: the time from its submissions
 * to the completions, the bytes of the results, and the request and name that the stacks should end with. Then DONE.
 * Says NONE instead of READY if the kernel refuses io_uring.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TIMES 10
#define WAIT_MS 20
#define BLOCK 4096

static const char *folder;
static char block[BLOCK];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void check(int is_right)
{
	if (!is_right)
		abort();
}

/* ---- a ring ---- */

struct ring {
	int fd;
	unsigned flags;
	unsigned *tail, *mask, *array, *ready, *taken, *ready_mask, *state;
	struct io_uring_sqe *requests;
	struct io_uring_cqe *results;
	unsigned waiting; /* requests that the kernel has not been told of */
};

/* Returns false if the kernel refuses. */
static int ring_open(struct ring *ring, unsigned flags)
{
	struct io_uring_params with = {.flags = flags, .sq_thread_idle = 1000};
	char *at;

	*ring = (struct ring){.flags = flags, .fd = (int)syscall(SYS_io_uring_setup, 8, &with)};
	if (ring->fd < 0)
		return 0;
	at = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
	ring->requests = mmap(NULL, 8 * sizeof(*ring->requests), PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			      IORING_OFF_SQES);
	check(at != MAP_FAILED && ring->requests != MAP_FAILED && with.features & IORING_FEAT_SINGLE_MMAP);
	ring->tail = (unsigned *)(at + with.sq_off.tail);
	ring->mask = (unsigned *)(at + with.sq_off.ring_mask);
	ring->array = (unsigned *)(at + with.sq_off.array);
	ring->state = (unsigned *)(at + with.sq_off.flags);
	ring->ready = (unsigned *)(at + with.cq_off.tail);
	ring->taken = (unsigned *)(at + with.cq_off.head);
	ring->ready_mask = (unsigned *)(at + with.cq_off.ring_mask);
	ring->results = (struct io_uring_cqe *)(at + with.cq_off.cqes);
	return 1;
}

static void ring_add(struct ring *ring, struct io_uring_sqe request)
{
	unsigned at = *ring->tail & *ring->mask;

	ring->requests[at] = request;
	ring->array[at] = at;
	__atomic_store_n(ring->tail, *ring->tail + 1, __ATOMIC_RELEASE);
	ring->waiting++;
}

/* Submits, and waits for this number of results. Not inline: its caller is in the stack. */
static __attribute__((noipa)) void ring_enter(struct ring *ring, unsigned results)
{
	unsigned flags = IORING_ENTER_GETEVENTS;

	if (ring->flags & IORING_SETUP_SQPOLL && __atomic_load_n(ring->state, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP)
		flags |= IORING_ENTER_SQ_WAKEUP;
	check(syscall(SYS_io_uring_enter, ring->fd, ring->waiting, results, flags, NULL, 0) >= 0);
	ring->waiting = 0;
}

static int ring_take(struct ring *ring)
{
	int result;

	while (*ring->taken == __atomic_load_n(ring->ready, __ATOMIC_ACQUIRE))
		usleep(100);
	result = ring->results[*ring->taken & *ring->ready_mask].res;
	__atomic_store_n(ring->taken, *ring->taken + 1, __ATOMIC_RELEASE);
	return result;
}

/* ---- the kinds ---- */

struct kind {
	const char *name;
	void (*run)(struct kind *kind);
	uint64_t ns, bytes;
	char leaf[300];
};

/* Submits one request, and adds what it took and moved. */
static __attribute__((noipa)) int transfer(struct kind *kind, struct ring *ring, struct io_uring_sqe request)
{
	uint64_t before_ns = now_ns();
	int result;

	ring_add(ring, request);
	ring_enter(ring, 1);
	result = ring_take(ring);
	kind->ns += now_ns() - before_ns;
	kind->bytes += result > 0 ? (unsigned)result : 0;
	return result;
}

static int open_file(struct kind *kind, const char *request)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, kind->name);
	snprintf(kind->leaf, sizeof(kind->leaf), "[io_uring %s];%s", request, path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(fd >= 0 && ftruncate(fd, BLOCK) == 0);
	return fd;
}

static void *feeds(void *context)
{
	for (int i = 0; i < TIMES; i++) {
		usleep(WAIT_MS * 1000);
		check(write((int)(intptr_t)context, block, 100) == 100);
	}
	return NULL;
}

/* Opens a pipe that gets 100 bytes every WAIT_MS. */
static int fed_pipe(void)
{
	pthread_t feeder;
	int ends[2];

	check(pipe(ends) == 0 && pthread_create(&feeder, NULL, feeds, (void *)(intptr_t)ends[1]) == 0);
	pthread_detach(feeder);
	return ends[0];
}

static struct io_uring_sqe request_of(int opcode, int fd, unsigned bytes)
{
	return (struct io_uring_sqe){
		.opcode = (uint8_t)opcode, .fd = fd, .addr = (uintptr_t)block, .len = bytes, .user_data = 7};
}

static __attribute__((noipa)) void in_file(struct kind *kind)
{
	struct ring ring;
	int fd = open_file(kind, "write");

	check(ring_open(&ring, 0));
	for (int i = 0; i < TIMES; i++)
		check(transfer(kind, &ring, request_of(IORING_OP_WRITE, fd, 1000)) == 1000);
}

static __attribute__((noipa)) void in_pipe(struct kind *kind)
{
	struct ring ring;
	int fd = fed_pipe();

	strcpy(kind->leaf, "[io_uring read];[pipe]");
	check(ring_open(&ring, 0));
	for (int i = 0; i < TIMES; i++)
		check(transfer(kind, &ring, request_of(IORING_OP_READ, fd, 100)) == 100);
}

/* A worker of the kernel reads, but the stack is that of the submitter. */
static __attribute__((noipa)) void in_worker(struct kind *kind)
{
	struct ring ring;
	struct io_uring_sqe request = request_of(IORING_OP_READ, fed_pipe(), 100);

	strcpy(kind->leaf, "[io_uring read];[pipe]");
	request.flags = IOSQE_ASYNC;
	check(ring_open(&ring, 0));
	for (int i = 0; i < TIMES; i++)
		check(transfer(kind, &ring, request) == 100);
}

/* The write begins when the read has ended, but its time is from its submission on. */
static __attribute__((noipa)) void in_linked(struct kind *kind)
{
	struct ring ring;
	int fd = open_file(kind, "write");
	struct io_uring_sqe first = request_of(IORING_OP_NOP, -1, 0);

	first.flags = IOSQE_IO_LINK;
	check(ring_open(&ring, 0));
	for (int i = 0; i < TIMES; i++) {
		uint64_t before_ns = now_ns();

		ring_add(&ring, first);
		ring_add(&ring, request_of(IORING_OP_WRITE, fd, 500));
		ring_enter(&ring, 2);
		check(ring_take(&ring) == 0 && ring_take(&ring) == 500);
		kind->ns += now_ns() - before_ns;
		kind->bytes += 500;
	}
}

static __attribute__((noipa)) void in_fixed(struct kind *kind)
{
	struct ring ring;
	int fd = open_file(kind, "read");
	struct io_uring_sqe request = request_of(IORING_OP_READ, 0, BLOCK);

	check(ring_open(&ring, 0) &&
	      syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &fd, 1) == 0);
	request.flags = IOSQE_FIXED_FILE;
	for (int i = 0; i < TIMES; i++)
		check(transfer(kind, &ring, request) == BLOCK);
}

static __attribute__((noipa)) void in_none(struct kind *kind)
{
	struct ring ring;

	strcpy(kind->leaf, "[io_uring read]");
	check(ring_open(&ring, 0));
	for (int i = 0; i < TIMES; i++)
		check(transfer(kind, &ring, request_of(IORING_OP_READ, 999, 100)) < 0);
}

/* Nothing comes through the pipe: after a while, the request is cancelled. */
static __attribute__((noipa)) void in_cancelled(struct kind *kind)
{
	struct ring ring;
	int ends[2];

	strcpy(kind->leaf, "[io_uring read];[pipe]");
	check(ring_open(&ring, 0) && pipe(ends) == 0);
	for (int i = 0; i < TIMES; i++) {
		struct io_uring_sqe cancel = {.opcode = IORING_OP_ASYNC_CANCEL, .fd = -1, .addr = 7, .user_data = 8};
		uint64_t before_ns = now_ns();

		ring_add(&ring, request_of(IORING_OP_READ, ends[0], 100));
		ring_enter(&ring, 0);
		usleep(WAIT_MS * 1000);
		ring_add(&ring, cancel);
		ring_enter(&ring, 2);
		kind->ns += now_ns() - before_ns;
		(void)ring_take(&ring);
		(void)ring_take(&ring);
	}
}

static uint16_t listen_at(int *ret_fd)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);

	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(bind(*ret_fd, (struct sockaddr *)&address, bytes) == 0 && listen(*ret_fd, TIMES) == 0 &&
	      getsockname(*ret_fd, (struct sockaddr *)&address, &bytes) == 0);
	return ntohs(address.sin_port);
}

static struct sockaddr_in address_of(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
}

static __attribute__((noipa)) void in_connect(struct kind *kind)
{
	struct ring ring;
	int listener;
	uint16_t port = listen_at(&listener);
	struct sockaddr_in to = address_of(port);

	snprintf(kind->leaf, sizeof(kind->leaf), "[io_uring connect];127.0.0.1:%u", port);
	check(ring_open(&ring, 0));
	for (int i = 0; i < TIMES; i++) {
		struct io_uring_sqe request = {.opcode = IORING_OP_CONNECT, .addr = (uintptr_t)&to, .off = sizeof(to)};

		request.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		check(transfer(kind, &ring, request) == 0);
		close(request.fd);
	}
}

/* All clients have the same port, one after the other. */
static void *connects(void *context)
{
	struct sockaddr_in to = address_of((uint16_t)(uintptr_t)context);
	struct sockaddr_in own = address_of((uint16_t)((uintptr_t)context >> 16));
	struct linger at_once = {.l_onoff = 1};

	for (int i = 0; i < TIMES; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		usleep(WAIT_MS * 1000);
		check(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0 &&
		      bind(fd, (struct sockaddr *)&own, sizeof(own)) == 0 &&
		      connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
		usleep(WAIT_MS * 1000);
		close(fd);
	}
	return NULL;
}

/* One request accepts all connections. Its time is that of all waits. */
static __attribute__((noipa)) void in_repeated(struct kind *kind)
{
	struct io_uring_sqe request = {.opcode = IORING_OP_ACCEPT, .ioprio = IORING_ACCEPT_MULTISHOT, .user_data = 9};
	struct ring ring;
	pthread_t thread;
	int other, last;
	uintptr_t ports = listen_at(&request.fd) | (uintptr_t)listen_at(&other) << 16;
	uint64_t before_ns = now_ns();

	close(other);
	snprintf(kind->leaf, sizeof(kind->leaf), "[io_uring accept];127.0.0.1:%u", (unsigned)(ports >> 16));
	check(ring_open(&ring, 0) && pthread_create(&thread, NULL, connects, (void *)ports) == 0);
	ring_add(&ring, request);
	for (int i = 0; i < TIMES; i++) {
		ring_enter(&ring, 1);
		last = ring_take(&ring);
		check(last > 0);
		kind->ns = now_ns() - before_ns;
		close(last);
	}
	pthread_join(thread, NULL);
}

/* A thread of the kernel submits. It has no frames of the program. */
static __attribute__((noipa)) void in_kernel(struct kind *kind)
{
	struct ring ring;
	int fd = fed_pipe();

	strcpy(kind->leaf, "[io_uring read, by the kernel's thread];[pipe]");
	check(ring_open(&ring, IORING_SETUP_SQPOLL));
	for (int i = 0; i < TIMES; i++)
		check(transfer(kind, &ring, request_of(IORING_OP_READ, fd, 100)) == 100);
}

/* ---- the threads ---- */

#define KIND(kind) {.name = "in_" #kind, .run = in_##kind}
static struct kind kinds[] = {
	KIND(file), KIND(pipe), KIND(worker), KIND(linked), KIND(fixed),
	KIND(none), KIND(cancelled), KIND(connect), KIND(repeated), KIND(kernel),
};

static void *runs(void *context)
{
	struct kind *kind = context;

	pthread_setname_np(pthread_self(), kind->name);
	kind->run(kind);
	printf("%s %llu %llu %s\n", kind->name, (unsigned long long)kind->ns, (unsigned long long)kind->bytes,
	       kind->leaf);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ring ring;

	if (argc != 3)
		return 2;
	folder = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!ring_open(&ring, 0)) {
		puts("NONE");
		return 0;
	}
	puts("READY");
	while (access(argv[1], F_OK))
		usleep(1000);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		pthread_t thread;

		check(pthread_create(&thread, NULL, runs, &kinds[i]) == 0);
		pthread_join(thread, NULL);
	}
	puts("DONE");
	return 0;
}
