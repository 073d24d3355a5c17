/* SPDX-License-Identifier: MIT */
/* The loop of a session: steps from the first tick to the last record. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/allowance.h"
#include "proc/helper.h"
#include "proc/room.h"
#include "session/internal.h"
#include "status/report.h"

#define STOP_TIMEOUT_NS (2 * NS_PER_SEC)
/* wait for the last signals: a thread may have been preempted before its handler ran, on a crowded CPU */
#define LAST_SIGNALS_NS (NS_PER_SEC / 2)
#define LAST_NAMES_NS (5 * NS_PER_SEC) /* wait for an agent that is still answering on a crowded CPU */
#define POLL_MS 50 /* rings are emptied this often; an agent whose ring is half full wakes the loop */
#define PUBLISH_NS (NS_PER_SEC / 50)
#define LEFT_NS (NS_PER_SEC / 10) /* what a command has left behind lives longer after its end */
#define LEFT_LISTED 4 /* processes that are named */
#define FLUSH_AFTER_NS (NS_PER_SEC / 50) /* after SIGUSR1: the agents' last records have arrived */

static bool is_end(const struct session *session, int signo)
{
	const struct options *options = session->options;

	if (signo == SIGCHLD || signo == SIGUSR1)
		return false;
	return !options->signalled || options->signalled(options->signalled_context, signo);
}

/* Those that people and init send need no word. */
static void report_signal(int signo)
{
	const char *name = sigabbrev_np(signo);

	if (signo != SIGINT && signo != SIGTERM && signo != SIGHUP)
		log_info("SIG%s ends the recording", name ? name : "RT");
}

static void on_signal(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (is_end(session, (int)info.ssi_signo)) {
			if (!session->interrupted)
				report_signal((int)info.ssi_signo);
			session->interrupted = true;
		}
		if (info.ssi_signo != SIGUSR1)
			continue;
		session->flush_has_edge |= info.ssi_int;
		if (!session->flush_wanted_ns)
			session->flush_wanted_ns = clock_monotonic_ns();
	}
}

bool session_agents_see_sleeps(const struct session *session)
{
	return session->engine.row->standalone && event_list_has_sleeps(&session->options->events);
}

/* Returns false while agents write what threads have slept so far, or its names arrive. */
static bool agents_have_flushed(struct session *session, uint64_t now_ns)
{
	if (!session_agents_see_sleeps(session))
		return true;
	if (!session->flush_asked_ns) {
		session->flush_asked_ns = now_ns;
		jvms_finish(&session->jvms, DUET_MESSAGE_FLUSH, now_ns);
	}
	if ((jvms_any(&session->jvms, AGENT_RUNNING, JVMS_FINISHING) || pending_count(&session->pending)) &&
	    now_ns - session->flush_asked_ns < LAST_SIGNALS_NS)
		return false;
	session->flush_asked_ns = 0;
	return true;
}

/* Call after the rings were read. What a process did before it asked for its report is in there, or arrives soon. */
static void flush_if_wanted(struct session *session, uint64_t now_ns)
{
	if (!session->flush_wanted_ns || now_ns - session->flush_wanted_ns < FLUSH_AFTER_NS)
		return;
	if (session->flush_has_edge && !agents_have_flushed(session, now_ns))
		return;
	if (session->flush_has_edge)
		sleep_edges_flush(session);
	session->flush_has_edge = false;
	report_so_far(&session->report);
	output_files_flush(&session->outputs, now_ns);
	vec_clear(&session->profile.facts);
	session->flush_wanted_ns = 0;
}

void session_step(struct session *session, int timeout_ms)
{
	size_t count = session->jvms.agents.len + 2;
	struct pollfd *fds = calloc(count, sizeof(*fds));
	uint64_t step_ns = clock_monotonic_ns() - session->woke_ns; /* since the last wait */

	if (!fds)
		return;
	if (session->started_ns && session->woke_ns >= session->started_ns && step_ns > session->longest_step_ns)
		session->longest_step_ns = step_ns;
	fds[0] = (struct pollfd){.fd = session->signal_fd, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = session->engine.facts.fd, .events = POLLIN};
	for (size_t i = 2; i < count; i++)
		fds[i] = (struct pollfd){.fd = agent_fd(session->jvms.agents.items[i - 2]), .events = POLLIN};
	if (session->flush_wanted_ns && timeout_ms > POLL_ATTACH_MS)
		timeout_ms = POLL_ATTACH_MS;
	if (session->is_behind || unwinding_has_work(&session->unwinding))
		timeout_ms = 0;
	if (poll(fds, count, timeout_ms) > 0 && fds[0].revents)
		on_signal(session);
	session->woke_ns = clock_monotonic_ns();
	jvms_step(&session->jvms, fds + 2, count - 2);
	session->is_behind = !intake_read(session);
	jvms_let_end(&session->jvms, session->intake.read_ns);
	flush_if_wanted(session, session->woke_ns);
	unwinding_work(&session->unwinding, &session->processes, clock_monotonic_ns() + PUBLISH_NS);
	notify_watchdog(&session->notify);
	free(fds);
}

