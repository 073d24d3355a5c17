/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/application.h"

static void check(const char *arguments, size_t len, const char *want)
{
	char *exact = malloc(len ? len : 1);
	struct buf name;
	int err;

	assert_non_null(exact);
	memcpy(exact, arguments, len);
	buf_init(&name);
	err = application_from_arguments(exact, len, &name);
	if (err != (want ? 0 : -ENOENT) || strcmp(name.data, want ? want : ""))
		fail_msg("%s …: %s", arguments, name.data);
	buf_release(&name);
	free(exact);
}

/* A string literal's own NUL ends the last argument, as in /proc/PID/cmdline. */
#define CHECK(want, arguments) check(arguments, sizeof(arguments), want)

static void what_the_launcher_starts(void **state)
{
	CHECK("java: app.jar", "/usr/bin/java\0-Xmx1g\0-Da=b\0-jar\0/opt/x/app.jar\0-jar\0other.jar");
	CHECK("java: com.acme.Main", "java\0-cp\0/a:/b\0com.acme.Main\0arg");
	CHECK("java: com.acme.Main",
	      "java\0--add-opens\0java.base/java.lang=ALL-UNNAMED\0--add-opens=a/b=c\0com.acme.Main");
	CHECK("java: m/com.acme.Main", "java\0-p\0mods\0-m\0m/com.acme.Main");
	CHECK("java: m/com.acme.Main", "java\0--module=m/com.acme.Main\0x");
	CHECK("java: Hello.java", "java\0Hello.java");
}

static void what_it_does_not_say(void **state)
{
	check("", 0, NULL);
	check("java\0Main", 9, NULL); /* cut off */
	CHECK(NULL, "java");
	CHECK(NULL, "java\0-version");
	CHECK(NULL, "java\0-cp");
	CHECK(NULL, "java\0-jar");
	CHECK(NULL, "java\0-jar\0");
	CHECK(NULL, "java\0@options\0Main");
	CHECK(NULL, "/usr/bin/jsvc\0com.acme.Main");
}

static void what_the_jvm_says(void **state)
{
	struct buf name;

	buf_init(&name);
	assert_int_equal(application_from_command("/opt/app.jar --port 1", &name), 0);
	assert_string_equal(name.data, "java: app.jar");
	assert_int_equal(application_from_command("", &name), -ENOENT);
	buf_release(&name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_launcher_starts),
		cmocka_unit_test(what_it_does_not_say),
		cmocka_unit_test(what_the_jvm_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
