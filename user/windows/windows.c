/* SPDX-License-Identifier: MIT */
#include "windows/windows.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/signals.h"
#include "join/pending.h"
#include "jvms/agents.h"
#include "proc/room.h"
#include "profile/merge.h"
#include "subject/program.h"
#include "windows/window_files.h"
#include "writers/text/headline.h"

#define WRITER_TIMEOUT_NS (60 * NS_PER_SEC) /* longest time to write one window; after that the disk counts as hung */
#define NEVER_NS (UINT64_MAX / 2)
#define LIVE_STRINGS_MIN (4u << 20) /* bytes; below this, unused strings are not worth a new table */

/* Losses grow over the recording; a window reports what was added. A count that shrank waits for its old value. */
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

/* For the journal, with -v: a line a minute is too much for most. */
static void log_window(const struct windows *windows)
{
	struct headline headline;
	BUF(line);

	if (log_level() < LOG_DEBUG)
		return;
	headline_of_profile(&headline, windows->of.profile);
	headline_text(&headline, "its file lists all", &line);
	log_debug("window %lu: %s", windows->written + 1, line.data);
}

static void report(struct windows *windows)
{
	windows->of.report(windows->of.context);
	windows->of.profile->host.window_ns = windows->of.options->window_ns;
	subtract_losses(windows, windows->of.profile);
	log_window(windows);
}

static int write_files(const struct windows *windows)
{
	const struct options *options = windows->of.options;
	const struct profile *profile = windows->of.profile;
	struct writer_options style = options->style;

	style.processes = writer_shows_processes(profile, &style);
	return window_files_write(&options->folder, profile, &style, options->outputs.items, options->outputs.len,
				  windows->end_realtime_ns);
}

/* Counts the samples of a window without a file. Reports only changes: writing begins to fail, or works again. */
static void report_written(struct windows *windows, int err, uint64_t samples)
{
	const char *folder = windows->of.options->folder.folder;

	if (err < 0)
		loader_counters[DUET_LOADER_WINDOW_LOST] += samples;
	if (err < 0 && !windows->is_failing)
		log_error("%s: a window could not be written: %s; the recording continues, older windows are unchanged",
			  folder, window_files_error(err));
	else if (!err && windows->is_failing)
		log_info("%s: windows are written again", folder);
	windows->is_failing = err < 0;
}

static void start_writer(struct windows *windows)
{
	pid_t pid = fork();

	if (!pid) {
		windows->of.before_write(windows->of.context);
		_exit(-write_files(windows) & 0xff);
	}
	windows->writer_samples = windows->of.profile->samples.len;
	windows->writer_ns = clock_monotonic_ns();
	windows->is_killed = false;
	if (pid < 0)
		return report_written(windows, -errno, windows->writer_samples);
	windows->writer = pid;
	windows->writer_bytes = profile_bytes(windows->of.profile);
}

/* The writer's exit code is its errno. A writer that was killed has none. */
static int error_of(const struct windows *windows, int status)
{
	if (WIFEXITED(status))
		return -WEXITSTATUS(status);
	return windows->is_killed ? -ETIMEDOUT : -EIO;
}

static void reap_writer(struct windows *windows)
{
	uint64_t until_ns = signals_limit(windows->writer_ns + WRITER_TIMEOUT_NS);
	int status;

	if (windows->writer && waitpid(windows->writer, &status, WNOHANG) == windows->writer) {
		windows->writer = 0;
		windows->writer_bytes = 0;
		report_written(windows, error_of(windows, status), windows->writer_samples);
	} else if (windows->writer && clock_monotonic_ns() > until_ns && !windows->is_killed) {
		windows->is_killed = true;
		kill(windows->writer, SIGKILL);
	}
}

static void await_writer(struct windows *windows)
{
	for (reap_writer(windows); windows->writer && !windows->is_killed; reap_writer(windows))
		clock_sleep(10 * NS_PER_MS);
}

static bool is_complete(const struct windows *windows, uint64_t read_ns)
{
	uint64_t until_ns = windows->of.profile->until_ns;

	return read_ns >= until_ns + WINDOWS_SLACK_NS && pending_oldest_ns(windows->of.pending) >= until_ns;
}

/* Drops cached row numbers of the profile, whose rows no longer exist, and moves cached strings to the new table. */
static void forget_rows(const struct windows_deps *of, struct intern_move *move)
{
	for (size_t i = 0; i < of->processes->all.len; i++) {
		owners_new_profile(of->processes->all.items[i], move);
		*resolver_rows(of->processes->all.items[i]) = 0;
	}
	for (enum room room = ROOM_NODES; room <= ROOM_USAGES; room++)
		room_empty(room);
	resolver_new_profile(&of->pending->sink.resolver);
}

