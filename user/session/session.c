/* SPDX-License-Identifier: MIT */
#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/signals.h"
#include "proc/allowance.h"
#include "proc/helper.h"
#include "proc/room.h"
#include "session/internal.h"
#include "status/report.h"

/* Under nohup(1), a recording goes on. The daemon reads its configuration at SIGHUP in any case. */
static int open_signals(const struct options *options)
{
	struct sigaction hangup;
	sigset_t set;

	signals_ending(&set);
	sigaddset(&set, SIGCHLD);
	if (!options->signalled && !sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler == SIG_IGN)
		sigdelset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Adds the events in the order of the list: sample.event is an index into both. */
static int add_events(struct profile *profile, const struct event_list *list)
{
	static const enum profile_unit units[] = {
		[EVENT_NS] = PROFILE_NS, [EVENT_COUNT] = PROFILE_COUNT, [EVENT_BYTES] = PROFILE_BYTES};

	for (size_t i = 0; i < list->len; i++) {
		const struct event *event = list->items[i].event;

		if (profile_event(profile, event->name, units[event->unit], list->items[i].interval) == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

/* A command may start other processes. With windows, all windows show processes, so that they look alike. */
static enum profile_processes processes_of(const struct options *options)
{
	if (options->command && !options->window_ns)
		return PROFILE_IF_SEVERAL;
	return options->command || options->host || options->pids.len > 1 ? PROFILE_ALWAYS : PROFILE_NEVER;
}

static bool take_ring(void *context, struct agent_start *start)
{
	struct session *session = context;

	return budget_take_ring(&session->budget, start);
}

static void on_free_agent(void *context, struct agent *agent)
{
	struct session *session = context;

	budget_give_ring(&session->budget, agent);
	overhead_forget(&session->overhead, agent);
}

void session_release_dead(void *context)
{
	jvms_release_dead(&((struct session *)context)->jvms);
}

uint64_t session_end_ns(const struct session *session)
{
	return session->options->duration_ns ? session->started_ns + session->options->duration_ns : UINT64_MAX;
}

static void open_jvms(struct session *session)
{
	jvms_open(&session->jvms, session->options,
		  &(struct jvms_deps){
			  .engine = &session->engine,
			  .cpus = session->cpus,
			  .processes = &session->processes,
			  .profile = &session->profile,
			  .symbols = session->symbols,
			  .owners = &session->owners,
			  .pending = &session->pending,
			  .unwinding = &session->unwinding,
			  .take_ring = take_ring,
			  .on_free = on_free_agent,
			  .context = session,
		  });
}

static int session_open(struct session *session, const struct options *options)
{
	session->options = options;
	memset(loader_counters, 0, sizeof(loader_counters)); /* a daemon has one session after the other */
	room_open(options->host);
	allowance_set_starting(options->host);
	budget_open(&session->budget, options->max_memory);
	status_init(&session->status, stats_answer, &session->report);
	session->command_ns = clock_monotonic_ns();
	session->cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	session->launch = (struct launch)LAUNCH_NONE;
	session->jdk = (struct flight_recording)FLIGHT_RECORDING_NONE;
	session->signal_fd = open_signals(options);
	helper_start();
	buf_init(&session->engine_why);
	process_table_init(&session->processes);
	session->symbols = symbols_new();
	selection_open(&session->selection, options->comm);
	owners_open(&session->owners, &session->profile, options->spark_names);
	host_open(&session->host);
	open_jvms(session);
	overhead_open(&session->overhead, &session->jvms);
	notify_open(&session->notify);
	if (intake_open(session) < 0 || profile_init(&session->profile) < 0 || !session->symbols ||
	    session->signal_fd < 0)
		return log_fail(-ENOMEM, "out of memory or descriptors before the recording began");
	session->profile.processes = processes_of(options);
	session->profile.is_private = options->folder.access.is_private;
	return add_events(&session->profile, &options->events);
}

static void session_close(struct session *session)
{
	flight_recording_release(&session->jdk);
	vitals_release(&session->vitals);
	census_release(&session->census);
	pending_release(&session->pending);
	jvms_release(&session->jvms);
	overhead_release(&session->overhead);
	unwinding_release(&session->unwinding);
	charge_set_pause(NULL, NULL);
	collector_close(session->engine.collector);
	launch_release(&session->launch);
	windows_release(&session->windows);
	budget_close(&session->budget);
	notify_close(&session->notify);
	intake_release(session);
	owners_release(&session->owners);
	selection_release(&session->selection);
	symbols_free(session->symbols);
	kernel_names_close(&session->kernel_names);
	profile_release(&session->profile);
	process_table_release(&session->processes);
	buf_release(&session->engine_why);
	close(session->signal_fd);
	helper_end();
}

static void report_window(void *context)
{
	struct session *session = context;
	struct outcomes own = outcomes_since(&session->pending.sink.outcomes, &session->reported);
	struct report report = session->report;

	report.outcomes = &own;
	budget_report_need(&session->budget);
	report_facts(&report);
	session->reported = session->pending.sink.outcomes;
	report_losses(&session->report);
}

static void before_write(void *context)
{
	struct session *session = context;

	nice_reset();
	budget_before_write(&session->budget);
}

static int open_windows(struct session *session)
{
	return windows_open(&session->windows, &(struct windows_deps){
						       .options = session->options,
						       .profile = &session->profile,
						       .pending = &session->pending,
						       .processes = &session->processes,
						       .agents = &session->jvms.agents,
						       .report = report_window,
						       .before_write = before_write,
						       .release_dead = session_release_dead,
						       .context = session,
					       });
}

/* The closing lines cover the whole recording. */
static int finish_windows(struct session *session)
{
	int err = windows_end(&session->windows, session->ended_ns);
	BUF(where);

	session->profile.start_ns = session->started_ns;
	report_losses(&session->report);
	if (log_level() >= LOG_DEBUG)
		report_details(&session->report);
	buf_printf(&where, "%llu window%s in %s", (unsigned long long)session->windows.written,
		   session->windows.written == 1 ? "" : "s", session->options->folder.folder);
	closing_print(&session->report, where.data, false);
	return err;
}

static int open_outputs(struct session *session)
{
	const struct options *options = session->options;
	int err = 0;

	session->style = options->style;
	session->style.jfr.jdk_file = options->jfrsync ? &session->jdk.file : NULL;
	output_files_init(&session->outputs, &session->profile, &session->style, &options->folder.access);
	thinning_open(&session->profile.thinning, options->max_file);
	for (size_t i = 0; !err && i < options->outputs.len; i++)
		err = output_files_add(&session->outputs, options->outputs.items[i].writer,
				       options->outputs.items[i].file);
	return err;
}

static unsigned int without_of(const struct session *session)
{
	static const struct {
		const char *event;
		enum flight_without without;
	} rows[] = {
		{"cpu", FLIGHT_WITHOUT_CPU},
		{"alloc", FLIGHT_WITHOUT_ALLOC},
		{"live", FLIGHT_WITHOUT_ALLOC},
		{"lock", FLIGHT_WITHOUT_LOCK},
	};
	const struct event_list *events = &session->options->events;
	unsigned int without = ~session->style.jfr.without & WRITER_WITHOUT_ALL;

	for (size_t i = 0; i < events->len; i++)
		for (size_t row = 0; row < sizeof(rows) / sizeof(*rows); row++)
			if (!strcmp(events->items[i].event->name, rows[row].event))
				without |= rows[row].without;
	return without;
}

/* Starts the JVM's own recording. Returns 0, or -errno after reporting the error. */
static int start_jdk(struct session *session)
{
	const struct options *options = session->options;
	const struct process *process;
	BUF(why);
	int err = -ESRCH;

	if (!options->jfrsync)
		return 0;
	process = process_get(&session->processes, options->pids.items[0], 0);
	if (process)
		err = flight_recording_start(&session->jdk, process, options->jfrsync, without_of(session), &why);
	else
		buf_printf(&why, "there is no process %d", options->pids.items[0]);
	if (err < 0)
		log_error("%s", why.data);
	return err;
}

static void end_jdk(struct session *session)
{
	const struct process *process = session->options->jfrsync ?
						process_find(&session->processes, session->options->pids.items[0]) :
						NULL;
	BUF(why);

	if (session->jdk.is_running &&
	    flight_recording_update(&session->jdk, true, !process || process_is_ending(process), &why) < 0) {
		log_warn("%s", why.data);
		profile_add_loss(&session->profile, 1, why.data);
	}
}

/* Windows have no notes: each would need them again. */
static void begin_vitals(struct session *session)
{
	if (session->options->window_ns || !output_files_have_notes(&session->outputs))
		return;
	vitals_open(&session->vitals, &session->profile);
	session_note_vitals(session, clock_monotonic_ns());
}

/* A file that is written during the recording begins with the facts that are known by now. */
static void begin_outputs(struct session *session)
{
	if (!output_files_have_streams(&session->outputs))
		return;
	session->profile.end_ns = clock_monotonic_ns();
	report_beginning(&session->report);
	output_files_begin(&session->outputs, session->profile.end_ns);
	vec_clear(&session->profile.facts);
}

/* Appends a sentence if the recording has met nobody. A process that was met and had no sample is an answer. */
static void explain_nobody(struct session *session, struct buf *none)
{
	const struct event_list *events = &session->options->events;

	if (session->pending.sink.outcomes.samples)
		return;
	if (session->options->host && !session->selection.found)
		selection_count(&session->selection, &session->processes, none);
	else if (!event_list_has_ticks(events) && !session->jvms.has_met) {
		buf_add_str(none, "no JVM ran, and only JVMs have samples of ");
		event_list_tap_names(events, none);
	}
}

/* Returns -ESRCH, after reporting it, if there is nothing to write. A file that exists already is ended properly. */
static int check_met(struct session *session)
{
	BUF(none);
	BUF(written);
	int err = 0;

	explain_nobody(session, &none);
	if (none.len) {
		log_error("nothing was recorded: %s", none.data);
		err = -ESRCH;
		if (output_files_have_streams(&session->outputs))
			(void)output_files_write(&session->outputs, &written);
	}
	return err;
}

static int finish(struct session *session)
{
	BUF(where);
	int err = check_met(session);

	if (err < 0)
		return err;
	report_facts(&session->report);
	report_losses(&session->report);
	end_jdk(session);
	if (log_level() >= LOG_DEBUG)
		report_details(&session->report);
	budget_report_need(&session->budget);
	budget_before_write(&session->budget);
	err = output_files_write(&session->outputs, &where);
	closing_print(&session->report, where.data, output_files_show_headline(&session->outputs));
	return err;
}

static void init_report(struct session *session)
{
	session->report = (struct report){
		.options = session->options,
		.engine = &session->engine,
		.engine_why = session->engine_why.data,
		.command_ns = session->command_ns,
		.started_ns = session->started_ns,
		.profile = &session->profile,
		.host = &session->host,
		.agents = &session->jvms.agents,
		.processes = &session->processes,
		.outcomes = &session->pending.sink.outcomes,
		.overhead = &session->overhead,
		.pool = &session->budget.pool,
		.windows = &session->windows.written,
		.longest_step_ns = &session->longest_step_ns,
	};
}

int session_run(const struct options *options)
{
	struct session *session = calloc(1, sizeof(*session)); /* large: the stack may be small */
	int err, code;

	if (!session)
		return 1;
	nice_raise();
	err = session_open(session, options);
	if (!err)
		err = options->window_ns ? open_windows(session) : open_outputs(session);
	if (!err && !options->await)
		err = status_open(&session->status, options->metrics);
	if (!err)
		err = start_jdk(session);
	if (!err)
		err = session_start(session);
	if (!err && options->await) /* while it waited, there was nothing to report */
		err = status_open(&session->status, options->metrics);
	if (err < 0)
		goto out;
	session->profile.start_ns = session->started_ns;
	session->profile.start_realtime_ns = session->started_ns + clock_realtime_offset_ns();
	init_report(session);
	if (options->window_ns) {
		windows_start(&session->windows, session->started_ns, options->duration_ns);
		notify_send(&session->notify, "READY=1");
	}
	begin_vitals(session);
	census_open(&session->census, &session->profile, options->usages_ns);
	begin_outputs(session);
	session_loop(session);
	session_stop(session);
	nice_reset();
	err = options->window_ns ? finish_windows(session) : finish(session);
out:
	output_files_release(&session->outputs);
	status_close(&session->status);
	session_close(session);
	/* what the user ends is the recording, whatever his signal does to the command */
	code = err < 0 ? 1 : session->interrupted ? 0 : launch_exit_code(&session->launch);
	free(session);
	return code;
}
