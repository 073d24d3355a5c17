/* SPDX-License-Identifier: MIT */
#include "subject/owners.h"

#include <string.h>

#include "base/clock.h"
#include "runtime/application.h"
#include "subject/program.h"
#include "writers/shared/filter.h"

#define MEMBERSHIP_AGE_NS NS_PER_SEC /* facts that only /proc has are read again at most this often */
#define NAMELESS_NS (3 * NS_PER_SEC) /* a JVM may need this long to publish what it runs */

void owners_open(struct owners *owners, struct profile *profile, bool spark_names)
{
	*owners = (struct owners){.profile = profile, .spark_names = spark_names};
	containers_open(&owners->containers, "/");
}

void owners_release(struct owners *owners)
{
	containers_release(&owners->containers);
}

/* ---- the program a JVM runs ---- */

static bool is_still(const struct process *process)
{
	uint64_t start_ticks;

	return !process_read_start_ticks(process->pid, &start_ticks) && start_ticks == process->start_ticks;
}

static uint32_t executable_of(struct owners *owners, const struct process *process)
{
	return intern_str(&owners->profile->strings, process->executable ? process->executable : "");
}

static void fill_program(const struct subject *subject, struct profile_owner *owner)
{
	owner->application = subject->application;
	owner->executed_as = subject->executed_as;
	owner->runtime = subject->vm;
	owner->libjvm = subject->libjvm;
	owner->vm_flags = subject->vm_flags;
}

/* Samples from before the JVM was recognised, or before it had published everything, belong to the same program. */
static void fill_earlier_rows(struct owners *owners, struct process *process)
{
	const struct subject *subject = subject_of(process);
	struct profile *profile = owners->profile;
	uint32_t executable = executable_of(owners, process);

	for (size_t i = 0; i < profile->owners.len; i++) {
		struct profile_owner *owner = &profile->owners.items[i];

		if (owner->pid == (uint32_t)process->pid && owner->start_ticks == process->start_ticks &&
		    owner->executable == executable &&
		    (!owner->application || owner->application == subject->application))
			fill_program(subject, owner);
	}
}

static void find_application(struct owners *owners, struct process *process, const struct mapping *libjvm)
{
	struct subject *subject = subject_of(process);
	struct intern *strings = &owners->profile->strings;
	BUF(name);
	BUF(id);
	BUF(executed_as);
	size_t len;
	int err;

	program_executed_as(process, &executed_as);
	program_libjvm(process, libjvm, &id);
	err = program_name(process, &name);
	len = name.len;
	if (!err && owners->spark_names)
		program_add_spark(process->pid, &name);
	if (!err && is_still(process)) {
		subject->program = intern_bytes(strings, name.data, len);
		subject->application = intern_str(strings, name.data);
		subject->executed_as = intern_str(strings, executed_as.data);
		subject->libjvm = intern_str(strings, id.data);
	}
}

static void find_vm_flags(struct owners *owners, struct process *process)
{
	BUF(flags);

	if (!program_vm_flags(process, process_age_ns(process) < NAMELESS_NS, &flags) && is_still(process))
		subject_of(process)->vm_flags = intern_str(&owners->profile->strings, flags.data);
}

static void find_program(struct owners *owners, struct process *process)
{
	const struct subject *subject = subject_of(process);
	const struct mapping *libjvm = maps_libjvm(&process->maps);

	if (!process->exited && libjvm) {
		if (!subject->application)
			find_application(owners, process, libjvm);
		if (subject->application && !subject->vm_flags)
			find_vm_flags(owners, process);
	}
	if (subject->application)
		fill_earlier_rows(owners, process);
}

void owners_exec(struct process *process)
{
	struct subject *subject = subject_of(process);

	*subject = (struct subject){.owner = subject->owner, .owner_cgroup = subject->owner_cgroup};
}

void owners_new_profile(struct process *process, struct intern_move *move)
{
	struct subject *subject = subject_of(process);

	subject->owner_ns = 0;
	subject->program = intern_moved(move, subject->program);
	subject->application = intern_moved(move, subject->application);
	subject->executed_as = intern_moved(move, subject->executed_as);
	subject->libjvm = intern_moved(move, subject->libjvm);
	subject->vm_flags = intern_moved(move, subject->vm_flags);
	subject->vm = intern_moved(move, subject->vm);
}

/* ---- the container ---- */

/* Returns the id of the current cgroup from /proc; 0 when unknown. */
static uint64_t cgroup_of(const struct owners *owners, const struct process *process)
{
	BUF(line);
	BUF(path);
	uint64_t id = 0;

	if (!cgroup_of_process(process->pid, false, &line) && line.len && is_still(process))
		(void)cgroup_find(&owners->containers.tree, line.data, &id, &path);
	return id;
}

