/* SPDX-License-Identifier: MIT */
#include "recorder/recording.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "cmd/record.h"
#include "collect/engines.h"
#include "recorder/arguments.h"
#include "recorder/report_shape.h"
#include "session/session.h"

#define FOR_EVER_NS (3650 * 86400 * NS_PER_SEC)
#define GATE (STDERR_FILENO + 1) /* the child's descriptor */

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
	return arguments->cstack && text_is_word(arguments->cstack, "fp dwarf vmx") && has_alloc(events);
}

/* Fills the child's options and events. Returns 0, or -errno with one sentence in `why`. */
static int fill(struct recording_child *child, const struct recording_subject *subject,
		const struct asprof_arguments *arguments, struct buf *why)
{
	struct options *options = &child->options;
	const char *engine;
	int err = asprof_arguments_events(arguments, &child->events, &engine, why);

	if (!err && arguments->writer && !strcmp(arguments->writer->name, "jfr"))
		buf_add_str(&child->events,
			    ",span,userevent"); /* as async-profiler does, unasked: both need the agent */
	if (!err && arguments->begin)
		add_mark(&child->events, arguments->begin);
	if (!err && arguments->end)
		add_mark(&child->events, arguments->end);
	if (err)
		return err;
	if (child->events.failed)
		return buf_explain(why, -ENOMEM, "out of memory");
	child->subject = subject->pid;
	memcpy(options, &arguments->record, sizeof(*options)); /* with the padding, see recording_child_fits() */
	options->engine = (enum session_engine)engine_by_name(engine);
	options->given.format = "duet";
	options->duration_ns = FOR_EVER_NS;
	options->max_file = subject->max_bytes;
	options->usages_ns = asprof_arguments_proc_ns(arguments);
	options->alloc_native = shows_native_allocations(arguments, child->events.data);
	options->given.depth = arguments->depth > DUET_JAVA_DEPTH ? arguments->depth : 0; /* reports of less are cut */
	options->bpf.receivers = asprof_arguments_has(arguments, "vtable");
	options->bpf.compiling = asprof_arguments_has(arguments, "comptask");
	options->tlab &= has_alloc(child->events.data);
	options->command_line = "asprof";
	options->as_called = true;
	return 0;
}

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

static int record(struct options *options, struct recording_child *child)
{
	struct attach_control control = {0};
	BUF(why);
	int code = 2;

	options->loaded_agent = &control;
	options->await = await;
	options->await_context = &control;
	if (!vec_push(&options->pids, child->subject) &&
	    !opt_strings(&options->given.events, child->events.data, &why) &&
	    !record_options_finish(options, &(struct command_words){.dashdash = -1}))
		code = session_run(options);
	record_options_release(options);
	return code;
}

/* Does not return. Keeps no descriptor of the recorder: its clients must see when it has ended. */
static void become(struct recording_child *child, pid_t recorder, int gate)
{
	recording_child_redirect(recorder, child->part, child->log);
	dup2(gate, GATE);
	closefrom(GATE + 1);
	_exit(record(&child->options, child));
}

static void close_all(struct recording_child *child)
{
	io_close(&child->gate);
	io_close(&child->part);
	io_close(&child->log);
	buf_release(&child->events);
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
		become(child, recorder, gates[1]);
	close(gates[1]);
	return err;
}

int recording_child_start(struct recording_child *ret, const struct recording_subject *subject,
			  const struct asprof_arguments *arguments, struct buf *why)
{
	struct recording_child child = RECORDING_CHILD_NONE;
	int err = fill(&child, subject, arguments, why);

	if (err) {
		close_all(&child);
		return err;
	}
	child.part = memfd_create("duet-recording", MFD_CLOEXEC);
	child.log = memfd_create("duet-log", MFD_CLOEXEC);
	err = child.part < 0 || child.log < 0 ? -errno : fork_child(&child);
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
	struct recording_child wanted = RECORDING_CHILD_NONE;
	BUF(why);
	bool fits;

	if (!child->pid)
		return false;
	/* both were zeroed by record_options_init(), with their padding, and point to static text alone */
	fits = !fill(&wanted, subject, arguments, &why) && wanted.subject == child->subject &&
	       !strcmp(wanted.events.data, child->events.data) &&
	       !memcmp(&wanted.options, &child->options, sizeof(wanted.options));
	buf_release(&wanted.events);
	return fits;
}

int recording_child_begin(struct recording_child *child, const struct duet_question *agent)
{
	const struct duet_question none = {0};

	if (send(child->gate, agent ? agent : &none, sizeof(none), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
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
	/* killed at once: it has changed nothing yet, and may not see its gate closed before BPF is loaded */
	(void)child_await_until(pid, &status, 0);
}
