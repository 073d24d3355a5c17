/* SPDX-License-Identifier: MIT */
#include "subject/program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/io.h"
#include "proc/helper.h"
#include "proc/process.h"
#include "profile/attributes.h"
#include "runtime/application.h"
#include "subject/published.h"
#include "subject/words.h"
#include "sym/parsed_file.h"
#include "sym/target_file.h"
#include "writers/shared/filter.h"

#define PROPERTIES_MAX (1u << 20) /* bytes read of a file of text, which usually has some kilobytes */
#define SPARK_PREFIX ", spark: " /* gProfiler's form */

/* Appends "buildid:…" of the library, in gProfiler's form, or nothing. */
static void program_libjvm(const struct charge *charge, const struct process *process, const struct mapping *libjvm,
			   struct buf *id)
{
	struct elf_identity identity;
	struct target_file target;

	if (target_file_find_mapping(&target, charge, process, libjvm))
		return;
	if (target_file_read(&target, charge, 0) >= 0 && !parsed_identity(&identity, charge, &target) &&
	    identity.build_id_len) {
		buf_add_str(id, "buildid:");
		for (size_t i = 0; i < identity.build_id_len; i++)
			buf_printf(id, "%02x", identity.build_id[i]);
	}
	target_file_release(&target);
}

/*
 * Appends what a parser finds in the file, as the process sees it, for what is looked for only: it may be a link to any
 * file in its root.
 */
static int find_text(const struct charge *charge, const char *path,
		     int (*work)(const struct helper_task *task, struct helper_answer *answer), struct buf *text)
{
	struct target_file file;
	struct helper_answer answer;
	int err = target_file_find(&file, charge, charge->living, path);

	if (err)
		return err;
	err = target_file_read(&file, charge, 0);
	if (err >= 0) {
		err = parser_run(&(struct helper_task){work, charge, file.fd, "", 0, target_file_origin(&file)},
				 &answer);
		buf_add(text, answer.text.data, strnlen(answer.text.data, APPLICATION_MAX));
		helper_answer_release(&answer);
	}
	target_file_release(&file);
	return err;
}

static int release_work(const struct helper_task *task, struct helper_answer *answer)
{
	static const char key[] = "JAVA_VERSION=\"";
	const char *at;
	BUF(text);
	int err = io_read_again(task->fd, PROPERTIES_MAX, &text);

	at = err ? NULL : strstr(text.data, key);
	if (at)
		buf_add(&answer->text, at + strlen(key), strcspn(at + strlen(key), "\"\n"));
	return at ? 0 : err ? err : -ENOENT;
}

static int version_by_release(const struct charge *charge, const struct process *process, struct buf *version)
{
	const struct mapping *libjvm = maps_libjvm(&process->maps);
	const char *lib = libjvm ? strstr(libjvm->path, "/lib/") : NULL;
	char home[PATH_MAX];
	BUF(path);

	for (const char *next = lib; next; next = strstr(next + 1, "/lib/"))
		lib = next;
	if (!lib || (size_t)(lib - libjvm->path) >= sizeof(home))
		return -ENOENT;
	snprintf(home, sizeof(home), "%.*s", (int)(lib - libjvm->path), libjvm->path);
	if (strlen(home) > 4 && !strcmp(home + strlen(home) - 4, "/jre"))
		home[strlen(home) - 4] = '\0';
	buf_printf(&path, "%s/release", home);
	return find_text(charge, path.data, release_work, version);
}

int program_java_version(const struct charge *charge, const struct process *process, struct buf *version)
{
	struct about about;
	int err = about_read(&about, charge, process, true);

	buf_add_str(version, about.version.data);
	err = about.version.len ? 0 : err ? err : version_by_release(charge, process, version);
	about_release(&about);
	return err;
}

static int properties_work(const struct helper_task *task, struct helper_answer *answer)
{
	BUF(text);
	int err = io_read_again(task->fd, PROPERTIES_MAX, &text);

	return err ? err : spark_from_properties(text.data, text.len, &answer->text);
}

