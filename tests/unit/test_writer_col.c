/* SPDX-License-Identifier: MIT */
#include "fixtures/profiles.h"

#include <errno.h>
#include <jansson.h>

static uint32_t text(struct profile *p, const char *value)
{
	return intern_str(&p->strings, value);
}

/* A JVM in Kubernetes, the same program on the host, a container without names, and hostile text in all of them. */
static void profile_of_owners(struct profile *p)
{
	uint32_t root, run, kernel, java = 0, threads[4];
	struct profile_owner owners[] = {
		{.pid = 1,
		 .application = text(p, "java: app.jar"),
		 .executable = text(p, "/opt/jdk/bin/java"),
		 .executed_as = text(p, "/usr/bin/java"),
		 .runtime = text(p, "OpenJDK 64-Bit Server VM 17.0.15+6"),
		 .libjvm = text(p, "buildid:97da31b249941f25ff26a6126471221bb579d67f"),
		 .vm_flags = text(p, "MaxHeapSize=536870912\nUseG1GC=true\n"),
		 .container = text(p, "prod/web-0/app"),
		 .container_kind = text(p, "kubernetes"),
		 .container_id = text(p, "0123456789abcdef"),
		 .container_name = text(p, "app"),
		 .pod = text(p, "web-0"),
		 .pod_namespace = text(p, "prod"),
		 .pod_uid = text(p, "aa-bb")},
		{.pid = 2,
		 .application = text(p, "java: a;b\n"),
		 .executable = text(p, "/opt/jdk/bin/java"),
		 .vm_flags = text(p, "\n"), /* none */
		 .container = text(p, "/user.slice")},
		{.pid = 3,
		 .container = text(p, "0123456789ab"),
		 .container_kind = text(p, "docker"),
		 .container_id = text(p, "0123456789ab0000")},
		{.pid = 4,
		 .application = text(p, "java: x"),
		 .executable = text(p, HOSTILE),
		 .container = text(p, HOSTILE),
		 .container_kind = text(p, "docker"),
		 .container_name = text(p, HOSTILE)},
	};

	root = frame_of(p, FRAME_NATIVE, "start_thread", "libc.so.6");
	run = java_frame(p, FRAME_COMPILED, "Fibonacci", "main", "([Ljava/lang/String;)V", 7);
	java = java_frame(p, FRAME_INTERPRETED, "com.acme.Main", "run", "(I)J", 0);
	kernel = frame_of(p, FRAME_KERNEL, "vfs_read", "");
	for (size_t i = 0; i < 4; i++)
		threads[i] = profile_thread(p, owners[i].pid, owners[i].pid, "worker", i == 3 ? HOSTILE : "java",
					    profile_owner(p, &owners[i]));
	ADD_STACK(p, threads[0], 3, root, run, kernel);
	ADD_STACK(p, threads[1], 2, root, run, java);
	ADD_STACK(p, threads[2], 1, root);
	ADD_STACK(p, threads[3], 4, root, run);
}

static void describe(struct profile *p)
{
	p->events.items[0].interval = 10 * MS;
	p->start_ns = 5000 * MS;
	p->end_ns = 65000 * MS;
	p->start_realtime_ns = 1763634277ull * 1000 * MS;
	profile_add_fact(p, "command", "duet record -- java -Dpassword=secret");
	p->host = (struct profile_host){
		.version = text(p, "1.2.3"),
		.name = text(p, "host-1"),
		.kernel_release = text(p, "6.1.0"),
		.kernel_version = text(p, "#1 SMP"),
		.machine = text(p, "x86_64"),
		.os_name = text(p, "Debian GNU/Linux"),
		.os_release = text(p, "12"),
		.os_codename = text(p, "bookworm"),
		.cpu_model = text(p, "\"CPU\" \xff"),
		.cpu_flags = text(p, "fpu sse"),
		.cloud = text(p, "aws"),
		.cloud_zone = text(p, "eu-west-1a"),
		.cloud_type = text(p, "m5.large"),
		.processors = 2,
		.loader = 77,
		.memory_bytes = 24ull << 30,
		.spawned_realtime_ns = 1763634000ull * 1000 * MS,
		.spawned_boot_ns = 12345 * MS,
		.window_ns = 60000 * MS,
		.cpu_percent = 12.346,
		.memory_percent = 50,
	};
}

static int setup(void **state)
{
	struct profile *p = malloc(sizeof(*p));

	assert_non_null(p);
	assert_int_equal(profile_init(p), 0);
	profile_of_owners(p);
	describe(p);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	profile_release(*state);
	free(*state);
	return 0;
}

static char *col_of(const struct profile *profile, uint32_t version)
{
	struct writer_options options;

	writer_options_default(&options);
	options.col_version = version;
	options.processes = true; /* as --host has it: the columns say it already */
	return written("col", profile, &options);
}

static void versions_match_golden(void **state)
{
	char *v1 = col_of(*state, 1), *v2 = col_of(*state, 2);

	assert_golden("v1.col", v1);
	assert_golden("v2.col", v2);
	free(v1);
	free(v2);
}

static json_t *header_of(char *col)
{
	json_t *header;

	assert_memory_equal(col, "# {", 3);
	header = json_loadb(col + 2, strcspn(col, "\n") - 2, 0, NULL);
	assert_non_null(header);
	return header;
}

