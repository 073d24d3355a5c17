/* SPDX-License-Identifier: MIT */
#include "windows.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "profile/exchange.h"
#include "session_internal.h"

#define WRITER_PATIENCE_NS (60 * NS_PER_SEC) /* longest time to write one window; after that the disk counts as hung */
#define LIVE_STRINGS_MIN (4u << 20) /* bytes; below this, unused strings are not worth a new table */
#define FORMATS_MAX 16

/* ---- a window's own numbers ---- */

/*
 * Loss counts grow over the whole recording; a window reports only what was added. A count that shrank is reported
 * again once it exceeds its old value.
 */
static void subtract_losses(struct windows *windows, struct profile *profile)
{
	size_t kept = 0;

	for (size_t i = 0; i < profile->losses.len; i++) {
		struct profile_loss loss = profile->losses.items[i];
		const char *text = intern_text(&profile->strings, loss.text);
		uint64_t key = hash_bytes(text, strlen(text), 0), before = 0;

		map_get(&windows->lost, key, &before);
		if (loss.count <= before || map_put(&windows->lost, key, loss.count) < 0)
			continue;
		loss.count -= before;
		profile->losses.items[kept++] = loss;
	}
	profile->losses.len = kept;
}

/* Does the same for the outcomes. */
static void report_window(struct session *session)
{
	struct outcomes own = outcomes_since(&session->outcomes, &session->windows.before);
	struct report report = session->report;

	report.outcomes = &own;
	report_facts(&report);
	session->windows.before = session->outcomes;
	session->profile.host.window_ns = session->options->window_ns;
	report_losses(&session->report);
	subtract_losses(&session->windows, &session->profile);
}

static uint64_t realtime_of(uint64_t monotonic_ns)
{
	return clock_realtime_ns() - (clock_monotonic_ns() - monotonic_ns);
}

/* ---- writing ---- */

static int write_files(const struct session *session)
{
	const struct session_options *options = session->options;
	const struct writer_options style = session_style(session);
	const struct writer *formats[FORMATS_MAX];
	size_t count = 0;

	for (; count < options->outputs.len && count < FORMATS_MAX; count++)
		formats[count] = options->outputs.items[count].writer;
	return window_files_write(&options->folder, &session->profile, &style, formats, count,
				  session->windows.end_realtime_ns);
}

/* Reports only changes: when writing begins to fail, and when it works again. */
static void report_written(struct session *session, int err)
{
	struct windows *windows = &session->windows;
	const char *folder = session->options->folder.folder;

	if (err < 0)
		loader_counters[DUET_LOADER_WINDOW_LOST] += windows->writer_samples;
	if (err < 0 && !windows->is_failing)
		log_error("%s: a window could not be written: %s; the recording continues, older windows are unchanged",
			  folder, strerror(-err));
	else if (!err && windows->is_failing)
		log_info("%s: windows are written again", folder);
	windows->is_failing = err < 0;
}

static void start_writer(struct session *session)
{
	struct windows *windows = &session->windows;
	pid_t pid = fork();

	if (!pid) {
		budget_before_write(&session->budget);
		_exit(-write_files(session) & 0xff);
	}
	windows->writer_samples = session->profile.samples.len;
	windows->writer_ns = clock_monotonic_ns();
	windows->is_killed = false;
	if (pid < 0)
		return report_written(session, -errno);
	windows->writer = pid;
	budget_writer_started(&session->budget);
}

/* The writer's exit code is its errno. A writer that was killed has none. */
static int error_of(const struct windows *windows, int status)
{
	if (WIFEXITED(status))
		return -WEXITSTATUS(status);
	return windows->is_killed ? -ETIMEDOUT : -EIO;
}

static void reap_writer(struct session *session)
{
	struct windows *windows = &session->windows;
	uint64_t age_ns = clock_monotonic_ns() - windows->writer_ns;
	int status;

	if (windows->writer && waitpid(windows->writer, &status, WNOHANG) == windows->writer) {
		windows->writer = 0;
		budget_writer_ended(&session->budget);
		report_written(session, error_of(windows, status));
	} else if (windows->writer && age_ns > WRITER_PATIENCE_NS && !windows->is_killed) {
		windows->is_killed = true;
		kill(windows->writer, SIGKILL);
	}
}

static void await_writer(struct session *session)
{
	struct timespec moment = {.tv_nsec = 10 * NS_PER_MS};

	for (reap_writer(session); session->windows.writer && !session->windows.is_killed; reap_writer(session))
		nanosleep(&moment, NULL);
}

/* ---- from one window to the next ---- */

static bool is_complete(const struct session *session)
{
	uint64_t until_ns = session->profile.until_ns;

	return session->read_ns >= until_ns + WINDOWS_SLACK_NS && join_oldest_ns(session->join) >= until_ns;
}

