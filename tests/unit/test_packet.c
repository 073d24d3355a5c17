/* SPDX-License-Identifier: MIT */
/* Packets with descriptors, from peers that send more of them than anybody asked for. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/packet.h"

#define MANY 200 /* below the kernel's limit of a message, 253 */

static int ends[2];

static int set_up(void **state)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int tear_down(void **state)
{
	close(ends[0]);
	return close(ends[1]);
}

static size_t count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Sends a packet with `count` descriptors of /dev/null. */
static void send_many(size_t count)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(MANY * sizeof(int))];
	} rights = {.head = {.cmsg_len = CMSG_LEN(count * sizeof(int)),
			     .cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS}};
	struct iovec part = {"abc", 3};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = CMSG_SPACE(count * sizeof(int))};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(null >= 0);
	for (size_t i = 0; i < count; i++)
		memcpy(CMSG_DATA(&rights.head) + i * sizeof(null), &null, sizeof(null));
	assert_int_equal(sendmsg(ends[0], &message, 0), 3);
	close(null);
}

static void surplus_descriptors_are_closed(void **state)
{
	size_t before = count_open();
	char bytes[8];
	int fd;

	for (size_t count = 1; count <= MANY; count = count < 4 ? count + 1 : count * 3) {
		send_many(count);
		assert_int_equal(packet_receive(ends[1], bytes, sizeof(bytes), 1000, &fd), 3);
		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		assert_int_equal(count_open(), before + 1);
		close(fd);
	}
}

static void descriptors_arrive(void **state)
{
	const struct iovec parts[] = {{"ab", 2}, {"cde", 3}};
	size_t before = count_open();
	char bytes[8];
	struct stat sent, got;
	int pair[2], fd;

	assert_int_equal(pipe(pair), 0);
	assert_int_equal(packet_send_parts(ends[0], parts, 2, pair, 2, 0), 0);
	assert_int_equal(packet_receive(ends[1], bytes, sizeof(bytes), -1, &fd), 5);
	assert_memory_equal(bytes, "abcde", 5);
	assert_int_equal(fstat(pair[0], &sent) | fstat(fd, &got), 0);
	assert_int_equal(sent.st_ino, got.st_ino);
	close(fd);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(count_open(), before);
	assert_int_equal(packet_send_parts(ends[0], parts, 2, pair, PACKET_FDS_MAX + 1, 0), -EINVAL);
}

static void nothing_comes(void **state)
{
	char bytes[8];
	int fd = 7;

	assert_int_equal(packet_receive(ends[1], bytes, sizeof(bytes), 10, &fd), -ETIMEDOUT);
	assert_int_equal(fd, -1);
	assert_int_equal(packet_send(ends[0], "x", 1, -1, 0), 0);
	assert_int_equal(packet_receive(ends[1], bytes, sizeof(bytes), -1, &fd), 1);
	assert_int_equal(fd, -1);
	shutdown(ends[0], SHUT_RDWR);
	assert_int_equal(packet_receive(ends[1], bytes, sizeof(bytes), -1, &fd), 0);
	assert_int_equal(packet_send(ends[0], "x", 1, -1, 0), -EPIPE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(surplus_descriptors_are_closed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(descriptors_arrive, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_comes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