static void exchange_with_strings(struct windows *windows, uint64_t until_ns)
{
	const struct windows_deps *of = &windows->of;
	struct intern old = of->profile->strings, strings;
	struct intern_move move;

	if (intern_init(&strings) < 0)
		return;
	if (intern_move_init(&move, &old, &strings) < 0)
		return intern_release(&strings);
	loader_counters[DUET_LOADER_OUT_OF_MEMORY] += profile_exchange(of->profile, until_ns, &move);
	for (size_t i = 0; i < of->agents->len; i++)
		jvm_move_strings(of->agents->items[i]->jvm, &move);
	forget_rows(of, &move);
	windows->live_strings = intern_memory(&of->profile->strings);
	intern_move_release(&move);
	intern_release(&old);
}

/*
 * Returns the end of the window that begins at start_ns. If the recording ends with the window, the window has no end
 * of its own: otherwise samples of the last moment would get a window of some milliseconds.
 */
static uint64_t end_of_window(const struct windows *windows, uint64_t start_ns)
{
	uint64_t end_ns = start_ns + windows->of.options->window_ns;

	return windows->last_ns && end_ns >= windows->last_ns ? NEVER_NS : end_ns;
}

static void next_window(struct windows *windows)
{
	struct profile *profile = windows->of.profile;
	uint64_t start_ns = profile->until_ns, until_ns = end_of_window(windows, start_ns);
	size_t live = windows->live_strings > LIVE_STRINGS_MIN ? windows->live_strings : LIVE_STRINGS_MIN;

	windows->of.release_dead(windows->of.context);
	if (intern_memory(&profile->strings) > 2 * live) /* much of it may belong to ended processes */
		exchange_with_strings(windows, until_ns);
	if (profile->until_ns != until_ns) {
		loader_counters[DUET_LOADER_OUT_OF_MEMORY] += profile_exchange(profile, until_ns, NULL);
		forget_rows(&windows->of, NULL);
	}
	profile->start_ns = start_ns;
	profile->start_realtime_ns = start_ns + clock_realtime_offset_ns();
	malloc_trim(0);
}

/* Ends the window and begins the next. `is_late`: this window is not written. */
static void end_window(struct windows *windows, bool is_late)
{
	struct profile *profile = windows->of.profile;

	profile->end_ns = profile->until_ns;
	windows->end_realtime_ns = profile->end_ns + clock_realtime_offset_ns();
	report(windows);
	if (is_late)
		report_written(windows, -ETIMEDOUT, profile->samples.len);
	else
		start_writer(windows);
	windows->written++;
	next_window(windows);
}

/* Returns true if windows end faster than they are written. After a pause, a loader still writes all that are old. */
static bool is_late(const struct windows *windows, uint64_t read_ns)
{
	return windows->writer && clock_monotonic_ns() > windows->writer_ns + windows->of.options->window_ns &&
	       read_ns > windows->of.profile->until_ns + WRITER_TIMEOUT_NS;
}

void windows_step(struct windows *windows, uint64_t read_ns)
{
	if (!windows->of.options || !windows->of.options->window_ns)
		return;
	reap_writer(windows);
	if (is_complete(windows, read_ns) && (!windows->writer || is_late(windows, read_ns)))
		end_window(windows, windows->writer != 0);
}

int windows_open(struct windows *windows, const struct windows_deps *of)
{
	int err = window_files_open(&of->options->folder);

	windows->of = *of;
	if (err < 0)
		log_error("%s: cannot create files there: %s; choose another folder with -f",
			  of->options->folder.folder, window_files_error(err));
	return err;
}

void windows_start(struct windows *windows, uint64_t started_ns, uint64_t duration_ns)
{
	windows->last_ns = duration_ns ? started_ns + duration_ns : 0;
	windows->of.profile->window_ns = windows->of.options->window_ns;
	profile_set_end(windows->of.profile, end_of_window(windows, started_ns));
}

/* The last window has a writer, too: whoever serves the folder's file system may hold it up for ever. */
int windows_end(struct windows *windows, uint64_t ended_ns)
{
	struct profile *profile = windows->of.profile;

	await_writer(windows);
	while (profile->until_ns <= ended_ns) {
		end_window(windows, windows->writer != 0);
		await_writer(windows);
	}
	profile->end_ns = ended_ns;
	windows->end_realtime_ns = ended_ns + clock_realtime_offset_ns();
	report(windows);
	if (windows->writer)
		report_written(windows, -ETIMEDOUT, profile->samples.len);
	else
		start_writer(windows);
	await_writer(windows);
	windows->written++;
	if (windows->writer)
		report_written(windows, -ETIMEDOUT, windows->writer_samples);
	return windows->is_failing ? -EIO : 0;
}

void windows_release(struct windows *windows)
{
	map_release(&windows->lost);
}
