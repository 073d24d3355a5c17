/* SPDX-License-Identifier: MIT */
#include "writers/otlp/resource.h"

#include <string.h>

#include "base/text.h"
#include "otlp.pb-c.h"
#include "profile/pprof.h"

#define RESOURCE_ATTRIBUTES 20

struct resource {
	Otlp__KeyValue items[RESOURCE_ATTRIBUTES], *pointers[RESOURCE_ATTRIBUTES];
	Otlp__AnyValue values[RESOURCE_ATTRIBUTES];
	struct buf texts[RESOURCE_ATTRIBUTES];
	size_t count;
};

static Otlp__AnyValue *add_attribute(struct resource *resource, const char *key)
{
	size_t at = resource->count++;

	otlp__key_value__init(&resource->items[at]);
	otlp__any_value__init(&resource->values[at]);
	resource->items[at].key = (char *)key;
	resource->items[at].value = &resource->values[at];
	resource->pointers[at] = &resource->items[at];
	return &resource->values[at];
}

static void add_text(struct resource *resource, const char *key, const char *text)
{
	struct buf *clean = &resource->texts[resource->count];
	Otlp__AnyValue *value;

	if (!*text)
		return;
	value = add_attribute(resource, key);
	buf_init(clean);
	text_add_line(clean, text);
	value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	value->string_value = clean->data;
}

static void add_number(struct resource *resource, const char *key, uint64_t number)
{
	Otlp__AnyValue *value = add_attribute(resource, key);

	value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
	value->int_value = (int64_t)number;
}

/* The name of an architecture in the semantic conventions. */
static const char *arch_name(const char *machine)
{
	if (!strcmp(machine, "x86_64"))
		return "amd64";
	return strcmp(machine, "aarch64") ? machine : "arm64";
}

static void describe_process(const struct profile *profile, const struct profile_thread *thread,
			     struct resource *resource)
{
	const struct intern *strings = &profile->strings;
	const struct profile_owner *owner = &profile->owners.items[thread->owner];
	const char *process = intern_text(strings, thread->process);
	const char *application = intern_text(strings, owner->application);

	add_text(resource, "service.name", *application ? application : process);
	if (thread->pid)
		add_number(resource, "process.pid", thread->pid);
	add_text(resource, "process.executable.name", process);
	add_text(resource, "process.executable.path", intern_text(strings, owner->executable));
	add_text(resource, "process.runtime.description", intern_text(strings, owner->runtime));
	add_text(resource, "process.linux.cgroup", intern_text(strings, owner->cgroup));
	add_text(resource, "container.id", intern_text(strings, owner->container_id));
	add_text(resource, "container.name", intern_text(strings, owner->container_name));
	add_text(resource, "container.runtime", intern_text(strings, owner->container_kind));
	add_text(resource, "k8s.pod.name", intern_text(strings, owner->pod));
	add_text(resource, "k8s.namespace.name", intern_text(strings, owner->pod_namespace));
	add_text(resource, OTLP_CONTAINER, intern_text(strings, owner->container));
	add_text(resource, "k8s.pod.uid", intern_text(strings, owner->pod_uid));
}

static void describe_host(const struct profile *profile, struct resource *resource)
{
	const struct intern *strings = &profile->strings;
	const struct profile_host *host = &profile->host;

	add_text(resource, "host.name", intern_text(strings, host->name));
	add_text(resource, "host.arch", arch_name(intern_text(strings, host->machine)));
	add_text(resource, "os.type", "linux");
	add_text(resource, "os.name", intern_text(strings, host->os_name));
	add_text(resource, "os.version", intern_text(strings, host->os_release));
}

void otlp_pack_resource(const struct profile *profile, const struct profile_thread *thread, struct buf *to)
{
	Otlp__Resource message = OTLP__RESOURCE__INIT;
	struct resource resource = {.count = 0};
	size_t len;

	describe_process(profile, thread, &resource);
	describe_host(profile, &resource);
	message.n_attributes = resource.count;
	message.attributes = resource.pointers;
	len = otlp__resource__get_packed_size(&message);
	if (buf_reserve(to, len))
		to->len += otlp__resource__pack(&message, (uint8_t *)to->data + to->len);
	for (size_t i = 0; i < resource.count; i++) {
		to->failed |= resource.texts[i].failed;
		buf_release(&resource.texts[i]);
	}
}

void otlp_profile_id(const struct profile *profile, const struct profile_sample *sample, uint8_t ret[16])
{
	const struct profile_thread *thread = &profile->threads.items[sample->thread];
	const uint64_t of[] = {profile->start_realtime_ns, thread->pid, thread->owner, sample->event};
	const char *host = intern_text(&profile->strings, profile->host.name);
	const char *process = intern_text(&profile->strings, thread->process);
	uint64_t low = 0, high;

	for (; *host; host++)
		low = hash_u64(low + (unsigned char)*host + 1);
	for (; *process; process++)
		low = hash_u64(low + (unsigned char)*process + 1);
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		low = hash_u64(low + of[i] + 1);
	high = hash_u64(low + 1);
	memcpy(ret, &low, sizeof(low));
	memcpy(ret + sizeof(low), &high, sizeof(high));
}