/* What the Performance Studio asks for. */
static const char *const keys[] = {
	"containers",
	"container_names_enabled",
	"metadata",
	"metrics",
	"application_metadata",
	"application_metadata_enabled",
	"profiling_mode",
	"hwmetrics",
	"htmlblob",
	"flamegraph_html",
	"sampling_event",
	"sampling_mode",
	"sampling_frequency",
};
static const char *const metadata_keys[] = {
	"cloud_provider",
	"agent_version",
	"spawn_time",
	"current_time",
	"cloud_info",
	"run_arguments",
	"big_data",
	"external_metadata",
	"profiling_mode",
	"python_version",
	"run_mode",
	"deployment_type",
	"kernel_release",
	"kernel_version",
	"system_name",
	"hypervisor",
	"processors",
	"cpu_model_name",
	"cpu_arch_codename",
	"cpu_flags",
	"memory_capacity_mb",
	"hostname",
	"system",
	"os_name",
	"os_release",
	"os_codename",
	"libc_type",
	"libc_version",
	"hardware_type",
	"pid",
	"mac_address",
	"private_ip",
	"spawn_uptime_ms",
};

static void expect_keys(const json_t *object, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_non_null(json_object_get(object, names[i]));
}

/* run_arguments holds nothing that the user typed. */
static void the_header_has_every_key(void **state)
{
	char *col = col_of(*state, 2);
	json_t *header = header_of(col);

	expect_keys(header, keys, sizeof(keys) / sizeof(*keys));
	expect_keys(json_object_get(header, "metadata"), metadata_keys, sizeof(metadata_keys) / sizeof(*metadata_keys));
	assert_null(strstr(col, "secret"));
	json_decref(header);
	free(col);
}

/* Each line's first column is an index of application_metadata. */
static void indices_are_of_the_header(void **state)
{
	char *col = col_of(*state, 2), *rest = strchr(col, '\n') + 1;
	json_t *header = header_of(col);
	size_t count = json_array_size(json_object_get(header, "application_metadata")), lines = 0;

	assert_true(json_is_null(json_array_get(json_object_get(header, "application_metadata"), 0)));
	for (char *line = strtok(rest, "\n"); line; line = strtok(NULL, "\n"), lines++) {
		char *end;
		unsigned long index = strtoul(line, &end, 10);

		assert_true(*end == ';' && index < count);
		assert_non_null(strchr(end + 1, ';'));
	}
	assert_int_equal(lines, 4);
	json_decref(header);
	free(col);
}

/* Readers expect texts there: null, for text that is no UTF-8, would make them refuse the file. */
static void broken_utf8_is_text(void **state)
{
	struct profile p;
	struct profile_owner owner = {.pid = 1};
	json_t *header, *program, *flag;
	char *col;

	assert_int_equal(profile_init(&p), 0);
	profile_event(&p, "ev\xff", PROFILE_COUNT, 1);
	owner.application = text(&p, "java: app.jar");
	owner.vm_flags = text(&p, "Bad\xc3=\xff\x01\n");
	ADD_STACK(&p, profile_thread(&p, 1, 1, "worker", "java", profile_owner(&p, &owner)), 1,
		  frame_of(&p, FRAME_NATIVE, "start_thread", "libc.so.6"));
	col = col_of(&p, 2);
	header = header_of(col);
	program = json_array_get(json_object_get(header, "application_metadata"), 1);
	flag = json_array_get(json_object_get(program, "jvm_flags"), 0);
	assert_string_equal(json_string_value(json_object_get(flag, "name")), "Bad?");
	assert_string_equal(json_string_value(json_object_get(flag, "value")), "??");
	assert_string_equal(json_string_value(json_object_get(header, "profiling_mode")), "ev?");
	assert_string_equal(json_string_value(json_object_get(header, "sampling_event")), "ev?");
	json_decref(header);
	free(col);
	profile_release(&p);
}

/* A frame at the root that is no code comes after the columns, which other programs take apart. */
static void columns_come_first(void **state)
{
	struct profile p;
	struct profile_owner owner = {.pid = 1};
	uint32_t cpu, run;
	char *col;

	assert_int_equal(profile_init(&p), 0);
	profile_event(&p, "cpu", PROFILE_NS, 10 * MS);
	cpu = frame_of(&p, FRAME_CPU, "[CPU-1]", "");
	run = frame_of(&p, FRAME_NATIVE, "run", "");
	ADD_STACK(&p, profile_thread(&p, 1, 1, "worker", "java", profile_owner(&p, &owner)), 1, cpu, run);
	col = col_of(&p, 2);
	assert_non_null(strstr(col, "\n0;;java;[CPU-1];run 1\n"));
	free(col);
	profile_release(&p);
}

static void an_empty_profile_is_a_header(void **state)
{
	struct profile empty;
	char *col;

	assert_int_equal(profile_init(&empty), 0);
	col = col_of(&empty, 2);
	json_decref(header_of(col));
	assert_string_equal(strchr(col, '\n'), "\n");
	free(col);
	profile_release(&empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_match_golden),
		cmocka_unit_test(the_header_has_every_key),
		cmocka_unit_test(indices_are_of_the_header),
		cmocka_unit_test(broken_utf8_is_text),
		cmocka_unit_test(columns_come_first),
		cmocka_unit_test(an_empty_profile_is_a_header),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
