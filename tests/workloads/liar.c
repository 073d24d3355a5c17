/* SPDX-License-Identifier: MIT */
/*
 * A libjvm that lies about HotSpot's structures. LIAR says how:
 *   endless   its tables have no end, and each of their texts has a page of its own
 *   rewritten its tables change all the time
 *   hangs     they lie in memory that nobody fills: who reads it waits for ever
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUND 20000u
#define PAGE 4096u
#define PAGES 512u
#define ROWS (1u << 20)

struct row {
	const char *type, *field, *type_string;
	uint64_t is_static, offset;
	void *address;
};

extern struct row *gHotSpotVMStructs, *gHotSpotVMTypes;
struct row *gHotSpotVMStructs, *gHotSpotVMTypes;
#define NUMBER(name, value) \
	extern uint64_t name; \
	uint64_t name = value;
NUMBER(gHotSpotVMStructEntryTypeNameOffset, 0)
NUMBER(gHotSpotVMStructEntryFieldNameOffset, 8)
NUMBER(gHotSpotVMStructEntryTypeStringOffset, 16)
NUMBER(gHotSpotVMStructEntryIsStaticOffset, 24)
NUMBER(gHotSpotVMStructEntryOffsetOffset, 32)
NUMBER(gHotSpotVMStructEntryAddressOffset, 40)
NUMBER(gHotSpotVMStructEntryArrayStride, sizeof(struct row))
NUMBER(gHotSpotVMTypeEntryTypeNameOffset, 0)
NUMBER(gHotSpotVMTypeEntrySizeOffset, 32)
NUMBER(gHotSpotVMTypeEntryArrayStride, sizeof(struct row))

static struct row *rows;
static char *pages;

static void *map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void fill(uint32_t from, uint32_t count, uint32_t seed)
{
	static const char *const texts[] = {"Method", "_constMethod", "CodeCache", "_heaps", "Symbol", "_body"};

	for (uint32_t i = from; i < from + count; i++) {
		char *text = pages + (size_t)(i * 2654435761u % PAGES) * PAGE;

		strcpy(text, texts[(i + seed) % 6]);
		rows[i] = (struct row){text, texts[(i + seed + 1) % 6], text, i & 1, (i ^ seed) % 64, pages + i % PAGE};
	}
}

static void *rewrite(void *context)
{
	for (uint32_t seed = 1;; seed++)
		fill(0, PAGES, seed);
	return context;
}

/* Registers the memory with a userfaultfd that nobody reads. */
static void hang(void *memory, size_t bytes)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register part = {.range = {(uintptr_t)memory, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &part))
		printf("NO userfaultfd: %s\n", strerror(errno));
}

__attribute__((constructor)) static void lie(void)
{
	const char *how = getenv("LIAR");
	pthread_t thread;

	rows = map(ROWS * sizeof(*rows));
	pages = map((size_t)PAGES * PAGE);
	if (!how || !rows || !pages)
		_exit(1);
	gHotSpotVMStructs = gHotSpotVMTypes = rows;
	if (!strcmp(how, "hangs"))
		hang(rows, ROWS * sizeof(*rows));
	else
		fill(0, ROWS, 0);
	if (!strcmp(how, "rewritten"))
		pthread_create(&thread, NULL, rewrite, NULL);
}

void library_work(void);
__attribute__((noipa)) void library_work(void)
{
	static volatile uint64_t sink;

	for (uint32_t i = 0; i < ROUND; i++)
		sink += i;
}