/* `path` is absolute or relative to the process's working directory. */
static int read_properties_at(const struct charge *charge, const char *path, struct buf *name)
{
	char link[32], folder[PATH_MAX];
	BUF(whole);
	ssize_t len;

	if (*path == '/')
		return find_text(charge, path, properties_work, name);
	snprintf(link, sizeof(link), "/proc/%d/cwd", charge->living);
	len = readlink(link, folder, sizeof(folder) - 1);
	if (len < 0)
		return -errno;
	folder[len] = '\0';
	buf_printf(&whole, "%s/%s", folder, path);
	return find_text(charge, whole.data, properties_work, name);
}

/* Appends ", spark: NAME" for a Spark application; its id if the name is unknown. */
static void add_spark(const struct charge *charge, const struct about *about, struct buf *application)
{
	BUF(name);

	buf_add_str(&name, about->spark_name.data);
	if (!name.len && about->is_spark &&
	    (!about->spark_properties.len || read_properties_at(charge, about->spark_properties.data, &name)) &&
	    read_properties_at(charge, SPARK_PROPERTIES, &name))
		buf_add_str(&name, about->spark_id.data);
	if (name.len)
		buf_printf(application, SPARK_PREFIX "%.*s", APPLICATION_MAX, name.data);
}

#define LISTED_MAX 8

const char *running_short_name(const char *program)
{
	size_t len = strlen(program);
	bool is_jar = len > 4 && !strcmp(program + len - 4, ".jar");
	const char *last = is_jar ? NULL : strrchr(program, '.');

	if (!last && !is_jar)
		last = strchr(program, '/');
	return last ? last + 1 : program;
}

bool running_is_called(const char *program, const char *name)
{
	const char *class = strchr(program, '/') ? strchr(program, '/') + 1 : program;

	return !strcmp(program, name) || !strcmp(class, name) || !strcmp(running_short_name(program), name);
}

static int add_if_called(struct running *running, const struct process *process, const char *name)
{
	struct about about;
	char *program;

	if (process->exited || !maps_libjvm(&process->maps))
		return 0;
	(void)about_read(&about, CHARGE_OWN(process->living), process, true);
	program = strdup(about.name.len ? about.name.data + strlen(APPLICATION_PREFIX) : process->comm);
	about_release(&about);
	if (program && name && !running_is_called(program, name)) {
		free(program);
		return 0;
	}
	if (program && !vec_push(&running->jvms, (struct running_jvm){process, program}))
		return 0;
	free(program);
	return -ENOMEM;
}

static int by_pid(const void *a, const void *b)
{
	pid_t first = ((const struct running_jvm *)a)->process->pid;
	pid_t second = ((const struct running_jvm *)b)->process->pid;

	return (first > second) - (first < second);
}

int running_find(struct running *ret, const char *name)
{
	DIR *folder = opendir("/proc");
	int err = folder ? 0 : -errno;
	pid_t pid;

	*ret = (struct running){0};
	helper_start();
	while (!err && (pid = process_next(folder))) {
		const struct process *process = process_get(&ret->processes, pid, 0);

		err = process ? add_if_called(ret, process, name) : 0;
	}
	if (folder)
		closedir(folder);
	if (ret->jvms.len)
		qsort(ret->jvms.items, ret->jvms.len, sizeof(*ret->jvms.items), by_pid);
	return err;
}

void running_release(struct running *running)
{
	for (size_t i = 0; i < running->jvms.len; i++)
		free(running->jvms.items[i].program);
	vec_release(&running->jvms);
	process_table_release(&running->processes);
	helper_end();
}

void running_list(const struct running *running, struct buf *out)
{
	for (size_t i = 0; i < running->jvms.len && i < LISTED_MAX; i++) {
		const struct running_jvm *jvm = &running->jvms.items[i];

		buf_printf(out, "%s%d (%s)", i ? ", " : "", jvm->process->pid, jvm->program);
	}
	if (running->jvms.len > LISTED_MAX)
		buf_printf(out, " and %zu more", running->jvms.len - LISTED_MAX);
}

