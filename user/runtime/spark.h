/* SPDX-License-Identifier: MIT */
/*
 * What an application of Apache Spark is called. Its driver is started with the name, mostly; its executors know it
 * from a file of YARN's, or are told no more than the application's id.
 */
#ifndef RUNTIME_SPARK_H
#define RUNTIME_SPARK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* As spark-submit on YARN lays it into the working directory of each container, a link to an unpacked archive. */
#define SPARK_PROPERTIES "__spark_conf__/__spark_conf__.properties"

/* What a JVM's arguments say; pointers into them, NULL for what they do not. */
struct spark {
	bool is_own; /* the main class is one of Spark's */
	const char *name;
	const char *properties; /* a file that may have the name */
	const char *id; /* "application_1700000000000_0042", "app-20260101120000-0001" */
};

/* Of a /proc/PID/cmdline, arguments that end in NUL. */
void spark_from_arguments(const char *arguments, size_t len, struct spark *ret_spark);
/* Appends the name that a properties file has. 0 or -ENOENT. */
int spark_from_properties(const char *text, size_t len, struct buf *out);

#endif
