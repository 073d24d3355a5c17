/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/config.h"

/* Parses a file of this text and mode. */
static int read_config_of_mode(const char *text, mode_t mode, struct config *config)
{
	int fd = memfd_create("config", MFD_CLOEXEC), err;
	char path[32];

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = config_read(config, path, "/var/lib/duet", false);
	close(fd);
	return err;
}

static int read_config(const char *text, struct config *config)
{
	return read_config_of_mode(text, 0644, config);
}

/* A file that other users may write is refused. */
static void test_files_of_others(void **state)
{
	struct config config;

	assert_int_equal(read_config_of_mode("freq = 50\n", 0666, &config), -EPERM);
	assert_int_equal(read_config_of_mode("freq = 50\n", 0602, &config), -EPERM);
	assert_int_equal(read_config_of_mode("freq = 50\n", 0660, &config), geteuid() ? 0 : -EPERM);
	if (geteuid())
		config_release(&config);
	assert_int_equal(read_config_of_mode("freq = 50\n", 0600, &config), 0);
	config_release(&config);
}

static uint64_t sampling_of(const char *text)
{
	struct config config;
	uint64_t sampling;

	assert_int_equal(read_config(text, &config), 0);
	sampling = config.sampling;
	config_release(&config);
	return sampling;
}

static void test_words(void **state)
{
	struct config config;

	assert_int_equal(read_config("# words\n window = 5s \n;\nfreq=50\nno-attach = yes\n", &config), 0);
	assert_int_equal(config.options.window_ns, 5 * NS_PER_SEC);
	assert_int_equal(config.options.events.items[0].interval, 20 * NS_PER_MS);
	assert_int_equal(config.options.agent, AGENT_NEVER);
	assert_true(config.options.host);
	assert_int_equal(config.options.leave_alone.patterns.len, 0);
	config_release(&config);
}

static void test_jvms_left_alone(void **state)
{
	struct config config;

	assert_int_equal(read_config("leave-alone = payments*.jar\nfreq = 50\nleave-alone = */ledger/*\n", &config), 0);
	assert_int_equal(config.options.leave_alone.patterns.len, 2);
	assert_string_equal(config.options.leave_alone.patterns.items[0], "payments*.jar");
	assert_string_equal(config.options.leave_alone.patterns.items[1], "*/ledger/*");
	assert_int_equal(config.options.agent, AGENT_NEEDED);
	config_release(&config);
	assert_int_equal(read_config("leave-alone =\n", &config), -EINVAL);
}

static void test_users_left_alone(void **state)
{
	struct config config;

	assert_int_equal(read_config("leave-alone = user:root\nleave-alone = uid:65534\nleave-alone = users\n",
				     &config),
			 0);
	assert_int_equal(config.options.leave_alone.users.len, 2);
	assert_int_equal(config.options.leave_alone.users.items[0], 0);
	assert_int_equal(config.options.leave_alone.users.items[1], 65534);
	config_release(&config);
	assert_int_equal(read_config("leave-alone = user:no-such-user-here\n", &config), -EINVAL);
	assert_int_equal(read_config("leave-alone = user:\n", &config), -EINVAL);
	assert_int_equal(read_config("leave-alone = uid:root\n", &config), -EINVAL);
	assert_int_equal(read_config("leave-alone = uid:-1\n", &config), -EINVAL);
	assert_int_equal(read_config("leave-alone = uid:4294967295\n", &config), -EINVAL);
	assert_int_equal(read_config("leave-alone = uid:\n", &config), -EINVAL);
}

static void test_spark_names(void **state)
{
	struct config config;

	assert_int_equal(read_config("java-collect-spark-app-name-as-appid = yes\n", &config), 0);
	assert_true(config.options.spark_names);
	config_release(&config);
	assert_int_equal(read_config("java-collect-spark-app-name-as-appid = no\n", &config), 0);
	assert_false(config.options.spark_names);
	config_release(&config);
	assert_int_equal(read_config("java-collect-spark-app-name-as-appid = maybe\n", &config), -EINVAL);
}

/* Which changes need a new recording, and which do not. */
static void test_sampling(void **state)
{
	assert_int_equal(sampling_of("freq = 50\nwindow = 1s\n"), sampling_of("window = 2s\nfreq = 50\n"));
	assert_int_not_equal(sampling_of("freq = 50\n"), sampling_of("freq = 51\n"));
	assert_int_not_equal(sampling_of("leave-alone = a\n"), sampling_of("leave-alone = b\n"));
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"freq = 50\nfreq = 60\n", "freq\n",		  "frequency = 50\n",	      "freq = x\n",
		"pid = 1\n",		  "no-attach = maybe\n", "comm = a\ncgroup = /b\n",
	};
	struct config config;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(read_config(texts[i], &config), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files_of_others),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_jvms_left_alone),
		cmocka_unit_test(test_users_left_alone),
		cmocka_unit_test(test_spark_names),
		cmocka_unit_test(test_sampling),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
