/* SPDX-License-Identifier: MIT */
#include "recorder/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/inputs.h"
#include "cmd/work.h"
#include "cmd/record.h"
#include "jvms/flight_recording.h"
#include "profile/merge.h"
#include "proc/process.h"
#include "readers/reader.h"
#include "recorder/arguments.h"
#include "recorder/report_shape.h"
#include "status/report.h"
#include "writers/output_files.h"
#include "writers/shared/grouping.h"

#define BEGIN_NS (30 * NS_PER_SEC) /* longest wait for the first sample; an agent may have to be attached before */
#define END_NS (15 * NS_PER_SEC) /* longest wait for the end; longer than the session's own deadlines at its end */
#define REPORT_NS (600 * NS_PER_SEC) /* longest wait for a report: its CPU time has a limit, but it may be stopped */
#define FLUSH_NS (3 * NS_PER_SEC)
#define STEP_NS NS_PER_MS
#define LOG_MAX (64u << 10)
#define MAX_PARTS 64 /* most parts of resumed recordings; then they become one */
#define EMPTY_STATUS 3 /* exit code of the child that has made an empty report */
#define PART_FORMAT "duet" /* no report has this format */
#define SHAPED_REPORT_MAX (512ull << 20) /* bytes of a report of another user's recording */
#define MEMORY_BYTES (256u << 20) /* limit of all parts, if memlimit is not given */

static bool has_ended(pid_t child, int *ret_status)
{
	return waitpid(child, ret_status, WNOHANG) != 0;
}

/* Appends the last error that the child logged, without its prefix; without an error, how the child ended. */
static void report_failure(int log, int status, struct buf *why)
{
	static const char prefix[] = "duet: error: ";
	const char *line = NULL;
	BUF(text);

	(void)io_read_again(log, LOG_MAX, &text);
	for (const char *next = text.data; (next = strstr(next, prefix)) != NULL; next++)
		line = next + strlen(prefix);
	if (line)
		buf_printf(why, "%.*s", (int)strcspn(line, "\n"), line);
	else if (WIFSIGNALED(status))
		buf_printf(why, "the recording was ended by signal %d", WTERMSIG(status));
	else
		buf_printf(why, "the recording ended at once");
}

/* ---- the child ---- */

/* The child begins its output when it begins to sample. */
static int await_begin(struct recording *recording, int part, struct buf *why)
{
	uint64_t until_ns = clock_monotonic_ns() + BEGIN_NS;
	int status;

	while (!io_bytes(part)) {
		if (has_ended(recording->child, &status)) {
			report_failure(recording->log, status, why);
			recording->child = 0;
			return -ECHILD;
		}
		if (clock_monotonic_ns() > until_ns) {
			recording_stop(recording);
			return buf_explain(why, -ETIMEDOUT, "the recording did not begin within %llu s",
					  BEGIN_NS / NS_PER_SEC);
		}
		clock_sleep(STEP_NS);
	}
	return 0;
}

static uint64_t memory_limit_of(const struct asprof_arguments *arguments)
{
	uint64_t asked = arguments->memory_bytes ? arguments->memory_bytes : MEMORY_BYTES;

	return asked < RECORD_FILE_MIN_BYTES ? RECORD_FILE_MIN_BYTES : asked;
}

/* What a child needs to know of the parts that were recorded before. */
static struct recording_subject with_limit(const struct recording *recording, const struct recording_subject *subject,
					   const struct asprof_arguments *arguments, bool is_first)
{
	struct recording_subject limited = *subject;

	limited.max_bytes = memory_limit_of(arguments) - (is_first ? 0 : recording_bytes(recording));
	return limited;
}

/* Takes the child that waits, if it makes this recording; otherwise starts another one. Lets it begin. */
static int begin_child(struct recording *recording, const struct recording_subject *of,
		       const struct asprof_arguments *arguments, struct recording_child *ret, struct buf *why)
{
	const struct recording_subject subject = with_limit(recording, of, arguments, false);
	int err;

	*ret = recording->waiting;
	if (recording_child_fits(&recording->waiting, &subject, arguments) &&
	    !recording_child_begin(&recording->waiting, subject.agent))
		return 0;
	recording_child_end(&recording->waiting);
	err = recording_child_start(&recording->waiting, &subject, arguments, why);
	if (err)
		return err;
	*ret = recording->waiting;
	err = recording_child_begin(&recording->waiting, subject.agent);
	if (err)
		buf_printf(why, "the process of the recording has ended at once: %s", strerror(-err));
	return err;
}