static void fill_container(struct owners *owners, const struct container *container, struct profile_owner *owner)
{
	struct intern *strings = &owners->profile->strings;
	BUF(label);

	container_label(container, &label);
	owner->container = intern_str(strings, label.data);
	owner->container_kind = intern_str(strings, container_kind_name(container->ref.kind));
	owner->container_id = intern_str(strings, container->ref.id);
	owner->container_name = intern_str(strings, container->names.name);
	owner->pod = intern_str(strings, container->names.pod);
	owner->pod_namespace = intern_str(strings, container->names.namespace);
	owner->pod_uid = intern_str(strings, container->ref.pod_uid);
}

/* On hosts with cgroup v1 all processes are in the root of v2, so the container comes from v1. */
static const struct container *container_of(struct owners *owners, const struct process *process, uint64_t cgroup_id)
{
	const struct container *container = containers_get(&owners->containers, cgroup_id);
	const struct container *by_v1;

	if (cgroup_id != CGROUP_ROOT_ID)
		return container;
	by_v1 = containers_of_process(&owners->containers, process->pid);
	return by_v1 && is_still(process) ? by_v1 : container;
}

const struct container *owners_container(struct owners *owners, const struct process *process)
{
	return container_of(owners, process, cgroup_of(owners, process));
}

/* ---- lists of names ---- */

static bool is_container_listed(struct owners *owners, const struct process *process,
				const struct opt_strings *patterns)
{
	uint64_t cgroup_id = cgroup_of(owners, process);
	const struct container *container = container_of(owners, process, cgroup_id);
	BUF(label);

	container_label(container, &label);
	return filter_match(patterns, label.data) || filter_match(patterns, container->names.name) ||
	       filter_match(patterns, container->ref.id) ||
	       filter_match(patterns, containers_get(&owners->containers, cgroup_id)->path);
}

/* Compares the current user: services start as root and then change their user. */
static bool is_user_listed(const struct process *process, const struct owners_list *list)
{
	uid_t uid = process->uid;

	if (list->users.len)
		(void)process_read_uid(process->pid, &uid);
	for (size_t i = 0; i < list->users.len; i++)
		if (list->users.items[i] == uid)
			return true;
	return false;
}

bool owners_is_listed(struct owners *owners, struct process *process, const struct owners_list *list)
{
	const struct opt_strings *patterns = &list->patterns;
	const char *program;

	if (is_user_listed(process, list))
		return true;
	if (!patterns->len)
		return false;
	find_program(owners, process);
	program = intern_text(&owners->profile->strings, subject_of(process)->program);
	if (!*program && process_age_ns(process) < NAMELESS_NS)
		return true;
	program += strlen(program) > strlen(APPLICATION_PREFIX) ? strlen(APPLICATION_PREFIX) : 0;
	return filter_match(patterns, process->comm) || filter_match(patterns, program) ||
	       is_container_listed(owners, process, patterns);
}

/* ---- rows ---- */

static uint32_t make_row(struct owners *owners, struct process *process, const struct duet_sample *sample,
			 uint64_t cgroup_id)
{
	struct intern *strings = &owners->profile->strings;
	struct profile_owner owner = {
		.start_ticks = process->start_ticks,
		.pid = (uint32_t)process->pid,
		.ns_pid = sample ? sample->ns_tgid : (uint32_t)process->ns_pid,
		.executable = executable_of(owners, process),
	};

	find_program(owners, process);
	if (subject_of(process)->application)
		fill_program(subject_of(process), &owner);
	owner.cgroup = intern_str(strings, containers_get(&owners->containers, cgroup_id)->path);
	fill_container(owners, container_of(owners, process, cgroup_id), &owner);
	return profile_owner(owners->profile, &owner);
}

/* Returns true for a young JVM that has not yet published its options. */
static bool is_incomplete(const struct subject *subject)
{
	return subject->application && !subject->vm_flags;
}

void owners_note(struct owners *owners, struct process *process)
{
	uint64_t id = cgroup_of(owners, process);

	subject_of(process)->owner_cgroup = id ? id : subject_of(process)->owner_cgroup;
}

uint32_t owners_row(struct owners *owners, struct process *process, const struct duet_sample *sample)
{
	struct subject *subject = subject_of(process);
	uint64_t now_ns = clock_monotonic_ns();
	bool is_known, is_old = now_ns - subject->owner_ns > MEMBERSHIP_AGE_NS;
	uint64_t last_id = subject->owner_cgroup, cgroup_id;

	if (!sample && is_old && !process->exited)
		owners_note(owners, process);
	cgroup_id = sample ? sample->cgroup_id : subject->owner_cgroup;
	is_known = subject->owner_ns && last_id == cgroup_id &&
		   subject->owner_version == process->maps_version;
	if (!is_known || (is_old && !process->exited && (cgroup_id == CGROUP_ROOT_ID || is_incomplete(subject))))
		subject->owner = make_row(owners, process, sample, cgroup_id);
	else if (!is_old || sample)
		return subject->owner;
	subject->owner_cgroup = cgroup_id;
	subject->owner_version = process->maps_version;
	subject->owner_ns = now_ns;
	return subject->owner;
}