#define MEMBERSHIP_AGE_NS NS_PER_SEC /* facts that only /proc has are read again at most this often */
#define NAMELESS_NS (3 * NS_PER_SEC) /* a JVM may need this long to publish what it runs */
/* One that does not publish it is asked again after this time, then after twice this time, and so on. */
#define ASK_FIRST_NS (100 * NS_PER_MS)
#define ASK_LAST_NS (60 * NS_PER_SEC)

void owners_open(struct owners *owners, struct profile *profile, bool spark_names)
{
	*owners = (struct owners){.profile = profile, .spark_names = spark_names};
	containers_open(&owners->containers, "/");
}

void owners_release(struct owners *owners)
{
	containers_release(&owners->containers);
	map_release(&owners->contexts);
}

static uint32_t executable_of(struct owners *owners, const struct process *process)
{
	return intern_str(&owners->profile->strings, process->executable ? process->executable : "");
}

/* What is known of the program. */
static void fill_known(const struct subject *subject, struct profile_owner *owner)
{
	owner->service = subject->service;
	owner->attributes = subject->attributes;
	if (!subject->application)
		return;
	owner->application = subject->application;
	owner->executed_as = subject->executed_as;
	owner->runtime = subject->vm;
	owner->libjvm = subject->libjvm;
	owner->vm_flags = subject->vm_flags;
}

/* Samples from before the JVM was recognised, or before it had published everything, belong to the same program. */
static void fill_earlier_rows(struct owners *owners, struct process *process)
{
	struct profile *profile = owners->profile;
	struct profile_owner known = {
		.pid = (uint32_t)process->pid,
		.start_ticks = process->start_ticks,
		.executable = executable_of(owners, process),
	};

	fill_known(subject_of(process), &known);
	for (size_t i = 0; i < profile->owners.len; i++)
		profile_complete_owner(&profile->owners.items[i], &known);
}

static void take_about(struct owners *owners, const struct charge *charge, struct process *process,
		       const struct mapping *libjvm, struct about *about)
{
	struct subject *subject = subject_of(process);
	struct intern *strings = &owners->profile->strings;
	uint32_t program = intern_str(strings, about->name.data);
	BUF(id);

	if (!subject->application) {
		program_libjvm(charge, process, libjvm, &id);
		if (owners->spark_names)
			add_spark(charge, about, &about->name);
	}
	if (!process_is_there(process))
		return;
	if (!subject->application) {
		subject->program = program;
		subject->application = intern_str(strings, about->name.data);
		subject->executed_as = intern_str(strings, about->executed_as.len ? about->executed_as.data
							   : process->executable  ? process->executable
										  : "");
		subject->libjvm = intern_str(strings, id.data);
	}
	subject->vm_flags = intern_str(strings, about->flags.data);
}

/* Asks it for what is not known yet: not at each change of its mappings, which it may make as often as it likes. */
static void ask(struct owners *owners, struct process *process, const struct mapping *libjvm)
{
	struct subject *subject = subject_of(process);
	uint64_t now_ns = clock_monotonic_ns();
	struct charge charge;
	struct about about;

	if (subject->vm_flags || now_ns < subject->ask_ns || !charge_begin(&charge, process))
		return;
	if (!about_read(&about, &charge, process, process_age_ns(process) < NAMELESS_NS) && about.name.len)
		take_about(owners, &charge, process, libjvm, &about);
	about_release(&about);
	(void)charge_end(&charge);
	subject->pause_ns = subject->pause_ns ? subject->pause_ns : ASK_FIRST_NS;
	subject->ask_ns = now_ns + subject->pause_ns;
	subject->pause_ns = 2 * subject->pause_ns < ASK_LAST_NS ? 2 * subject->pause_ns : ASK_LAST_NS;
}

static void find_program(struct owners *owners, struct process *process)
{
	const struct mapping *libjvm = maps_libjvm(&process->maps);

	if (!process->exited && libjvm)
		ask(owners, process, libjvm);
	if (subject_of(process)->application || subject_of(process)->attributes)
		fill_earlier_rows(owners, process);
}

#define LOOK_NS (NS_PER_SEC / 2) /* between two looks at what one program publishes */
#define LOOK_PART 1000 /* looks take one part of so many of a CPU, first looks apart */
#define LOOKS_AHEAD_NS (10 * NS_PER_SEC) /* after a pause, looks take what they may in this time */
#define LOOKS_BEHIND_NS (60 * NS_PER_SEC) /* however much first looks took */

