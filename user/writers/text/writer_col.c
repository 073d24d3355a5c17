/* SPDX-License-Identifier: MIT */
/*
 * gProfiler's .col format: a line of JSON about the recording, then one line a stack: index of the program in
 * application_metadata, container, process, "appid: X" if known (the service, or the program), frames, count. Version 1
 * has no index and no container. Keys and their order are those of gProfiler 1.57 (gprofiler/merge.py, metadata/). Its
 * Performance Studio refuses a header that lacks a key of `metadata`, so a value that duet does not know is written as
 * "unknown" or null.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "writers/shared/tree.h"
#include "writers/writer.h"

#define UNKNOWN "unknown"
#define FLAGS_MAX 65536
#define DOCKERSHIM_RESTARTS 0 /* the last part of such a name; no reader uses it */

struct columns {
	const struct profile *profile;
	uint32_t version;
	const char *event;
	uint64_t interval_ns; /* interval of an event that is a clock, else 0 */
	uint32_t *metadata; /* for each owner, its index in application_metadata */
	json_t *applications; /* application_metadata, the first is null */
	struct map entries; /* hash of an entry's text -> its index there */
	size_t flags; /* in all entries */
};

/* Text from outside, which may hold any byte. */
static json_t *clean_string(const char *text, size_t len)
{
	BUF(raw);
	BUF(clean);

	buf_add(&raw, text, len);
	text_add_line(&clean, raw.data);
	return json_stringn(clean.data, clean.len);
}

static json_t *known(const struct profile *profile, uint32_t id)
{
	const char *text = profile_text(profile, id);

	return *text ? clean_string(text, strlen(text)) : json_string(UNKNOWN);
}

static json_t *event_of(const struct columns *columns)
{
	return clean_string(columns->event, strlen(columns->event));
}

static json_t *utc(uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / NS_PER_SEC);
	char text[32] = UNKNOWN;
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return json_string(text);
}

/* Takes ownership of `value`. If it is NULL (out of memory), null is written. */
static void put(json_t *object, const char *key, json_t *value)
{
	json_object_set_new(object, key, value ? value : json_null());
}

/* Appends the container's name; for Kubernetes in dockershim's form, as gProfiler does. "" outside of containers. */
static void add_container(const struct profile *profile, const struct profile_owner *owner, struct buf *out)
{
	const char *name = profile_text(profile, owner->container_name);

	if (!owner->container_kind)
		return;
	if (!owner->pod)
		return text_add_token(out, *name ? name : profile_text(profile, owner->container));
	buf_add_str(out, "k8s_");
	text_add_token(out, *name ? name : profile_text(profile, owner->container_id));
	buf_add_char(out, '_');
	text_add_token(out, profile_text(profile, owner->pod));
	buf_add_char(out, '_');
	text_add_token(out, profile_text(profile, owner->pod_namespace));
	buf_add_char(out, '_');
	text_add_token(out, profile_text(profile, owner->pod_uid));
	buf_printf(out, "_%d", DOCKERSHIM_RESTARTS);
}

static void add_lead(const void *context, const struct profile_thread *thread, struct buf *out)
{
	const struct columns *columns = context;
	const struct profile *profile = columns->profile;
	const struct profile_owner *owner = &profile->owners.items[thread->owner];
	const char *process = profile_text(profile, thread->process);

	if (columns->version >= 2) {
		buf_printf(out, "%u;", columns->metadata[thread->owner]);
		add_container(profile, owner, out);
		buf_add_char(out, ';');
	}
	text_add_token(out, *process ? process : "[unknown]");
	if (owner->service || owner->application) {
		buf_add_str(out, ";appid: ");
		text_add_token(out, profile_text(profile, owner->service ? owner->service : owner->application));
	}
}

static bool is_word(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(text, word, len);
}

/*
 * `line` is "Name=value". Type and kinds are unknown: only the VM has them. JDK 8 calls a flag that is set
 * "non-default".
 */
static json_t *flag_of(const char *line, size_t len)
{
	const char *equals = memchr(line, '=', len);
	const char *value = equals ? equals + 1 : line + len;
	size_t value_len = (size_t)(line + len - value);
	bool is_switch = is_word(value, value_len, "true") || is_word(value, value_len, "false");
	json_t *flag = json_object();

	put(flag, "name", clean_string(line, equals ? (size_t)(equals - line) : len));
	put(flag, "type", json_string(is_switch ? "bool" : UNKNOWN));
	put(flag, "value", clean_string(value, value_len));
	put(flag, "origin", json_string("non-default"));
	put(flag, "kind", json_array());
	return flag;
}

/* A flag of two bytes becomes an object: there are FLAGS_MAX of them at most. */
static json_t *flags_of(struct columns *columns, const char *lines)
{
	json_t *flags = json_array();

	for (size_t len; *lines && columns->flags < FLAGS_MAX; lines += len + (lines[len] == '\n')) {
		len = strcspn(lines, "\n");
		if (len && !json_array_append_new(flags, flag_of(lines, len)))
			columns->flags++;
	}
	return flags;
}