/* Takes ownership of what the child writes. */
static int add_part(struct recording *recording, const struct recording_child *child)
{
	io_close(&recording->log);
	recording->log = child->log;
	recording->child = child->pid;
	recording->is_thin_reported = false;
	if (vec_push(&recording->parts, child->part) == 0)
		return 0;
	close(child->part);
	recording_stop(recording);
	return -ENOMEM;
}

void recording_prepare(struct recording *recording, const struct recording_subject *of,
		       const struct asprof_arguments *arguments)
{
	const struct recording_subject subject = with_limit(recording, of, arguments, true);
	BUF(why);

	if (recording_child_fits(&recording->waiting, &subject, arguments))
		return;
	recording_child_end(&recording->waiting);
	if (recording_child_start(&recording->waiting, &subject, arguments, &why))
		log_debug("process %d: %s", subject.pid, why.data);
}

static void forget_parts(struct recording *recording)
{
	for (size_t i = 0; i < recording->parts.len; i++)
		close(recording->parts.items[i]);
	vec_clear(&recording->parts);
}

static int check_room(const struct recording *recording, const struct asprof_arguments *arguments, struct buf *why)
{
	uint64_t most = memory_limit_of(arguments);

	if (recording_bytes(recording) + RECORD_FILE_MIN_BYTES <= most)
		return 0;
	return buf_explain(why, -ENOSPC,
			  "the recording has reached its limit of %llu kB: start a new one, or give a larger memlimit",
			  (unsigned long long)most >> 10);
}

static int read_parts(struct recording *recording, const struct asprof_arguments *arguments, struct buf *why);

/* Makes one part of all. No child may run. */
static int merge_parts(struct recording *recording, struct buf *why)
{
	const struct asprof_arguments whole = {.writer = writer_by_name(PART_FORMAT)};
	int merged = read_parts(recording, &whole, why);

	if (merged < 0)
		return merged;
	forget_parts(recording);
	return vec_push(&recording->parts, merged); /* cannot fail: there were more */
}

/* ---- JFR ---- */

/* Keeps what the start command says about JFR files: the command that ends the recording does not repeat it. */
static void keep_options(struct recording *recording, const struct asprof_arguments *arguments)
{
	struct clock_pair now = clock_pair(clock_cycles, clock_monotonic_ns);

	recording->jfr = arguments->style.jfr;
	recording->cycles_ns = now.other;
	recording->begun_cycles = arguments->clock && !strcmp(arguments->clock, "tsc") ? now.one : 0;
	buf_clear(&recording->settings);
	asprof_arguments_settings(arguments, &recording->settings);
}

static unsigned int without_of(const struct asprof_arguments *arguments)
{
	bool has_cpu = arguments->event || arguments->all, has_alloc = arguments->alloc.is_wanted || arguments->live;
	unsigned int without = (arguments->style.jfr.without ^ WRITER_WITHOUT_ALL) & WRITER_WITHOUT_ALL;

	if (has_cpu || !(has_alloc || arguments->lock.is_wanted || arguments->wall.is_wanted))
		without |= FLIGHT_WITHOUT_CPU;
	if (has_alloc || arguments->all)
		without |= FLIGHT_WITHOUT_ALLOC;
	if (arguments->lock.is_wanted || arguments->all)
		without |= FLIGHT_WITHOUT_LOCK;
	return without;
}

static int start_jdk(struct recording *recording, pid_t pid, const struct asprof_arguments *arguments, struct buf *why)
{
	struct process_table processes;
	const struct process *process;
	int err = -ESRCH;

	flight_recording_release(&recording->jdk);
	buf_clear(&recording->jdk_why);
	if (!arguments->jfrsync)
		return 0;
	process_table_init(&processes);
	process = process_get(&processes, pid, 0);
	if (process)
		err = flight_recording_start(&recording->jdk, process, arguments->jfrsync, without_of(arguments), why);
	else
		buf_printf(why, "process %d has ended", pid);
	process_table_release(&processes);
	return err;
}

/* Reads what the JVM has recorded until now. If that fails, the report says so. */
static void update_jdk(struct recording *recording, bool is_end)
{
	if (!recording->jdk.is_running)
		return;
	buf_clear(&recording->jdk_why);
	(void)flight_recording_update(&recording->jdk, is_end, recording->is_ending, &recording->jdk_why);
}