/* Reports the processes that the command has left behind, some of them by name. */
static void report_left(struct session *session, const pid_t *left, size_t count)
{
	const char *name = session->options->command[0];
	BUF(list);
	char comm[16];

	for (size_t i = 0; i < count && i < LEFT_LISTED; i++) {
		process_read_thread_comm(CHARGE_OWN(left[i]), left[i], comm, sizeof(comm));
		buf_printf(&list, "%s%d (%s)", i ? ", " : "", left[i], comm);
	}
	if (count > LEFT_LISTED)
		buf_printf(&list, " and %zu more", count - LEFT_LISTED);
	if (session->options->duration_ns)
		log_info("%s has ended and left %s behind: recorded until -d is over", name, list.data);
	else
		log_info("%s has ended and left %s behind: so ends the recording; -d TIME goes on with them", name,
			 list.data);
}

/* True if what the command has left behind is recorded on, as -d says. What ends at once was not left behind. */
static bool goes_on_without(struct session *session)
{
	struct launch *launch = &session->launch;
	pid_t left[LEFT_LISTED];
	size_t count = collector_targets(session->engine.collector, left, LEFT_LISTED);

	if (count && clock_monotonic_ns() - launch->ended_ns < LEFT_NS)
		return true;
	if (count && !launch->has_reported_left)
		report_left(session, left, count);
	launch->has_reported_left = true;
	return count && session->options->duration_ns;
}

static bool targets_alive(struct session *session)
{
	struct rusage usage = {0};

	if (session->options->host)
		return true;
	if (session->options->command) {
		if (!launch_has_ended(&session->launch, &usage))
			return true;
		session->overhead.command_ns += overhead_usage_ns(&usage);
		return goes_on_without(session);
	}
	for (size_t i = 0; i < session->options->pids.len; i++) {
		struct process *process = process_find(&session->processes, session->options->pids.items[i]);

		if (process && !process_is_ending(process))
			return true;
	}
	return false;
}

static int step_ms(const struct session *session, uint64_t now_ns, uint64_t end_ns)
{
	uint64_t left_ms = (end_ns - now_ns) / NS_PER_MS + 1;
	unsigned int pace_ms = jvms_pace_ms(&session->jvms, now_ns, POLL_MS);

	return census_wait_ms(&session->census, now_ns, left_ms < pace_ms ? (int)left_ms : (int)pace_ms);
}

static void report_spent(void)
{
	struct room_spent spent;
	char who[48];
	uid_t uid;
	pid_t pid = parser_lost_for();

	while (allowance_next_spent(&uid))
		log_warn("the processes of user %u take too long to read: some stacks and names stay incomplete", uid);
	while (room_next_spent(&spent)) {
		if (spent.uid == (uid_t)-1)
			snprintf(who, sizeof(who), "processes that ended at once have");
		else
			snprintf(who, sizeof(who), "user %u has", spent.uid);
		log_warn("%s used up a share of %s: %s", who, spent.what, spent.effect);
		log_debug("%s %zu of %zu of it", who, spent.held, spent.size);
	}
	if (pid)
		log_warn("the parser of a file of process %d has crashed or taken too much: what the file says is "
			 "not used; -v counts such files", pid);
}

void session_note_vitals(struct session *session, uint64_t now_ns)
{
	struct vitals *vitals = &session->vitals;

	for (size_t i = 0; i < session->jvms.agents.len; i++) {
		struct process *process = session->jvms.agents.items[i]->origin.process;
		struct vitals_jvm *jvm = vitals_jvm(vitals, process);

		if (jvm)
			vitals_report(vitals, jvm, process, now_ns);
		charge_pause();
	}
	vitals_report_load(vitals, now_ns);
	vitals->looked_ns = now_ns;
}

/* Returns true if agents have more to say than ticks: of what the JVM does, or of threads that sleep. */
static bool has_taps(const struct session *session)
{
	return event_list_has_taps(&session->options->events) || session_agents_see_sleeps(session);
}

