/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait for a block device, each in one function:
 *
 *   disk_waits FILE SECONDS
 *
 * Makes the file, which is deleted again. in_direct reads it past the page cache; in_uring does so with io_uring, and
 * waits for the completion. Says READY, begins when the file "FILE.gate" exists, says "FUNCTION ns", how long the
 * thread had no CPU meanwhile, "no io_uring" or "no direct reads" where the kernel or the file system refuses them, and
 * DONE.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 65536
#define BLOCKS 512

static int file;
static uint64_t end_ns;
static volatile int sink;

static struct {
	int fd;
	unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail;
	struct io_uring_sqe *entries;
} ring;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int ring_open(void)
{
	struct io_uring_params params = {0};
	char *sq, *cq;

	ring.fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	if (ring.fd < 0)
		return -1;
	sq = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
	ring.entries = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || (void *)ring.entries == MAP_FAILED)
		abort();
	ring.sq_tail = (unsigned *)(sq + params.sq_off.tail);
	ring.sq_mask = (unsigned *)(sq + params.sq_off.ring_mask);
	ring.sq_array = (unsigned *)(sq + params.sq_off.array);
	ring.cq_head = (unsigned *)(cq + params.cq_off.head);
	ring.cq_tail = (unsigned *)(cq + params.cq_off.tail);
	return 0;
}

static __attribute__((noipa)) void in_direct(void *block, off_t offset)
{
	if (pread(file, block, BLOCK, offset) != BLOCK)
		abort();
	sink++;
}

static __attribute__((noipa)) void in_uring(void *block, off_t offset)
{
	unsigned tail = *ring.sq_tail, index = tail & *ring.sq_mask;

	ring.entries[index] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
						    .fd = file,
						    .addr = (uintptr_t)block,
						    .len = BLOCK,
						    .off = (uint64_t)offset};
	ring.sq_array[index] = index;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
	while (*ring.cq_head == __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE))
		syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	__atomic_store_n(ring.cq_head, *ring.cq_head + 1, __ATOMIC_RELEASE);
	sink++;
}

struct reader {
	const char *name;
	void (*read)(void *block, off_t offset);
	uint64_t ns;
};

static void *reads(void *context)
{
	struct reader *reader = context;
	uint64_t began_ns = now_ns(CLOCK_MONOTONIC), cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	unsigned seed = (unsigned)(uintptr_t)reader;
	void *block = aligned_alloc(4096, BLOCK);

	pthread_setname_np(pthread_self(), reader->name);
	while (block && now_ns(CLOCK_MONOTONIC) < end_ns)
		reader->read(block, (off_t)(rand_r(&seed) % BLOCKS) * BLOCK);
	reader->ns = now_ns(CLOCK_MONOTONIC) - began_ns - (now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
	free(block);
	return NULL;
}

static int make_file(const char *path)
{
	char *block = aligned_alloc(4096, BLOCK);
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_DIRECT | O_CLOEXEC, 0600), is_bad = fd < 0 || !block;

	unlink(path);
	if (block)
		memset(block, 1, BLOCK);
	for (int i = 0; !is_bad && i < BLOCKS; i++)
		is_bad = write(fd, block, BLOCK) != BLOCK;
	free(block);
	return is_bad ? -1 : fd;
}

int main(int argc, char **argv)
{
	struct reader readers[] = {{"in_direct", in_direct, 0}, {"in_uring", in_uring, 0}};
	char gate[4096];
	pthread_t threads[2];
	int count = 2;

	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	file = make_file(argv[1]);
	if (file < 0)
		return puts("no direct reads"), 0;
	if (ring_open() < 0)
		count = puts("no io_uring") > 0;
	puts("READY");
	snprintf(gate, sizeof(gate), "%s.gate", argv[1]);
	while (access(gate, F_OK))
		usleep(1000);
	end_ns = now_ns(CLOCK_MONOTONIC) + (uint64_t)atol(argv[2]) * 1000000000u;
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, reads, &readers[i]))
			abort();
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		printf("%s %llu\n", readers[i].name, (unsigned long long)readers[i].ns);
	}
	puts("DONE");
	return 0;
}
