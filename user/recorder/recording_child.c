/* SPDX-License-Identifier: MIT */
#include "recorder/recording_child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "cmd/record.h"
#include "recorder/begin_end.h"
#include "recorder/wanted_events.h"
#include "writers/output_files.h"

#define MAX_WORDS 32
#define GATE (STDERR_FILENO + 1) /* the child's descriptor */

/* ---- its command line ---- */

static void add_word(struct buf *words, const char *option, const char *value)
{
	buf_add(words, option, strlen(option) + 1);
	if (value)
		buf_add(words, value, strlen(value) + 1);
}

static void add_mark(struct buf *events, const char *function)
{
	buf_add_char(events, ',');
	begin_end_event(function, events);
}

/* Returns true if the list of events has alloc. */
static bool has_alloc(const char *events)
{
	const char *at = strstr(events, "alloc");

	while (at && at > events && at[-1] != ',')
		at = strstr(at + 1, "alloc");
	return at;
}

/* As async-profiler has it: these walkers begin with the native frames. */
static bool shows_native_allocations(const struct asprof_arguments *arguments, const char *events)
{
	static const char *const walkers[] = {"fp", "dwarf", "vmx"};

	for (size_t i = 0; arguments->cstack && i < sizeof(walkers) / sizeof(*walkers); i++)
		if (!strcmp(arguments->cstack, walkers[i]))
			return has_alloc(events);
	return false;
}

/* Returns 0, or -errno with one sentence in `why`. */
static int compose(struct buf *words, const struct recording_subject *subject, const struct asprof_arguments *arguments,
		   struct buf *why)
{
	uint64_t proc_ns = asprof_arguments_proc_ns(arguments);
	char target[16], depth[16], most[32], proc[32];
	const char *engine;
	struct buf events;
	int err;

	buf_init(&events);
	snprintf(target, sizeof(target), "%d", subject->pid);
	snprintf(depth, sizeof(depth), "%u", arguments->depth);
	snprintf(most, sizeof(most), "%llu", (unsigned long long)subject->max_bytes);
	err = asprof_arguments_events(arguments, &events, &engine, why);
	if (!err && arguments->writer && !strcmp(arguments->writer->name, "jfr"))
		buf_add_str(&events, ",span,userevent"); /* as async-profiler does, unasked: both need the agent */
	if (!err && arguments->begin)
		add_mark(&events, arguments->begin);
	if (!err && arguments->end)
		add_mark(&events, arguments->end);
	if (!err) {
		add_word(words, "record", NULL);
		add_word(words, "--pid", target);
		add_word(words, "--event", events.data);
		add_word(words, "--engine", engine);
		add_word(words, "--duration", "3650d");
		add_word(words, "--output", "duet");
		add_word(words, OUTPUT_FILES_LIMIT, most);
		if (proc_ns) {
			snprintf(proc, sizeof(proc), "%llu", (unsigned long long)(proc_ns / NS_PER_SEC));
			add_word(words, "--proc", proc);
		}
		if (shows_native_allocations(arguments, events.data))
			add_word(words, "--alloc-native", NULL);
		if (arguments->all_user)
			add_word(words, "--all-user", NULL);
		if (arguments->depth > DUET_JAVA_DEPTH) /* reports of less are cut */
			add_word(words, "--jstackdepth", depth);
		if (arguments->cpus)
			add_word(words, "--record-cpu", NULL);
		if (arguments->policies)
			add_word(words, "--sched", NULL);
		if (asprof_arguments_has(arguments, "vtable"))
			add_word(words, "--receivers", NULL);
		if (arguments->tlab && has_alloc(events.data))
			add_word(words, "--tlab", NULL);
		if (arguments->only_cpu)
			add_word(words, "--target-cpu", arguments->only_cpu);
	}
	buf_release(&events);
	return err;
}

