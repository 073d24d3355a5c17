/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "status/notify.h"

/* A listener under that address, which NOTIFY_SOCKET names. */
static int listen_at(const char *address)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path, address, strlen(address));
	if (address[0] == '@')
		at.sun_path[0] = '\0';
	unlink(address);
	assert_int_equal(
		bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(address))),
		0);
	setenv("NOTIFY_SOCKET", address, 1);
	return fd;
}

static const char *heard(int fd)
{
	static char text[256];
	ssize_t len = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[len > 0 ? len : 0] = '\0';
	return text;
}

static void says_it(const char *address)
{
	int fd = listen_at(address);
	struct notify notify;

	notify_open(&notify);
	notify_send(&notify, "READY=1");
	assert_string_equal(heard(fd), "READY=1");
	notify_reloading(&notify);
	assert_memory_equal(heard(fd), "RELOADING=1\nMONOTONIC_USEC=", 27);
	notify_close(&notify);
	close(fd);
}

static void sockets_with_and_without_a_path(void **state)
{
	char address[64];

	snprintf(address, sizeof(address), "/tmp/duet-notify-%d", getpid());
	says_it(address);
	unlink(address);
	snprintf(address, sizeof(address), "@duet-notify-%d", getpid());
	says_it(address);
}

static void nobody_listens(void **state)
{
	static const char *const addresses[] = {"", "relative", "/nowhere/at/all", "@", NULL};
	char longer[200] = "/";
	struct notify notify;

	memset(longer + 1, 'x', sizeof(longer) - 2);
	for (size_t i = 0; addresses[i]; i++) {
		setenv("NOTIFY_SOCKET", addresses[i], 1);
		notify_open(&notify);
		notify_send(&notify, "READY=1");
		notify_watchdog(&notify);
		notify_close(&notify);
	}
	setenv("NOTIFY_SOCKET", longer, 1);
	notify_open(&notify);
	assert_int_equal(notify.fd, -1);
	unsetenv("NOTIFY_SOCKET");
	notify_open(&notify);
	assert_int_equal(notify.fd, -1);
}

static void the_watchdog_is_fed_in_time(void **state)
{
	char address[64], pid[32];
	struct notify notify;
	int fd;

	snprintf(address, sizeof(address), "@duet-watchdog-%d", getpid());
	fd = listen_at(address);
	setenv("WATCHDOG_USEC", "60000000", 1);
	notify_open(&notify);
	notify_watchdog(&notify);
	assert_string_equal(heard(fd), "WATCHDOG=1");
	notify_watchdog(&notify); /* not due yet */
	assert_string_equal(heard(fd), "");
	notify.fed_ns -= notify.watchdog_ns;
	notify_watchdog(&notify);
	assert_string_equal(heard(fd), "WATCHDOG=1");
	notify_close(&notify);
	setenv("WATCHDOG_PID", "1", 1); /* the watchdog is for another process */
	notify_open(&notify);
	assert_int_equal(notify.watchdog_ns, 0);
	notify_close(&notify);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("WATCHDOG_PID", pid, 1);
	notify_open(&notify);
	assert_int_equal(notify.watchdog_ns, 30000000000ull);
	notify_close(&notify);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_with_and_without_a_path),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(the_watchdog_is_fed_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