static void take_published(struct owners *owners, struct subject *subject, const struct published *published)
{
	struct intern *strings = &owners->profile->strings;
	struct attribute service = {0};

	(void)attributes_find(published->attributes.data, ATTRIBUTES_SERVICE, &service);
	subject->service = service.value_len ? intern_bytes(strings, service.value, service.value_len) : 0;
	subject->attributes = intern_str(strings, published->attributes.data);
	subject->keys = intern_str(strings, published->keys.data);
}

/* The first look at a process is always due. */
static bool is_look_due(const struct owners *owners, const struct subject *subject, uint64_t now_ns)
{
	return !subject->look_ns || (now_ns >= subject->look_ns && now_ns >= owners->looks_ns);
}

static void count_look(struct owners *owners, uint64_t cpu_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), earliest_ns = now_ns > LOOKS_AHEAD_NS ? now_ns - LOOKS_AHEAD_NS : 0;

	if (owners->looks_ns < earliest_ns)
		owners->looks_ns = earliest_ns;
	owners->looks_ns += LOOK_PART * cpu_ns;
	if (owners->looks_ns > now_ns + LOOKS_BEHIND_NS)
		owners->looks_ns = now_ns + LOOKS_BEHIND_NS;
}

/* Reads what the process publishes. Returns true if that has changed. */
static bool look(struct owners *owners, struct process *process, uint64_t now_ns)
{
	struct subject *subject = subject_of(process);
	struct published published;
	struct charge charge;
	bool is_new;
	int err;

	subject->look_ns = now_ns + LOOK_NS;
	if (!charge_begin(&charge, process))
		return false;
	err = published_read(&published, &charge, process, subject->published_at, subject->published_ns);
	is_new = published.is_new && process_is_there(process);
	if (is_new)
		take_published(owners, subject, &published);
	loader_counters[DUET_LOADER_PUBLISHED_BAD] += err == -EPROTO || err == -EAGAIN;
	subject->published_at = published.address;
	subject->published_ns = published.published_ns;
	published_release(&published);
	count_look(owners, charge_end(&charge));
	return is_new;
}

#define CONTEXTS_MAX 65536 /* different attributes of its threads that one process may add to the profile */
#define CONTEXTS_KNOWN 8192 /* entries of the cache */
#define KEYS_AGE_NS (20 * NS_PER_MS) /* names that are missing are not looked for more often */

/* Returns the string of the text; 0: there is no room for it. */
static uint32_t context_row(struct owners *owners, struct subject *subject, const char *text, bool is_closed)
{
	struct intern *strings = &owners->profile->strings;
	uint32_t id = intern_known(strings, text);

	if (id || is_closed || subject->contexts >= CONTEXTS_MAX)
		return id;
	subject->contexts++;
	return intern_str(strings, text);
}

/* What the cache has above the string. */
#define CONTEXT_LACKS (1ull << 32) /* something is left out */
#define CONTEXT_UNNAMED (1ull << 33) /* because the name of an attribute is not known */

static uint64_t new_context(struct owners *owners, struct subject *subject, const void *attributes, size_t bytes,
			    bool is_closed)
{
	const char *keys = intern_text(&owners->profile->strings, subject->keys);
	BUF(text);
	enum context_loss loss = context_text(attributes, bytes, keys, &text);
	uint64_t known = text.len ? context_row(owners, subject, text.data, is_closed) : 0;

	if (loss != CONTEXT_WHOLE || (!known && text.len))
		known |= CONTEXT_LACKS;
	return loss == CONTEXT_NO_KEY ? known | CONTEXT_UNNAMED : known;
}

