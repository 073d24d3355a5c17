/* SPDX-License-Identifier: MIT */
/* The agent's side: START with the ring's file, then STOP, from an untrusted loader. */
#include "peer/peer.c"
#include "hotspot/ring.c"

#include "fuzz.h"

struct agent_jvm jvm;

void jvm_property(const char *name, char *text, size_t size)
{
	snprintf(text, size, "%s", name);
}

const struct agent_engine *engine_find(uint32_t id)
{
	static const struct agent_engine engine;

	return id < DUET_ENGINE_ID_MAX ? &engine : NULL;
}

static int make_file(struct input *input)
{
	const size_t total = DUET_RING_PAGE + 2 * LANE_MIN_BYTES;
	struct duet_ring_page page = {.magic = DUET_RING_MAGIC, .version = DUET_AGENT_VERSION, .total_bytes = total};
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	for (int i = 0; i < DUET_LANES; i++) {
		page.lanes[i].offset = DUET_RING_PAGE + (uint64_t)i * LANE_MIN_BYTES + input_number(input, 4);
		page.lanes[i].bytes = LANE_MIN_BYTES ^ input_number(input, 4);
	}
	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, (off_t)total) && pwrite(fd, &page, sizeof(page), 0) == sizeof(page));
	if (input_number(input, 1) % 4)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	return fd;
}

static void send_start(int loader, int fd, const void *message, size_t len, size_t fds)
{
	struct iovec body = {(void *)message, len};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} rights = {.head = {CMSG_LEN(fds * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct msghdr header = {.msg_iov = &body, .msg_iovlen = 1};

	for (size_t i = 0; i < fds; i++)
		memcpy(CMSG_DATA(&rights.head) + i * sizeof(fd), &fd, sizeof(fd));
	if (fds) {
		header.msg_control = rights.bytes;
		header.msg_controllen = CMSG_SPACE(fds * sizeof(int));
	}
	sendmsg(loader, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Every byte of what was mapped must be there. */
static void use_ring(int fd, uint64_t bytes)
{
	struct ring ring;
	const char *why;

	if (ring_map(&ring, fd, bytes, &why))
		return;
	for (int i = 0; i < DUET_LANES; i++)
		memset(ring.lanes[i].data, 1, 2 * ring.lanes[i].bytes);
	ring_unmap(&ring);
}

#include "jvm/tables.c" /* last: includes sigsafe.h */

/* Makes the tables, a page for each array, filled from the input. */
static int make_tables(struct input *input)
{
	struct duet_unwind_file head = {
		.magic = DUET_UNWIND_MAGIC,
		.version = DUET_UNWIND_VERSION,
		.rows = (uint32_t)input_number(input, 2),
		.pages = (uint32_t)input_number(input, 1),
		.modules = (uint32_t)input_number(input, 1),
		.mappings = (uint32_t)input_number(input, 1),
		.generation = input_number(input, 1),
	};
	const struct duet_unwind_offsets at = duet_unwind_offsets(&head);
	const uint64_t places[] = {at.rows, at.pages, at.modules, at.mappings};
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	memset(head.slices, (int)input_number(input, 1), sizeof(head.slices));
	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, (off_t)at.end) && pwrite(fd, &head, sizeof(head), 0) == sizeof(head));
	for (size_t i = 0; i < 4; i++) {
		size_t bytes = input->left < 64 ? input->left : 64;

		FUZZ_CHECK(pwrite(fd, input->at, bytes, (off_t)places[i]) == (ssize_t)bytes);
	}
	FUZZ_CHECK(!ftruncate(fd, (off_t)at.end) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return fd;
}

/* Whatever the tables hold, no lookup leads out of them. */
static void use_tables(struct input *input)
{
	const uint64_t pc = input_number(input, 8);
	const int fd = make_tables(input);
	const uint64_t bytes = (uint64_t)lseek(fd, 0, SEEK_END);
	struct duet_unwind_mapping mapping;
	struct duet_unwind_page page;
	struct tables_slice slice;
	struct tables tables;
	const char *why;

	FUZZ_CHECK(!tables_map(&tables, fd, bytes, &why));
	close(fd);
	slice = tables_begin(&tables);
	if (tables_find_mapping(&tables, &slice, pc, &mapping) &&
	    tables_find_page(&tables, mapping.module, pc - mapping.base, &page))
		for (uint32_t i = page.first; i < page.end && tables_row(&tables, i); i++)
			FUZZ_CHECK(tables_row(&tables, i)->pc <= UINT32_MAX);
	tables_unmap(&tables);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct duet_message_start start = {.head = {.size = 0}};
	size_t fd_count = input_number(&input, 1) % 8;
	union peer_message message;
	int pair[2], fds[PEER_FDS], fd = make_file(&input);

	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	send_start(pair[0], fd, input.at, input.left < sizeof(start) ? input.left : sizeof(start), fd_count);
	if (!peer_receive_start(pair[1], 0, &start, fds)) {
		FUZZ_CHECK(start.event_count <= DUET_MAX_EVENTS);
		use_ring(fds[0], start.ring_bytes);
		peer_close_fds(fds);
	}
	send(pair[0], input.at, input.left, MSG_NOSIGNAL | MSG_DONTWAIT);
	peer_receive(pair[1], &message);
	use_tables(&input);
	close(fd);
	close(pair[0]);
	close(pair[1]);
	return 0;
}