static json_t *application_of(struct columns *columns, const struct profile_owner *owner)
{
	const struct profile *profile = columns->profile;
	json_t *entry = json_object();

	put(entry, "java_version", owner->runtime ? known(profile, owner->runtime) : json_null());
	put(entry, "libjvm_elfid", owner->libjvm ? known(profile, owner->libjvm) : json_null());
	put(entry, "jvm_flags",
	    owner->vm_flags ? flags_of(columns, profile_text(profile, owner->vm_flags)) : json_null());
	put(entry, "exe", known(profile, owner->executable));
	put(entry, "execfn", owner->executed_as ? known(profile, owner->executed_as) : json_null());
	put(entry, "arch", known(profile, profile->host.machine));
	return entry;
}

/* Returns the index of an equal entry, which is added if new. Takes ownership of `entry`. 0 when out of memory. */
static uint64_t application_index(struct columns *columns, json_t *entry)
{
	char *text = json_dumps(entry, JSON_COMPACT);
	uint64_t key = text ? hash_bytes(text, strlen(text), 0) : 0, index = json_array_size(columns->applications);

	free(text);
	if (text && map_get(&columns->entries, key, &index)) {
		json_decref(entry);
		return index;
	}
	if (json_array_append_new(columns->applications, entry) < 0 || map_put(&columns->entries, key, index) < 0)
		return 0;
	return index;
}

/* Hash of a program. One program has many owners, so entries are made once a program. */
static uint64_t program_key(const struct profile_owner *owner)
{
	const uint32_t about[] = {owner->executable, owner->executed_as, owner->runtime, owner->libjvm,
				  owner->vm_flags};

	return hash_bytes(about, sizeof(about), 0);
}

static int find_applications(struct columns *columns)
{
	const struct profile *profile = columns->profile;
	struct map by_program = {0};
	int err = 0;

	columns->metadata = calloc(profile->owners.len, sizeof(*columns->metadata));
	columns->applications = json_array();
	if (!columns->metadata || json_array_append_new(columns->applications, json_null()) < 0)
		return -ENOMEM;
	for (size_t i = 0; !err && i < profile->owners.len; i++) {
		const struct profile_owner *owner = &profile->owners.items[i];
		uint64_t index;

		if (!owner->application)
			continue;
		if (!map_get(&by_program, program_key(owner), &index)) {
			index = application_index(columns, application_of(columns, owner));
			err = map_put(&by_program, program_key(owner), index);
		}
		columns->metadata[i] = (uint32_t)index;
	}
	map_release(&by_program);
	return err;
}

/* Returns the names of all containers, each once. */
static json_t *containers_of(const struct profile *profile)
{
	json_t *names = json_array(), *seen = json_object();
	BUF(name);

	for (size_t i = 0; i < profile->owners.len; i++) {
		buf_clear(&name);
		add_container(profile, &profile->owners.items[i], &name);
		if (!name.len || json_object_get(seen, name.data))
			continue;
		put(seen, name.data, json_true());
		json_array_append_new(names, json_string(name.data));
	}
	json_decref(seen);
	return names;
}

/* Returns 0 for an event that is not a clock. */
static uint64_t frequency_of(const struct columns *columns)
{
	return columns->interval_ns ? (NS_PER_SEC + columns->interval_ns / 2) / columns->interval_ns : 0;
}

/* Leaves out the command line, which may hold passwords. */
static json_t *run_arguments(const struct columns *columns)
{
	const struct profile *profile = columns->profile;
	const struct profile_host *host = &profile->host;
	uint64_t duration_ns = host->window_ns ? host->window_ns : profile->end_ns - profile->start_ns;
	json_t *arguments = json_object();

	put(arguments, "frequency", json_integer((json_int_t)frequency_of(columns)));
	put(arguments, "duration", json_integer((json_int_t)(duration_ns / NS_PER_SEC)));
	put(arguments, "continuous", json_boolean(host->window_ns != 0));
	put(arguments, "mode", event_of(columns));
	return arguments;
}

static void put_system(const struct profile *profile, json_t *metadata)
{
	const struct profile_host *host = &profile->host;

	put(metadata, "python_version", json_string("none"));
	put(metadata, "run_mode", json_string("standalone_executable"));
	put(metadata, "deployment_type", json_string("instances"));
	put(metadata, "kernel_release", known(profile, host->kernel_release));
	put(metadata, "kernel_version", known(profile, host->kernel_version));
	put(metadata, "system_name", json_string("Linux"));
	put(metadata, "hypervisor", json_string(UNKNOWN));
	put(metadata, "processors", json_integer(host->processors));
	put(metadata, "cpu_model_name", known(profile, host->cpu_model));
	put(metadata, "cpu_arch_codename", json_string(UNKNOWN));
	put(metadata, "cpu_flags", known(profile, host->cpu_flags));
	put(metadata, "memory_capacity_mb", json_integer((json_int_t)(host->memory_bytes >> 20)));
	put(metadata, "hostname", known(profile, host->name));
	put(metadata, "system", json_string("Linux"));
	put(metadata, "os_name", known(profile, host->os_name));
	put(metadata, "os_release", known(profile, host->os_release));
	put(metadata, "os_codename", known(profile, host->os_codename));
	put(metadata, "libc_type", json_string(UNKNOWN));
	put(metadata, "libc_version", json_string(UNKNOWN));
	put(metadata, "hardware_type", known(profile, host->machine));
	put(metadata, "pid", json_integer(host->loader));
	put(metadata, "mac_address", json_string(UNKNOWN)); /* these two would identify the machine */
	put(metadata, "private_ip", json_string(UNKNOWN));
	put(metadata, "spawn_uptime_ms", json_integer((json_int_t)(host->spawned_boot_ns / NS_PER_MS)));
}

