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

static void expect_text(const char *got, const char *want)
{
	if (!got || !want)
		assert_ptr_equal(got, want);
	else
		assert_string_equal(got, want);
}

static void check(const char *arguments, size_t len, const struct spark *want)
{
	char *exact = malloc(len ? len : 1);
	struct spark spark;

	assert_non_null(exact);
	memcpy(exact, arguments, len);
	spark_from_arguments(exact, len, &spark);
	assert_int_equal(spark.is_own, want->is_own);
	expect_text(spark.name, want->name);
	expect_text(spark.properties, want->properties);
	expect_text(spark.id, want->id);
	free(exact);
}

/* A string literal's own NUL ends the last argument, as in /proc/PID/cmdline. */
#define CHECK(arguments, ...) check(arguments, sizeof(arguments), &(struct spark){__VA_ARGS__})

#define SUBMIT "/usr/bin/java\0-cp\0/opt/spark/conf/:/opt/spark/jars/*\0-Xmx1g\0org.apache.spark.deploy.SparkSubmit\0"

/* As spark-submit starts it. */
static void drivers(void **state)
{
	CHECK(SUBMIT "--master\0yarn\0--class\0com.acme.Report\0--name\0Daily report\0/opt/report.jar\0--name\0mine",
	      .is_own = true, .name = "Daily report");
	CHECK(SUBMIT "--conf\0spark.app.name=By conf\0--conf\0spark.app.name.x=y\0spark-shell", .is_own = true,
	      .name = "By conf");
	CHECK(SUBMIT "-c\0spark.app.name=By conf\0--name=By name\0--verbose\0a.jar\0--app-id\0x", .is_own = true,
	      .name = "By name");
	CHECK(SUBMIT "--supervise\0--properties-file\0/opt/spark/conf/spark.properties\0--class\0A\0local:///a.jar",
	      .is_own = true, .properties = "/opt/spark/conf/spark.properties");
	CHECK(SUBMIT "a.jar\0--name\0mine", .is_own = true);
}

static void executors(void **state)
{
	CHECK("/usr/lib/jvm/java/bin/java\0-server\0-Xmx1024m\0-Dspark.driver.port=40001\0"
	      "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend\0--driver-url\0"
	      "spark://CoarseGrainedScheduler@h:40001\0--executor-id\0001\0--hostname\0h\0--cores\0001\0--app-id\0"
	      "application_1700000000000_0042\0--resourceProfileId\0000",
	      .is_own = true, .id = "application_1700000000000_0042");
	CHECK("java\0-Dspark.app.name=Property\0-cp\0x\0org.apache.spark.executor.CoarseGrainedExecutorBackend\0"
	      "--app-id\0app-1",
	      .is_own = true, .name = "Property", .id = "app-1");
	CHECK("java\0org.apache.spark.deploy.yarn.ApplicationMaster\0--class\0A\0--arg\0--name\0--arg\0x\0"
	      "--properties-file\0/y/__spark_conf__/__spark_conf__.properties",
	      .is_own = true, .properties = "/y/__spark_conf__/__spark_conf__.properties");
}

static void others(void **state)
{
	check("", 0, &(struct spark){0});
	check(SUBMIT "--name\0cut", sizeof(SUBMIT "--name\0cut") - 1, &(struct spark){0});
	CHECK("java\0com.acme.Main\0--name\0mine\0--app-id\0x", .is_own = false);
	CHECK("java\0-Dspark.app.name=First\0-Dspark.app.name=Embedded\0com.acme.Main\0-Dspark.app.name=argument",
	      .name = "Embedded");
	CHECK("java\0org.apache.sparkling.Main\0--name\0mine", .is_own = false);
	CHECK(SUBMIT "--name", .is_own = true);
	CHECK(SUBMIT "--name\0\0--conf\0spark.app.name=", .is_own = true);
}

static void expect_name(const char *text, const char *want)
{
	size_t len = strlen(text);
	char *exact = malloc(len + 1);
	struct buf name;

	assert_non_null(exact);
	memcpy(exact, text, len);
	buf_init(&name);
	assert_int_equal(spark_from_properties(exact, len, &name), want ? 0 : -ENOENT);
	assert_string_equal(name.data, want ? want : "");
	buf_release(&name);
	free(exact);
}

static void properties(void **state)
{
	expect_name("#Spark configuration.\n#Sun Nov 22 2026\nspark.master=yarn\nspark.app.name=Daily report\n"
		    "spark.app.id=x",
		    "Daily report");
	expect_name("spark.app.name   By blanks  \r\n", "By blanks");
	expect_name(" spark.app.name : colon\nspark.app.name=last", "last");
	expect_name("spark.app.name=a\\:b\\=c\\#\\\\ \\u00e9\\uD83D\\uDE00\\t.", "a:b=c#\\ \xc3\xa9\xf0\x9f\x98\x80 .");
}

static void hostile_properties(void **state)
{
	expect_name("", NULL);
	expect_name("spark.app.name", NULL);
	expect_name("spark.app.name=", NULL);
	expect_name("spark.app.names=x\nxspark.app.name=x\n#spark.app.name=x\n", NULL);
	expect_name("spark.app.name=a\\", "a\\");
	expect_name("spark.app.name=a\\u12", "a12");
	expect_name("spark.app.name=a\\u0000b\\ud800c\\udc00\\ud800\\u0041", "a0000b?c??A");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drivers),    cmocka_unit_test(executors),	    cmocka_unit_test(others),
		cmocka_unit_test(properties), cmocka_unit_test(hostile_properties),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