/* The ticks are those of System.nanoTime(), or of the processor's counter. */
static void set_jfr(const struct recording *recording, const struct profile *profile, struct writer_options *style)
{
	struct clock_pair now = clock_pair(clock_cycles, clock_monotonic_ns);
	uint64_t cycles = now.one, ns = now.other;
	uint64_t age_ns = ns + clock_realtime_offset_ns() - profile->start_realtime_ns;

	style->jfr = recording->jfr;
	style->jfr.settings = recording->settings.data;
	style->jfr.is_plain = true;
	style->jfr.jdk_file = recording->jdk.file >= 0 ? &recording->jdk.file : NULL;
	style->jfr.start_ticks = age_ns < ns ? ns - age_ns : 0;
	if (!recording->begun_cycles || ns <= recording->cycles_ns)
		return;
	style->jfr.ticks_per_second = (uint64_t)((double)(cycles - recording->begun_cycles) * NS_PER_SEC /
						 (double)(ns - recording->cycles_ns));
	style->jfr.start_ticks =
		cycles - (uint64_t)((unsigned __int128)age_ns * style->jfr.ticks_per_second / NS_PER_SEC);
}

/* ---- begin and end ---- */

void recording_init(struct recording *recording)
{
	*recording = (struct recording){.log = -1, .jdk = FLIGHT_RECORDING_NONE, .waiting = RECORDING_CHILD_NONE};
	buf_init(&recording->jdk_why);
	buf_init(&recording->settings);
}

/* Starts the JVM's own recording and the child. Returns 0 and the child, or -errno with why. */
static int begin_both(struct recording *recording, const struct recording_subject *subject,
		      const struct asprof_arguments *arguments, struct recording_child *ret, struct buf *why)
{
	int err = start_jdk(recording, subject->pid, arguments, why);

	recording->part_ns = clock_realtime_ns();
	keep_options(recording, arguments);
	if (!err)
		err = begin_child(recording, subject, arguments, ret, why);
	if (err)
		return err;
	recording->begun_ns = clock_monotonic_ns();
	err = add_part(recording, ret);
	if (err)
		buf_add_str(why, "no memory for the recording");
	return err;
}

int recording_resume(struct recording *recording, const struct recording_subject *subject,
		     const struct asprof_arguments *arguments, struct buf *why)
{
	struct recording_child child;
	int err = check_room(recording, arguments, why);

	if (!err && recording->parts.len == MAX_PARTS)
		err = merge_parts(recording, why);
	recording->begun = arguments;
	recording->shape = (struct report_shape){
		.stacks = stack_shape_of(arguments->cstack),
		.most_frames = arguments->depth,
		.kept_frames = arguments->kept_depth,
		.wall_ns = asprof_arguments_wall_ns(arguments),
	};
	recording->source = asprof_arguments_source(arguments);
	if (!err)
		err = begin_both(recording, subject, arguments, &child, why);
	if (!err) {
		err = await_begin(recording, child.part, why);
		if (err)
			close(recording->parts.items[--recording->parts.len]);
	}
	if (err)
		flight_recording_release(&recording->jdk);
	return err;
}

int recording_start(struct recording *recording, const struct recording_subject *subject,
		    const struct asprof_arguments *arguments, struct buf *why)
{
	forget_parts(recording);
	recording->window_ns = 0;
	return recording_resume(recording, subject, arguments, why);
}

/* The file grows with each flush, even if there are no new samples. `has_edge`: sleeping threads have a sample, too. */
static void flush(const struct recording *recording, bool has_edge)
{
	int part = recording->parts.items[recording->parts.len - 1];
	uint64_t until_ns = clock_monotonic_ns() + FLUSH_NS;
	uint64_t before = io_bytes(part);

	sigqueue(recording->child, SIGUSR1, (union sigval){.sival_int = has_edge});
	while (io_bytes(part) == before && clock_monotonic_ns() < until_ns)
		clock_sleep(STEP_NS);
}

bool recording_can_go_on(const struct recording *recording)
{
	const struct asprof_arguments *begun = recording->begun;

	return recording->child && !begun->live && !begun->all && !begun->jfrsync &&
	       recording_bytes(recording) < memory_limit_of(begun) / 4;
}

uint64_t recording_end_window(const struct recording *recording)
{
	flush(recording, true);
	return clock_realtime_ns();
}

void recording_go_on(struct recording *recording, uint64_t window_ns)
{
	recording->window_ns = window_ns;
	recording->begun_ns = window_ns - clock_realtime_offset_ns();
}

void recording_stop(struct recording *recording)
{
	int status;

	if (!recording->child)
		return;
	recording->ended_ns = clock_monotonic_ns();
	kill(recording->child, SIGINT);
	(void)child_await_until(recording->child, &status, recording->ended_ns + END_NS);
	recording->child = 0;
	update_jdk(recording, true);
}

bool recording_has_ended(struct recording *recording)
{
	int status;

	if (!recording->child || !has_ended(recording->child, &status))
		return false;
	recording->ended_ns = clock_monotonic_ns();
	recording->child = 0;
	recording->is_ending = true;
	update_jdk(recording, true);
	return true;
}