/* The keys for which files of the machine have values. gProfiler's other keys would need requests over the network. */
static json_t *cloud_of(const struct profile *profile)
{
	const struct profile_host *host = &profile->host;
	json_t *cloud = json_object();

	if (host->cloud_region)
		put(cloud, "region", known(profile, host->cloud_region));
	if (host->cloud_zone)
		put(cloud, "zone", known(profile, host->cloud_zone));
	if (host->cloud_type)
		put(cloud, "instance_type", known(profile, host->cloud_type));
	return cloud;
}

static json_t *metadata_of(const struct columns *columns)
{
	const struct profile *profile = columns->profile;
	const struct profile_host *host = &profile->host;
	json_t *metadata = json_object();

	put(metadata, "cloud_provider", known(profile, host->cloud));
	put(metadata, "agent_version", known(profile, host->version));
	put(metadata, "spawn_time", utc(host->spawned_realtime_ns));
	put_system(profile, metadata);
	put(metadata, "cloud_info", cloud_of(profile));
	put(metadata, "run_arguments", run_arguments(columns));
	put(metadata, "big_data", json_object());
	put(metadata, "external_metadata", json_object());
	put(metadata, "profiling_mode", event_of(columns));
	put(metadata, "current_time", utc(profile->start_realtime_ns + (profile->end_ns - profile->start_ns)));
	return metadata;
}

static json_t *rounded(double percent)
{
	return json_real((double)(int64_t)(percent * 100 + 0.5) / 100);
}

static json_t *header_of(const struct columns *columns)
{
	const struct profile *profile = columns->profile;
	json_t *header = json_object(), *metrics = json_object();
	bool is_cpu = !strcmp(columns->event, "cpu");

	put(metrics, "cpu_avg", rounded(profile->host.cpu_percent));
	put(metrics, "mem_avg", rounded(profile->host.memory_percent));
	put(header, "containers", containers_of(profile));
	put(header, "container_names_enabled", json_true());
	put(header, "metadata", metadata_of(columns));
	put(header, "metrics", metrics);
	put(header, "application_metadata", json_incref(columns->applications));
	put(header, "application_metadata_enabled", json_true());
	put(header, "profiling_mode", event_of(columns));
	put(header, "hwmetrics", json_null());
	put(header, "htmlblob", json_null());
	put(header, "flamegraph_html", json_null());
	put(header, "sampling_event", is_cpu ? json_string("cpu-time") : event_of(columns));
	put(header, "sampling_mode", json_string("frequency"));
	put(header, "sampling_frequency", json_integer((json_int_t)frequency_of(columns)));
	return header;
}

static int write_header(const struct columns *columns, FILE *out)
{
	json_t *header = header_of(columns);
	char *text = header ? json_dumps(header, JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6)) : NULL;

	if (text)
		fprintf(out, "# %s\n", text);
	free(text);
	json_decref(header);
	return text ? 0 : -ENOMEM;
}

static int write_columns(struct columns *columns, const struct writer_options *options, FILE *out)
{
	struct tree tree;
	int err = find_applications(columns);

	if (!err)
		err = tree_build(&tree, columns->profile, options);
	if (err < 0)
		return err;
	err = tree_sort(&tree, NULL);
	if (!err)
		err = write_header(columns, out);
	if (!err)
		err = collapsed_write_stacks(&tree, options, out);
	tree_release(&tree);
	return err ? err : writer_finish(out);
}

static int col_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct columns columns = {
		.profile = profile,
		.version = options->col_version,
		.event = writer_event(profile, options),
	};
	struct writer_options ours = *options;
	int err;

	if (options->event < profile->events.len && profile->events.items[options->event].unit == PROFILE_NS)
		columns.interval_ns = profile->events.items[options->event].interval;
	ours.reverse = ours.processes = false;
	memset(ours.by, 0, sizeof(ours.by)); /* WRITER_BY_NONE: the columns replace --by */
	ours.style.signatures = ours.style.annotate = ours.style.dotted = true;
	ours.lead = add_lead;
	ours.lead_context = &columns;
	err = write_columns(&columns, &ours, out);
	json_decref(columns.applications);
	map_release(&columns.entries);
	free(columns.metadata);
	return err;
}

const struct writer writer_col = {
	.name = "col",
	.extensions = "col",
	.help = "gProfiler's .col: a header, then stacks with container, process and application",
	.write = col_write,
};