/* At the end of a window, agents write what there is, such as live objects, and then answer that they have finished. */
static void step_windows(struct session *session, uint64_t now_ns)
{
	uint64_t until_ns = session->profile.until_ns;

	if (until_ns && now_ns >= until_ns && session->asked_until_ns != until_ns &&
	    has_taps(session)) {
		jvms_finish(&session->jvms, DUET_MESSAGE_FLUSH, until_ns - 1);
		session->asked_until_ns = until_ns;
	}
	if (until_ns && session->asked_until_ns == until_ns) {
		if (jvms_any(&session->jvms, AGENT_RUNNING, JVMS_FINISHING) && now_ns < until_ns + LAST_NAMES_NS)
			return;
		intake_read(session);
	}
	windows_step(&session->windows, session->intake.read_ns);
}

void session_loop(struct session *session)
{
	uint64_t end_ns = session_end_ns(session);
	uint64_t now_ns = clock_monotonic_ns(), progress_ns = 0, looked_ns = 0, reported_ns = 0;

	while (now_ns < end_ns && !session->interrupted) {
		/* Not in each step: while names arrive, there may be hundreds of steps a second. */
		if (now_ns - looked_ns >= POLL_MS * NS_PER_MS) {
			if (!targets_alive(session))
				break;
			status_step(&session->status, now_ns);
			looked_ns = now_ns;
		}
		session_step(session, step_ms(session, now_ns, end_ns));
		sleep_edges_step(session, clock_monotonic_ns());
		step_windows(session, clock_monotonic_ns());
		now_ns = clock_monotonic_ns();
		census_step(&session->census, now_ns);
		unwinding_step(&session->unwinding, &session->processes, now_ns);
		overhead_step(&session->overhead, now_ns);
		if (session->vitals.profile && now_ns - session->vitals.looked_ns >= NS_PER_SEC)
			session_note_vitals(session, now_ns);
		if (now_ns - reported_ns >= NS_PER_SEC && output_files_have_streams(&session->outputs)) {
			report_losses(&session->report);
			reported_ns = now_ns;
		}
		output_files_step(&session->outputs, now_ns);
		report_spent();
		if (now_ns - progress_ns > NS_PER_SEC / 2) {
			closing_progress(&session->report);
			progress_ns = now_ns;
		}
	}
	log_progress("%s", "");
}

/*
 * A thread's handler runs when the thread runs next, which may be after the last tick. Wait before the agents are
 * stopped: a stopped agent neither handles the signal nor answers requests for names.
 */
static void await_last_signals(struct session *session)
{
	uint64_t now_ns = clock_monotonic_ns();
	const uint64_t signals_ns = now_ns + LAST_SIGNALS_NS, names_ns = now_ns + LAST_NAMES_NS;

	intake_read(session);
	while ((pending_count(&session->pending) || jvms_any(&session->jvms, AGENT_RUNNING, JVMS_FINISHING)) &&
	       jvms_any(&session->jvms, AGENT_RUNNING, JVMS_ANYTHING) &&
	       (now_ns < signals_ns || (now_ns < names_ns && jvms_any(&session->jvms, AGENT_RUNNING, JVMS_BUSY)))) {
		session_step(session, POLL_ATTACH_MS);
		/* an agent writes its last samples before it says that it has finished */
		intake_read(session);
		now_ns = clock_monotonic_ns();
	}
}

/* Stops the ticks, then the signals, then the agents, so that the last signal still finds its handler. */
void session_stop(struct session *session)
{
	uint64_t deadline;

	if (session->vitals.profile)
		session_note_vitals(session, clock_monotonic_ns());
	sleep_edges_end(session);
	collector_stop(session->engine.collector);
	session->ended_ns = session->profile.end_ns = clock_monotonic_ns();
	sleep_edges_pass(session);
	if (has_taps(session))
		jvms_finish(&session->jvms, DUET_MESSAGE_FINISH, session->ended_ns);
	await_last_signals(session);
	jvms_flush_unfaithful(&session->jvms, AGENT_GONE, "left before the end of the recording");
	jvms_flush_unwalked(&session->jvms);
	jvms_stop(&session->jvms);
	deadline = clock_monotonic_ns() + STOP_TIMEOUT_NS;
	while (jvms_any(&session->jvms, AGENT_STOPPING, JVMS_ANYTHING) && clock_monotonic_ns() < deadline)
		session_step(session, POLL_ATTACH_MS);
	jvms_flush_unfaithful(&session->jvms, AGENT_STOPPING, "did not confirm the end of the recording");
	while (!intake_read(session))
		;
	pending_flush(&session->pending, NULL);
	report_spent();
}
