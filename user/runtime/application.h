/* SPDX-License-Identifier: MIT */
/* The name of the program that a JVM runs: "java: app.jar", "java: com.acme.Main". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define APPLICATION_PREFIX "java: "
#define APPLICATION_MAX 255 /* bytes of a name; the rest is cut off */

/*
 * Returns the argument that names the program: a jar, class or module. `arguments` are those of /proc/PID/cmdline, each
 * ending in NUL. Returns NULL if the process was not started by the java launcher, or if the program is named in an
 * @options file.
 */
const char *application_find(const char *arguments, size_t len);
/* Appends the name of the program in such arguments. 0, or -ENOENT if there is none. */
int application_from_arguments(const char *arguments, size_t len, struct buf *out);
/* The same from sun.java.command (the counter sun.rt.javaCommand): jar or class, then the arguments. */
int application_from_command(const char *command, struct buf *out);

/*
 * The name of an Apache Spark application. The arguments of its driver usually have it. Its executors find it in a
 * properties file from YARN, or have only the application's id.
 */

/* spark-submit on YARN puts it into the working directory of each container, by a link to an unpacked archive. */
#define SPARK_PROPERTIES "__spark_conf__/__spark_conf__.properties"

/* What a JVM's arguments say. The strings point into the arguments; NULL: the arguments have no such value. */
struct spark {
	bool is_own; /* the main class is one of Spark's */
	const char *name;
	const char *properties; /* path of a file that may have the name */
	const char *id; /* "application_1700000000000_0042", "app-20260101120000-0001" */
};

/* `arguments` are those of /proc/PID/cmdline, each ending in NUL. */
void spark_from_arguments(const char *arguments, size_t len, struct spark *ret_spark);
/* Appends the application's name in the text of a properties file. 0, or -ENOENT if it has none. */
int spark_from_properties(const char *text, size_t len, struct buf *out);