/* Forgets cached rows of the profile, which no longer exist, and moves cached strings to the new table. */
static void forget_rows(struct session *session, struct intern_move *move)
{
	for (size_t i = 0; i < session->processes.all.len; i++) {
		struct process *process = session->processes.all.items[i];

		process->owner_ns = 0;
		process->stack_rows = 0;
		process->program = intern_moved(move, process->program);
		process->application = intern_moved(move, process->application);
		process->executed_as = intern_moved(move, process->executed_as);
		process->libjvm = intern_moved(move, process->libjvm);
		process->vm_flags = intern_moved(move, process->vm_flags);
		process->vm = intern_moved(move, process->vm);
	}
	resolver_new_profile(&session->resolver);
}

/* Returns true when the string table has doubled, so that much of it may belong to what has ended. */
static bool wants_new_strings(const struct session *session)
{
	size_t live = session->windows.live_strings;

	return intern_memory(&session->profile.strings) > 2 * (live > LIVE_STRINGS_MIN ? live : LIVE_STRINGS_MIN);
}

static void exchange_with_strings(struct session *session, uint64_t until_ns)
{
	struct intern old = session->profile.strings, strings;
	struct intern_move move;

	if (intern_init(&strings) < 0)
		return;
	if (intern_move_init(&move, &old, &strings) < 0)
		return intern_release(&strings);
	loader_counters[DUET_LOADER_OUT_OF_MEMORY] += profile_exchange(&session->profile, until_ns, &move);
	for (size_t i = 0; i < session->agents.len; i++)
		jvm_move_strings(session->agents.items[i]->jvm, &move);
	forget_rows(session, &move);
	session->windows.live_strings = intern_memory(&session->profile.strings);
	intern_move_release(&move);
	intern_release(&old);
}

static void next_window(struct session *session)
{
	struct profile *profile = &session->profile;
	uint64_t start_ns = profile->until_ns, until_ns = start_ns + session->options->window_ns;

	session_release_dead(session);
	if (wants_new_strings(session))
		exchange_with_strings(session, until_ns);
	if (profile->until_ns != until_ns) {
		loader_counters[DUET_LOADER_OUT_OF_MEMORY] += profile_exchange(profile, until_ns, NULL);
		forget_rows(session, NULL);
	}
	profile->start_ns = start_ns;
	profile->start_realtime_ns = realtime_of(start_ns);
	malloc_trim(0);
}

/*
 * Ends the window and begins the next. `is_late`: the disk has been hung for so long that this window is not written.
 */
static void end_window(struct session *session, bool is_late)
{
	struct windows *windows = &session->windows;

	session->profile.end_ns = session->profile.until_ns;
	budget_tell_need(&session->budget);
	windows->end_realtime_ns = realtime_of(session->profile.end_ns);
	report_window(session);
	if (is_late)
		windows->writer_samples += session->profile.samples.len; /* reported when the writer is gone */
	else
		start_writer(session);
	windows->written++;
	next_window(session);
}

void windows_step(struct session *session)
{
	uint64_t until_ns = session->profile.until_ns;
	bool is_late;

	if (!session->options->window_ns)
		return;
	reap_writer(session);
	is_late = session->windows.writer && session->read_ns > until_ns + WRITER_PATIENCE_NS;
	if (is_complete(session) && (!session->windows.writer || is_late))
		end_window(session, is_late);
}

/* ---- begin and end ---- */

int windows_open(struct session *session)
{
	const struct window_files *folder = &session->options->folder;
	int err = window_files_open(folder);

	if (err < 0)
		log_error("%s: cannot create files there: %s; choose another folder with -f", folder->folder,
			  strerror(-err));
	return err;
}

void windows_start(struct session *session)
{
	if (!session->options->window_ns)
		return;
	session->profile.until_ns = session->started_ns + session->options->window_ns;
	notify_send(&session->notify, "READY=1");
}

/* Prints the closing lines, which cover the whole recording. */
static void report_all(struct session *session)
{
	vec_clear(&session->profile.losses);
	session->profile.start_ns = session->started_ns;
	report_losses(&session->report);
	report_summary(&session->report);
	log_info("%llu windows in %s", (unsigned long long)session->windows.written + 1,
		 session->options->folder.folder);
}

int windows_end(struct session *session)
{
	struct windows *windows = &session->windows;
	int err;

	await_writer(session);
	while (session->profile.until_ns <= session->ended_ns) {
		end_window(session, windows->writer != 0);
		await_writer(session);
	}
	session->profile.end_ns = session->ended_ns;
	budget_tell_need(&session->budget);
	windows->end_realtime_ns = realtime_of(session->ended_ns);
	report_window(session);
	err = write_files(session);
	report_written(session, err);
	report_all(session);
	return err;
}

void windows_release(struct session *session)
{
	map_release(&session->windows.lost);
}