static uint64_t context_of(struct owners *owners, struct process *process, const void *attributes, size_t bytes,
			   bool is_closed)
{
	struct subject *subject = subject_of(process);
	const uint64_t about[] = {(uint64_t)process->pid, process->start_ticks, owners->profile->start_ns,
				  (uint64_t)subject->keys << 1 | is_closed};
	uint64_t key = hash_bytes(attributes, bytes, hash_bytes(about, sizeof(about), 0)), known;
	struct charge charge;

	if (map_get(&owners->contexts, key, &known))
		return known;
	if (!charge_begin(&charge, process))
		return CONTEXT_LACKS;
	if (owners->contexts.len >= CONTEXTS_KNOWN)
		map_release(&owners->contexts);
	known = new_context(owners, subject, attributes, bytes, is_closed);
	(void)map_put(&owners->contexts, key, known); /* out of memory: it is read again */
	(void)charge_end(&charge);
	return known;
}

/* Looks whether the process has published more names. */
static bool look_for_keys(struct owners *owners, struct process *process)
{
	struct subject *subject = subject_of(process);
	uint64_t now_ns = clock_monotonic_ns();

	if (process->exited || now_ns < owners->looks_ns || now_ns + LOOK_NS < subject->look_ns + KEYS_AGE_NS ||
	    !look(owners, process, now_ns))
		return false;
	subject->owner_ns = 0;
	return true;
}

uint32_t owners_context(struct owners *owners, struct process *process, const void *attributes, size_t bytes,
			bool is_closed)
{
	uint64_t known = context_of(owners, process, attributes, bytes, is_closed);

	if (known & CONTEXT_UNNAMED && look_for_keys(owners, process))
		known = context_of(owners, process, attributes, bytes, is_closed);
	loader_counters[DUET_LOADER_CONTEXT_LACKS] += (known & CONTEXT_LACKS) != 0;
	return (uint32_t)known;
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
	subject->contexts = 0;
	subject->service = intern_moved(move, subject->service);
	subject->attributes = intern_moved(move, subject->attributes);
	subject->keys = intern_moved(move, subject->keys);
	subject->program = intern_moved(move, subject->program);
	subject->application = intern_moved(move, subject->application);
	subject->executed_as = intern_moved(move, subject->executed_as);
	subject->libjvm = intern_moved(move, subject->libjvm);
	subject->vm_flags = intern_moved(move, subject->vm_flags);
	subject->vm = intern_moved(move, subject->vm);
}

/* Returns the id of the current cgroup from /proc; 0 when unknown. */
static uint64_t cgroup_of(const struct owners *owners, const struct process *process)
{
	BUF(line);
	BUF(path);
	uint64_t id = 0;

	if (!cgroup_of_process(process->pid, false, &line) && line.len && process_is_there(process))
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
	return by_v1 && process_is_there(process) ? by_v1 : container;
}

const struct container *owners_container(struct owners *owners, const struct process *process)
{
	return container_of(owners, process, cgroup_of(owners, process));
}

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
	struct charge charge; /* it needs a row, whatever it has cost */

	charge_begin_unknown(&charge, process->pid);
	charge.payer = process->payer;
	find_program(owners, process);
	fill_known(subject_of(process), &owner);
	owner.cgroup = intern_str(strings, containers_get(&owners->containers, cgroup_id)->path);
	fill_container(owners, container_of(owners, process, cgroup_id), &owner);
	(void)charge_end(&charge);
	return profile_owner(owners->profile, &owner);
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
	bool is_incomplete = subject->application && !subject->vm_flags; /* a young JVM's options come later */
	bool is_known, is_old = now_ns - subject->owner_ns > MEMBERSHIP_AGE_NS;
	uint64_t last_id = subject->owner_cgroup, cgroup_id;

	if (!sample && is_old && !process->exited)
		owners_note(owners, process);
	cgroup_id = sample ? sample->cgroup_id : subject->owner_cgroup;
	if (!process->exited && is_look_due(owners, subject, now_ns) && look(owners, process, now_ns))
		subject->owner_ns = 0;
	is_known = subject->owner_ns && last_id == cgroup_id && subject->owner_version == process->maps_version;
	if (!is_known || (is_old && !process->exited && (cgroup_id == CGROUP_ROOT_ID || is_incomplete)))
		subject->owner = make_row(owners, process, sample, cgroup_id);
	else if (!is_old || sample)
		return subject->owner;
	subject->owner_cgroup = cgroup_id;
	subject->owner_version = process->maps_version;
	subject->owner_ns = now_ns;
	return subject->owner;
}