/* ---- reports ---- */

/* Applies what the start command has asked of all reports. */
static int apply_begun(const struct recording *recording, struct profile *profile, const struct writer *writer,
		       struct buf *why)
{
	const struct asprof_arguments *begun = recording->begun;
	int err = begin_end_apply(profile, begun, writer->has_all_events);

	if (!err && begun->filter)
		err = thread_filter_apply(profile, begun->filter, &recording->choices);
	if (err)
		buf_add_str(why, "no memory for the report");
	return err ? err : report_shape(profile, &recording->shape, writer, why);
}

/* People take an empty file or page for a failure. The text report says how many samples there are. */
static bool is_empty_picture(const struct profile *profile, const struct writer *writer)
{
	return text_is_word(writer->name, "collapsed flamegraph tree") && !profile->samples.len;
}

struct report_job {
	const struct recording *recording;
	const struct asprof_arguments *arguments; /* NULL for the sums */
	struct inputs parts;
};

/* Who gets the data makes the report, and has the samples alone. */
static int write_as(const struct recording *recording, const struct asprof_arguments *arguments,
		    struct profile *profile)
{
	struct writer_options style = arguments->as_data ? (struct writer_options){0} : arguments->style;
	const struct writer *writer = arguments->as_data ? writer_by_name(PART_FORMAT) : arguments->writer;

	if (arguments->as_data && recording->jdk.file >= 0)
		profile_add_loss(profile, 1, "the events of the JVM itself are in reports for its user alone");
	style.source = recording->source;
	style.processes = false; /* there is one process only */
	if (!arguments->as_data)
		set_jfr(recording, profile, &style);
	return grouping_write(writer, profile, &style, stdout);
}

/* Returns the exit code. */
static int write_report(const struct report_job *job, struct profile *profile)
{
	const struct recording *recording = job->recording;
	const struct asprof_arguments *arguments = job->arguments;
	BUF(why);
	int err = 0;

	if (!recording->is_shaped && strcmp(arguments->writer->name, PART_FORMAT) != 0)
		err = apply_begun(recording, profile, arguments->writer, &why);
	if (err)
		return log_fail(1, "%s", why.data);
	if (recording->jdk_why.len)
		profile_add_loss(profile, 1, recording->jdk_why.data);
	err = write_as(recording, arguments, profile);
	if (!err && fflush(stdout))
		err = -errno;
	if (err >= 0)
		return is_empty_picture(profile, arguments->writer) ? EMPTY_STATUS : 0;
	return log_fail(1, "the report could not be made: %s", strerror(-err));
}

static uint64_t walk_ns_of(const struct profile *profile)
{
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < profile->facts.len; i++)
		if (!strcmp(intern_text(&profile->strings, profile->facts.items[i].key), REPORT_WALKS))
			sum_ns += strtoull(intern_text(&profile->strings, profile->facts.items[i].value), NULL, 10);
	return sum_ns;
}

static int write_sums(const struct profile *profile)
{
	printf("%llu %llu", (unsigned long long)profile->samples.count, (unsigned long long)walk_ns_of(profile));
	return fflush(stdout) != 0;
}

/* Of the profile, leaves what the report is about. */
static int cut(struct profile *profile, const struct recording *recording)
{
	const struct profile_part part = {
		.from_ns = recording->from_ns > recording->window_ns ? recording->from_ns : recording->window_ns,
		.until_ns = recording->until_ns ? recording->until_ns : UINT64_MAX,
		.event = UINT32_MAX,
		.also = UINT32_MAX,
		.freed = UINT32_MAX,
	};
	struct profile chosen;
	BUF(why);
	int err;

	if (!part.from_ns && part.until_ns == UINT64_MAX)
		return 0;
	err = profile_init(&chosen);
	if (err)
		return err;
	err = profile_cut(&chosen, profile, &part, &why);
	profile_release(err ? &chosen : profile);
	if (!err)
		*profile = chosen;
	return err;
}

static int report_in_box(void *context)
{
	const struct report_job *job = context;
	struct profile profile;
	int code;

	if (inputs_read_all(&profile, &job->parts) < 0 || cut(&profile, job->recording) < 0)
		return 1;
	code = job->arguments ? write_report(job, &profile) : write_sums(&profile);
	profile_release(&profile);
	return code;
}