static int split(struct buf *words, char *items[MAX_WORDS])
{
	int count = 0;

	for (size_t at = 0; at < words->len && count < MAX_WORDS; at += strlen(words->data + at) + 1)
		items[count++] = words->data + at;
	return count;
}

/* ---- the child ---- */

void recording_child_redirect(pid_t recorder, int out, int log)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL); /* which the recorder ignores */
	child_end_with(recorder, SIGINT);
	dup2(out, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
}

/* Waits at the gate. Fills in where the loaded agent listens. */
static int await(void *context)
{
	struct attach_control *control = context;
	struct duet_question agent;
	ssize_t bytes;

	do
		bytes = recv(GATE, &agent, sizeof(agent), 0);
	while (bytes < 0 && errno == EINTR);
	close(GATE);
	if (bytes != (ssize_t)sizeof(agent))
		return -ECANCELED;
	memcpy(control->name, agent.name, sizeof(control->name));
	memcpy(control->secret, agent.secret, sizeof(agent.secret));
	return 0;
}

/* Does not return. Keeps no descriptor of the recorder: its clients must see when it has ended. */
static void become(const struct recording_child *child, pid_t recorder, int gate, struct buf *words)
{
	struct attach_control control = {0};
	char *items[MAX_WORDS];
	int count = split(words, items);

	recording_child_redirect(recorder, child->part, child->log);
	dup2(gate, GATE);
	closefrom(GATE + 1);
	_exit(record_behind_gate(count, items, &(struct record_gate){&control, await, &control}));
}

/* ---- the recorder's side ---- */

static void close_all(struct recording_child *child)
{
	const int fds[] = {child->gate, child->part, child->log};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	buf_release(&child->words);
	*child = (struct recording_child)RECORDING_CHILD_NONE;
}

static int fork_child(struct recording_child *child)
{
	pid_t recorder = getpid();
	int gates[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gates) < 0)
		return -errno;
	child->gate = gates[0];
	child->pid = fork();
	err = child->pid < 0 ? -errno : 0;
	if (!child->pid)
		become(child, recorder, gates[1], &child->words);
	close(gates[1]);
	return err;
}

int recording_child_start(struct recording_child *ret, const struct recording_subject *subject,
			  const struct asprof_arguments *arguments, struct buf *why)
{
	struct recording_child child = RECORDING_CHILD_NONE;
	int err;

	buf_init(&child.words);
	err = compose(&child.words, subject, arguments, why);
	if (err) {
		close_all(&child);
		return err;
	}
	child.part = memfd_create("duet-recording", MFD_CLOEXEC);
	child.log = memfd_create("duet-log", MFD_CLOEXEC);
	err = child.part < 0 || child.log < 0 ? -errno : child.words.failed ? -ENOMEM : fork_child(&child);
	if (err) {
		buf_printf(why, "no process for the recording: %s", strerror(-err));
		close_all(&child);
		return err;
	}
	*ret = child;
	return 0;
}

bool recording_child_fits(const struct recording_child *child, const struct recording_subject *subject,
			  const struct asprof_arguments *arguments)
{
	struct buf words, why;
	bool fits;

	if (!child->pid)
		return false;
	buf_init(&words);
	buf_init(&why);
	fits = !compose(&words, subject, arguments, &why) && words.len == child->words.len &&
	       !memcmp(words.data, child->words.data, words.len);
	buf_release(&words);
	buf_release(&why);
	return fits;
}

int recording_child_begin(struct recording_child *child, const struct duet_question *agent)
{
	const struct duet_question none = {0};

	if (send(child->gate, agent ? agent : &none, sizeof(none), MSG_NOSIGNAL) < 0)
		return -errno;
	child->part = child->log = -1;
	close_all(child);
	return 0;
}

void recording_child_end(struct recording_child *child)
{
	pid_t pid = child->pid;
	int status;

	close_all(child);
	if (!pid)
		return;
	kill(pid, SIGKILL); /* it has changed nothing yet, and may not see its gate closed before BPF is loaded */
	(void)child_await(pid, &status);
}
