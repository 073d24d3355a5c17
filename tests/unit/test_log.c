/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/* Returns what `print` writes when stderr is `fd`, read from `from`. */
static const char *printed(int fd, int from, void (*print)(void))
{
	static char text[4096];
	struct pollfd readable = {.fd = from, .events = POLLIN};
	int saved = dup(STDERR_FILENO);
	size_t len = 0;
	ssize_t more = 1;

	dup2(fd, STDERR_FILENO);
	print();
	dup2(saved, STDERR_FILENO);
	close(saved);
	/* A terminal passes on what was written in pieces, and with a delay. */
	while (more > 0 && len < sizeof(text) - 1 && poll(&readable, 1, 500) == 1) {
		more = read(from, text + len, sizeof(text) - 1 - len);
		len += more > 0 ? (size_t)more : 0;
	}
	text[len] = '\0';
	return text;
}

static void print_levels(void)
{
	log_progress("50 %%");
	log_debug("hidden");
	log_info("%d samples", 7);
	log_warn("lost");
	log_error("no such pid");
}

static void print_progress(void)
{
	log_progress("50 %%");
	log_info("line");
	log_info("line");
	log_progress("60 %%");
	log_progress("%s", "");
	log_info("end");
}

static void test_lines_without_a_terminal(void **state)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_string_equal(printed(fds[1], fds[0], print_levels),
			    "duet: 7 samples\nduet: warning: lost\nduet: error: no such pid\n");
	log_set_level(LOG_ERROR);
	assert_string_equal(printed(fds[1], fds[0], print_levels), "duet: error: no such pid\n");
	log_set_level(LOG_INFO);
	assert_int_equal(log_level(), LOG_INFO);
	close(fds[0]);
	close(fds[1]);
}

static void print_hostile(void)
{
	log_info("a\033[2Jb\302\233c\rd\nfine: \342\200\246");
}

/* In names of processes: neither escapes nor the characters that UTF-8 terminals interpret as such (C1). */
static void test_terminal_obeys_nobody(void **state)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_string_equal(printed(fds[1], fds[0], print_hostile),
			    "duet: a?[2Jb??c?d?fine: \342\200\246\n");
	close(fds[0]);
	close(fds[1]);
}

static void test_progress_is_cleared_for_lines(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), terminal = -1;

	if (master >= 0 && !grantpt(master) && !unlockpt(master))
		terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	if (terminal < 0)
		skip();
	assert_string_equal(printed(terminal, master, print_progress),
			    "\r\033[K50 %\r\033[Kduet: line\r\nduet: line\r\n"
			    "\r\033[K60 %\r\033[Kduet: end\r\n");
	close(terminal);
	close(master);
}

static void print_with_context(void)
{
	log_set_context("a.conf:3: ");
	log_error("wrong");
	log_set_context(NULL);
	log_info("right");
}

/* Only the stream that systemd has opened is journald's. */
static void test_priorities_for_journald(void **state)
{
	struct stat st;
	char stream[64];
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	fstat(fds[1], &st);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_string_equal(printed(fds[1], fds[0], print_with_context), "<3>a.conf:3: wrong\n<6>right\n");
	setenv("JOURNAL_STREAM", "1:1", 1);
	assert_string_equal(printed(fds[1], fds[0], print_with_context),
			    "duet: error: a.conf:3: wrong\nduet: right\n");
	unsetenv("JOURNAL_STREAM");
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_without_a_terminal),
		cmocka_unit_test(test_priorities_for_journald),
		cmocka_unit_test(test_terminal_obeys_nobody),
		cmocka_unit_test(test_progress_is_cleared_for_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