/* Does not return. Reads the parts by name: each reader has its own position. */
static void report(struct recording *recording, const struct asprof_arguments *arguments)
{
	struct report_job job = {.recording = recording, .arguments = arguments};
	const struct work work = {
		.inputs = &job.parts,
		.file = recording->jdk.file,
		.run = report_in_box,
		.context = &job,
	};
	const struct rlimit most = {SHAPED_REPORT_MAX, SHAPED_REPORT_MAX};
	size_t count = recording->parts.len;
	char names[MAX_PARTS][32], *paths[MAX_PARTS];
	int code;

	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "/proc/self/fd/%d", recording->parts.items[i]);
		paths[i] = names[i];
	}
	/* a report of another user's recording is in our memory, and may be many times as long */
	if (recording->is_shaped && setrlimit(RLIMIT_FSIZE, &most) < 0)
		_exit(1);
	code = inputs_expand(&job.parts, paths, count, false) ? 1 : work_run(&work);
	inputs_release(&job.parts);
	_exit(code);
}

/* Returns the descriptor of what a child has written, or -errno with why. */
static int read_parts(struct recording *recording, const struct asprof_arguments *arguments, struct buf *why)
{
	IO_FD(out) = memfd_create("duet-report", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	IO_FD(log) = memfd_create("duet-log", MFD_CLOEXEC);
	pid_t child = -1, recorder = getpid();
	int status = 1, written;

	if (recording->child)
		flush(recording, arguments != NULL);
	if (out >= 0 && log >= 0)
		child = fork();
	if (!child) {
		recording_child_redirect(recorder, out, log);
		report(recording, arguments);
	}
	if (child < 0)
		buf_printf(why, "no process for the report: %s", strerror(errno));
	else
		(void)child_await_until(child, &status, clock_monotonic_ns() + REPORT_NS);
	recording->is_report_empty = WIFEXITED(status) && WEXITSTATUS(status) == EMPTY_STATUS;
	if (recording->is_report_empty)
		status = 0;
	else if (status && child > 0)
		report_failure(log, status, why);
	if (child <= 0 || status)
		return -EIO;
	written = out;
	out = -1; /* the caller closes it */
	return written;
}

int recording_report(struct recording *recording, const struct asprof_arguments *arguments, struct buf *why)
{
	int report;

	if (recording->child && arguments->writer && !strcmp(arguments->writer->name, "jfr"))
		update_jdk(recording, false);
	report = read_parts(recording, arguments, why);
	if (report >= 0)
		(void)io_seal(report); /* who takes no other report says so */
	return report;
}

int recording_report_between(struct recording *recording, const struct asprof_arguments *arguments, uint64_t from_ns,
			     uint64_t until_ns, struct buf *why)
{
	int report;

	recording->from_ns = from_ns;
	recording->until_ns = until_ns;
	report = recording_report(recording, arguments, why);
	recording->from_ns = recording->until_ns = 0;
	return report;
}

int recording_report_of(int data, const struct asprof_arguments *arguments, struct buf *why)
{
	unsigned char start[READER_START];
	ssize_t len = pread(data, start, sizeof(start), 0);
	struct recording recording;
	int report;

	recording_init(&recording);
	recording.is_shaped = true;
	if (len <= 0 || !reader_duet.claims(start, (size_t)len))
		report = buf_explain(why, -EPROTO, "the other user's recorder sent what is no recording");
	else
		report = vec_push(&recording.parts, data);
	if (report < 0)
		close(data);
	else
		report = recording_report(&recording, arguments, why);
	recording_release(&recording);
	return report;
}

bool recording_is_thin(const struct recording *recording)
{
	BUF(log);
	char path[32];

	/* a descriptor with a position of its own: the child may be writing */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", recording->log);
	(void)io_read_file(AT_FDCWD, path, LOG_MAX, &log);
	return strstr(log.data, OUTPUT_FILES_LIMIT) != NULL;
}

uint64_t recording_bytes(const struct recording *recording)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < recording->parts.len; i++)
		bytes += io_bytes(recording->parts.items[i]);
	return bytes;
}

void recording_release(struct recording *recording)
{
	recording_stop(recording);
	vec_release(&recording->choices.all);
	recording_child_end(&recording->waiting);
	flight_recording_release(&recording->jdk);
	buf_release(&recording->jdk_why);
	buf_release(&recording->settings);
	forget_parts(recording);
	vec_release(&recording->parts);
	io_close(&recording->log);
}

int recording_sum(struct recording *recording, struct recording_sums *ret)
{
	char text[64] = "", *end;
	BUF(why);
	IO_FD(out) = read_parts(recording, NULL, &why);

	if (out < 0)
		return out;
	(void)!pread(out, text, sizeof(text) - 1, 0);
	ret->samples = strtoull(text, &end, 10);
	ret->walk_ns = strtoull(end, NULL, 10);
	return 0;
}
