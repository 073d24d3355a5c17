/* SPDX-License-Identifier: MIT */
#include "recorder/profiling.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "recorder/arguments.h"
#include "recorder/begun_file.h"
#include "recorder/recorder_socket.h"
#include "recorder/recording.h"
#include "recorder/report_file.h"

#define PREPARE_AFTER_NS (NS_PER_SEC / 5) /* a recording has begun by then */
#define WINDOW_SLACK_NS (NS_PER_SEC / 4) /* a sample is in the recording by then */
#define PREPARED_NS (600 * NS_PER_SEC) /* how long one that was prepared waits after the last command */

/* One command: its words, its sender, and its answer. */
struct request {
	struct profiling *profiling;
	struct asprof_arguments *arguments;
	const struct recorder_question *question;
	struct recorder_answer *answer;
};

static void refuse(const struct request *request, const char *text)
{
	request->answer->code = DUET_ANSWER_REFUSED;
	buf_add_str(&request->answer->text, text);
}

static bool is_of_library(const struct request *request)
{
	return request->question->head.kind != DUET_QUESTION_COMMAND &&
	       request->question->head.kind != DUET_QUESTION_SHARED;
}

/* Where lines for people go. */
static struct buf *lines_of(const struct request *request)
{
	return is_of_library(request) ? &request->answer->log : &request->answer->text;
}

/* ---- the recording ---- */

static void end_recording(struct profiling *profiling)
{
	recording_stop(&profiling->recording);
	profiling->until_ns = profiling->window_end_ns = 0;
	profiling->used_ns = clock_monotonic_ns();
}

/* Of CLOCK_MONOTONIC, rounded: a window that ends at a time of day must not end twice. */
static time_t second_of(uint64_t ns)
{
	return (time_t)((clock_realtime_offset_ns() + ns + NS_PER_SEC / 2) / NS_PER_SEC);
}

static void set_end(struct profiling *profiling, uint64_t begun_ns)
{
	uint64_t loop_ns = profiling->begun.loop_ns;

	profiling->until_ns = loop_ns ? begun_ns + asprof_arguments_span_ns(loop_ns, second_of(begun_ns))
				      : profiling->last_ns;
	if (profiling->last_ns && profiling->until_ns > profiling->last_ns)
		profiling->until_ns = profiling->last_ns;
}

static const char *why_not_begun(const struct request *request)
{
	const struct asprof_arguments *arguments = request->arguments;

	if (profiling_is_running(request->profiling))
		return "Profiler already started";
	if (is_of_library(request) && arguments->writer && !strcmp(arguments->writer->name, "jfr") && !arguments->file)
		return "Flight Recorder output file is not specified";
	return NULL;
}

static struct recording_subject subject_of(const struct profiling *profiling)
{
	bool is_known = profiling->agent.name[0];

	return (struct recording_subject){.pid = profiling->pid, .agent = is_known ? &profiling->agent : NULL};
}

/* Returns true if the sentence ends with the function that begins or ends the samples. */
static bool is_mark_missing(const char *mark, const struct buf *why)
{
	BUF(quoted);

	buf_printf(&quoted, "'%s'", mark ? mark : "");
	return mark && why->len >= quoted.len && !strcmp(why->data + why->len - quoted.len, quoted.data);
}

/* Callers know these sentences, and choose another event then. */
static void report_not_begun(const struct request *request, const struct asprof_arguments *begun, const struct buf *why)
{
	struct buf *text = &request->answer->text;

	if (asprof_arguments_are_unknown(begun))
		buf_printf(text, "Unsupported event type: '%s': ", begun->event);
	else if (is_mark_missing(begun->begin, why))
		buf_add_str(text, "Begin address not found: ");
	else if (is_mark_missing(begun->end, why))
		buf_add_str(text, "End address not found: ");
	else if (asprof_arguments_need_perf(begun))
		buf_add_str(text, "Perf events unavailable: ");
	buf_add_str(text, why->data);
	request->answer->code = DUET_ANSWER_REFUSED;
}

/* Takes ownership of the arguments. */
static void begin(struct request *request)
{
	struct profiling *profiling = request->profiling;
	bool is_resumed = request->arguments->action == ASPROF_RESUME;
	const struct recording_subject subject = subject_of(profiling);
	const char *refusal = why_not_begun(request);
	uint64_t timeout_ns;
	BUF(why);
	int err;

	if (refusal)
		return refuse(request, refusal);
	asprof_arguments_release(&profiling->begun);
	profiling->begun = *request->arguments;
	*request->arguments = (struct asprof_arguments){0};
	profiling->number = is_resumed ? profiling->number : 0;
	if (!is_resumed)
		vec_clear(&profiling->recording.choices.all);
	buf_clear(&profiling->begun_file);
	if (profiling->begun.file)
		begun_path(profiling, profiling->begun.file, &profiling->begun_file);
	profiling->is_private = (is_resumed && profiling->is_private) ||
				(!geteuid() && asprof_arguments_proc_ns(&profiling->begun));
	if (profiling->begun.file && profiling->is_private && !report_file_is_ours(profiling->pid))
		return refuse(request, REPORT_FILE_NOT_PRIVATE);
	err = (is_resumed ? recording_resume : recording_start)(&profiling->recording, &subject, &profiling->begun,
								&why);
	profiling->is_of_library = is_of_library(request);
	timeout_ns = asprof_arguments_span_ns(profiling->begun.timeout_ns, time(NULL));
	profiling->last_ns = profiling->begun.timeout_ns ? clock_monotonic_ns() + timeout_ns : 0;
	if (err)
		report_not_begun(request, &profiling->begun, &why);
	else
		set_end(profiling, clock_monotonic_ns());
	if (!err && (err = begun_create(profiling, is_resumed, &why)) < 0) {
		end_recording(profiling);
		refuse(request, why.data);
	}
	/* a program that starts a recording itself will likely start another one */
	if (!err && request->question->head.kind == DUET_QUESTION_API)
		profiling->prepare_ns = clock_monotonic_ns() + PREPARE_AFTER_NS;
	if (!err && !profiling->begun.quiet && !profiling->is_program_forgotten)
		buf_add_str(&request->answer->text, "Profiling started\n");
	profiling->is_program_forgotten = false;
}

/* Starts a recording whose samples nobody sees. */
static void check(const struct request *request)
{
	const struct recording_subject subject = subject_of(request->profiling);
	struct recording trial;
	BUF(why);

	if (profiling_is_running(request->profiling))
		return refuse(request, "Profiler already started");
	recording_init(&trial);
	if (recording_start(&trial, &subject, request->arguments, &why))
		report_not_begun(request, request->arguments, &why);
	else
		buf_add_str(&request->answer->text, "OK\n");
	recording_stop(&trial);
	recording_release(&trial);
}

/* Only a start can be prepared. What is wrong with the arguments, the command itself will report_state. */
static void prepare(struct profiling *profiling, const char *text)
{
	const struct recording_subject subject = {.pid = profiling->pid};
	struct asprof_arguments arguments;
	BUF(ignored);

	if (!profiling_is_running(profiling) && !asprof_arguments_parse(&arguments, text, &ignored, &ignored)) {
		if (arguments.action == ASPROF_START || arguments.action == ASPROF_RESUME)
			recording_prepare(&profiling->recording, &subject, &arguments);
		asprof_arguments_release(&arguments);
	}
}

static void step_prepared(struct profiling *profiling)
{
	const struct recording_subject subject = subject_of(profiling);
	uint64_t now_ns = clock_monotonic_ns();

	if (profiling->prepare_ns && now_ns >= profiling->prepare_ns) {
		profiling->prepare_ns = 0;
		recording_prepare(&profiling->recording, &subject, &profiling->begun);
	} else if (now_ns - profiling->used_ns > PREPARED_NS) {
		recording_child_end(&profiling->recording.waiting);
	}
}

/* ---- reports ---- */

static void answer_report(const struct request *request)
{
	if (!request->profiling->recording.parts.len)
		return refuse(request, "Profiler has not started");
	request->arguments->as_data = request->question->is_other && geteuid();
	request->answer->report =
		recording_report(&request->profiling->recording, request->arguments, &request->answer->text);
	if (request->answer->report < 0)
		request->answer->code = DUET_ANSWER_REFUSED;
}

/* Ends the recording, and its JFR file if it runs. Returns false after it has answered why that failed. */
static bool finish(const struct request *request)
{
	struct profiling *profiling = request->profiling;
	bool was_running = profiling_is_running(profiling);

	end_recording(profiling);
	if (was_running && begun_is_jfr(profiling) && begun_write(profiling, 0, &request->answer->text))
		request->answer->code = DUET_ANSWER_REFUSED;
	io_close(&profiling->jfr);
	return !request->answer->code;
}

/* Another user gets a report: the file is not his. */
static bool is_taken(const struct request *request)
{
	return !request->question->is_other && request->question->head.kind != DUET_QUESTION_SHARED &&
	       begun_takes(request->profiling, request->arguments);
}

/* The file has it. */
static void answer_taken(const struct request *request)
{
	if (request->arguments->file && request->question->head.kind == DUET_QUESTION_API)
		buf_add_str(&request->answer->text, "OK");
}

/*
 * For the library, which writes no files. Opens the file first: if that fails, the recording continues. `ends`: stop
 * the recording.
 */
static void answer_file(const struct request *request, bool ends)
{
	struct profiling *profiling = request->profiling;
	struct report_file file;

	if (!profiling->recording.parts.len)
		return refuse(request, "Profiler has not started");
	if (begun_open(profiling, request->arguments->file, &file, &request->answer->text)) {
		request->answer->code = DUET_ANSWER_NO_FILE;
		return;
	}
	if ((!ends || finish(request)) && begun_report(profiling, request->arguments, &file, &request->answer->text))
		request->answer->code = DUET_ANSWER_REFUSED;
	else if (!request->answer->code)
		answer_taken(request);
	report_file_discard(&file);
}

/* Returns true for a command without a file and a format, if the start command named a file for the end. */
static bool goes_to_begun(const struct request *request)
{
	return is_of_library(request) && !request->arguments->file && !request->arguments->writer &&
	       begun_has_file(request->profiling) && !begun_is_jfr(request->profiling);
}

static void stop(const struct request *request)
{
	struct profiling *profiling = request->profiling;
	bool was_running = profiling_is_running(profiling), taken = is_taken(request);

	if (is_of_library(request) && request->arguments->file && request->arguments->writer && !taken)
		return answer_file(request, true);
	if (!finish(request))
		return;
	if (taken)
		answer_taken(request);
	else if (was_running && goes_to_begun(request) && begun_write(profiling, 0, &request->answer->text))
		request->answer->code = DUET_ANSWER_REFUSED;
	else if (request->arguments->writer)
		answer_report(request);
	else if (!was_running)
		refuse(request, "Profiler is not active");
	if (was_running && !request->arguments->writer && !request->answer->code)
		buf_printf(&request->answer->text, "Profiling stopped after %llu seconds. No dump options specified\n",
			   (unsigned long long)state_seconds(&profiling->recording));
}

static void dump(const struct request *request)
{
	struct profiling *profiling = request->profiling;

	if (!request->arguments->writer)
		refuse(request, "No output format selected");
	else if (is_taken(request) && profiling_is_running(profiling) &&
		 begun_write(profiling, recording_end_window(&profiling->recording), &request->answer->text))
		request->answer->code = DUET_ANSWER_REFUSED;
	else if (is_taken(request))
		answer_taken(request);
	else if (is_of_library(request) && request->arguments->file)
		answer_file(request, false);
	else
		answer_report(request);
}

/* ---- answers about the state ---- */

static void write_text(const struct request *request, struct report_file *file)
{
	struct buf *text = &request->answer->text;
	IO_FD(report) = memfd_create("duet-report", MFD_CLOEXEC);
	int err = report < 0 ? -errno : io_write_all(report, text->data, text->len);

	buf_clear(text);
	if (!err)
		err = report_file_write(file, report, text);
	if (err)
		request->answer->code = DUET_ANSWER_REFUSED;
	else if (request->question->head.kind == DUET_QUESTION_API)
		buf_add_str(text, "OK");
}

/* Answers can also be written to a file. */
static void report_state(const struct request *request)
{
	struct report_file file;

	state_print(&request->profiling->recording, &request->profiling->begun, request->arguments->action,
		    &request->answer->text);
	if (!request->arguments->file || !is_of_library(request))
		return;
	if (begun_open(request->profiling, request->arguments->file, &file, &request->answer->text)) {
		request->answer->code = DUET_ANSWER_NO_FILE;
		return;
	}
	write_text(request, &file);
	report_file_discard(&file);
}

/* ---- the log ---- */

/* An agent has no caller for a returned text, so the whole answer goes to the log. */
static void settle_log(const struct request *request, const char *log, const char *level)
{
	struct recorder_answer *answer = request->answer;
	bool is_agent = request->question->head.kind == DUET_QUESTION_AGENT;
	BUF(path);

	if (is_agent && answer->text.len)
		buf_printf(&answer->log, answer->code ? "[ERROR] %s\n" : "%s", answer->text.data);
	if (is_agent)
		buf_clear(&answer->text);
	answer->stream = log && !strcmp(log, "stderr") ? DUET_ANSWER_STDERR : DUET_ANSWER_STDOUT;
	if (level && !strcmp(level, "none"))
		buf_clear(&answer->log);
	if (!log || text_is_word(log, "stdout stderr"))
		return;
	begun_path(request->profiling, log, &path);
	answer_log_write(path.data, answer, is_agent && !answer->is_private);
}

/* ---- the limit of memory ---- */

/* What a report lacks; of the limit, once for each recording, with its first report. */
static void report_lacks(const struct request *request)
{
	struct recording *recording = &request->profiling->recording;

	if (request->answer->code)
		return;
	if (!recording->is_thin_reported && recording_is_thin(recording)) {
		recording->is_thin_reported = true;
		buf_add_str(lines_of(request), "[WARN] The recording neared its limit of memory (memlimit): fewer "
					       "samples were kept, and each stands for several\n");
	}
	if (recording->is_report_empty)
		buf_add_str(lines_of(request), "[INFO] No samples were collected\n");
}

/* ---- questions ---- */

static void execute_for_server(void *context, const char *command, struct recorder_answer *answer)
{
	struct recorder_question question = {
		.head = {.kind = DUET_QUESTION_COMMAND}, .socket = -1, .is_of_server = true};

	buf_init(&question.arguments);
	buf_add_str(&question.arguments, command);
	profiling_answer(context, &question, answer);
	recorder_question_release(&question);
}

/* Without a server, the command is executed all the same. */
static void serve(const struct request *request)
{
	struct server *server = &request->profiling->server;
	const char *address = request->arguments->server;
	BUF(why);

	if (!address)
		return;
	server->execute = execute_for_server;
	server->context = request->profiling;
	if (!is_of_library(request))
		buf_add_str(&why, "server= is for arguments of the library");
	else
		(void)server_open(server, address, request->profiling->pid, &why);
	buf_printf(lines_of(request), why.len ? "[ERROR] %s\n" : "[INFO] HTTP server started at %s\n",
		   why.len ? why.data : address);
}

static void obey(struct request *request)
{
	serve(request);
	request->profiling->recording.is_report_empty = false;
	switch (request->arguments->action) {
	case ASPROF_START:
	case ASPROF_RESUME:
		return begin(request);
	case ASPROF_STOP:
		stop(request);
		return report_lacks(request);
	case ASPROF_DUMP:
		dump(request);
		return report_lacks(request);
	case ASPROF_CHECK:
		return check(request);
	case ASPROF_NONE:
		return;
	case ASPROF_STATUS:
	case ASPROF_MEMINFO:
	case ASPROF_METRICS:
	case ASPROF_LIST:
	case ASPROF_VERSION:
		report_state(request);
	}
}

/* ---- the recording of another user's recorder ---- */

/* The library writes no files, and the other recorder none for this user. */
static void pass_on_to_file(const struct request *request, int connection)
{
	struct recorder_answer *answer = request->answer;
	struct report_file file;

	if (begun_open(request->profiling, request->arguments->file, &file, &answer->text)) {
		answer->code = DUET_ANSWER_NO_FILE;
		return;
	}
	peer_recorder_answer(connection, request->arguments, request->question->arguments.data, answer);
	if (!answer->code && answer->report >= 0 && report_file_write(&file, answer->report, &answer->text))
		answer->code = DUET_ANSWER_REFUSED;
	if (!answer->code && answer->report >= 0 && request->question->head.kind == DUET_QUESTION_API)
		buf_add_str(&answer->text, "OK");
	io_close(&answer->report);
	report_file_discard(&file);
}

/*
 * Returns true if the command is about a recording of root's recorder, and was answered. Root's does not ask back: each
 * would wait for the other one.
 */
static bool obey_peer(const struct request *request)
{
	enum asprof_action action = request->arguments->action;
	struct profiling *profiling = request->profiling;
	IO_FD(connection) = -1;

	if (!geteuid() || profiling_is_running(profiling) || action == ASPROF_NONE || action == ASPROF_LIST ||
	    action == ASPROF_VERSION || request->question->head.kind == DUET_QUESTION_SHARED)
		return false;
	connection = peer_recorder_find(profiling->pid, profiling->start_ticks);
	if (connection < 0)
		return false;
	if (action == ASPROF_START || action == ASPROF_RESUME)
		refuse(request, "Profiler already started");
	else if (is_of_library(request) && request->arguments->file)
		pass_on_to_file(request, connection);
	else
		peer_recorder_answer(connection, request->arguments, request->question->arguments.data,
				     request->answer);
	return true;
}

/* Dumps of root's recording for another user take a 10th of the time, and 2 s at once: he may ask without end. */
#define OTHERS_TIMES 10
#define OTHERS_FREE_NS (OTHERS_TIMES * 2 * NS_PER_SEC)

static void obey_other(struct request *request)
{
	uint64_t *until_ns = &request->profiling->others_ns, begin_ns = clock_monotonic_ns();

	*until_ns = *until_ns > begin_ns ? *until_ns : begin_ns;
	if (*until_ns > begin_ns + OTHERS_FREE_NS)
		return refuse(request, "another user's recording was dumped too often: ask again in some seconds");
	obey(request);
	*until_ns += OTHERS_TIMES * (clock_monotonic_ns() - begin_ns);
}

static void obey_if_permitted(struct request *request)
{
	bool is_shared = request->question->head.kind == DUET_QUESTION_SHARED;
	bool is_foreign = request->question->is_other || request->question->is_of_server;
	enum asprof_action action = request->arguments->action;

	if ((is_shared || request->question->is_other) && !(is_shared && peer_recorder_may_request(request->arguments)))
		refuse(request, "another user's recording can only be queried (status, metrics), dumped and stopped");
	else if (is_foreign && request->profiling->is_private && (action == ASPROF_DUMP || action == ASPROF_STOP))
		refuse(request, "the recording has what processes of all users use: only root can dump or stop it");
	else if (request->question->is_other && !geteuid() && action == ASPROF_DUMP)
		obey_other(request);
	else if (!obey_peer(request))
		obey(request);
}

static void obey_arguments(struct profiling *profiling, const struct recorder_question *question,
			   struct recorder_answer *answer)
{
	struct asprof_arguments arguments = {0};
	struct request request = {profiling, &arguments, question, answer};
	const char *text = question->arguments.data;
	char *log = NULL, *level = NULL;
	BUF(warnings);

	if (asprof_arguments_parse(&arguments, text, &warnings, &answer->text)) {
		answer->code = DUET_ANSWER_NOT_UNDERSTOOD;
		log = asprof_arguments_word(text, "log");
		level = asprof_arguments_word(text, "loglevel");
	} else {
		log = arguments.log ? strdup(arguments.log) : NULL;
		level = arguments.log_level ? strdup(arguments.log_level) : NULL;
		buf_add_str(lines_of(&request), warnings.data);
		obey_if_permitted(&request);
	}
	answer->is_private = profiling->is_private;
	if (is_of_library(&request))
		settle_log(&request, log, level);
	free(log);
	free(level);
	asprof_arguments_release(&arguments);
}

static void exit_of_process(struct profiling *profiling, struct recorder_answer *answer)
{
	const struct recorder_question question = {.socket = -1};

	profiling_end(profiling, &answer->log);
	settle_log(&(struct request){.profiling = profiling, .question = &question, .answer = answer},
		   profiling->begun.log, profiling->begun.log_level);
}

void profiling_answer(struct profiling *profiling, const struct recorder_question *question,
		      struct recorder_answer *answer)
{
	if (question->head.name[0] && !question->is_other)
		profiling->agent = question->head;
	/* A JVM that is shutting down answers no requests any more. */
	profiling->recording.is_ending |= question->head.kind == DUET_QUESTION_EXIT;
	if (question->head.kind == DUET_QUESTION_SAMPLES)
		buf_printf(&answer->text, "%llu", (unsigned long long)state_sums(&profiling->recording).samples);
	else if (question->head.kind == DUET_QUESTION_EXIT && !question->is_other)
		exit_of_process(profiling, answer);
	else if (question->head.kind == DUET_QUESTION_PREPARE && !question->is_other)
		prepare(profiling, question->arguments.data);
	else if (question->head.kind == DUET_QUESTION_CHOOSE && !question->is_other)
		(void)thread_filter_choose(&profiling->recording.choices, question->arguments.data);
	else
		obey_arguments(profiling, question, answer);
	profiling->used_ns = clock_monotonic_ns();
}

/* ---- timeouts and ends ---- */

/* The next window's file. */
static void begin_file(struct profiling *profiling)
{
	BUF(why);

	if (begun_create(profiling, false, &why))
		log_error("process %d: %s", profiling->pid, why.data);
}

static void restart(struct profiling *profiling)
{
	const struct recording_subject subject = subject_of(profiling);
	BUF(why);

	if (recording_start(&profiling->recording, &subject, &profiling->begun, &why)) {
		log_error("process %d: %s", profiling->pid, why.data);
		return;
	}
	set_end(profiling, clock_monotonic_ns());
	begin_file(profiling);
}

/* Writes the window that has ended. The recording goes on, so that there is no gap. */
static void next_window(struct profiling *profiling)
{
	BUF(unheard);

	begun_write_unasked(profiling, profiling->window_end_ns, &unheard);
	recording_go_on(&profiling->recording, profiling->window_end_ns);
	profiling->window_end_ns = 0;
	set_end(profiling, profiling->until_ns);
	begin_file(profiling);
}

/* Returns false if the recording must end with this window. */
static bool step_window(struct profiling *profiling, uint64_t late_ns)
{
	if (!profiling->window_end_ns && (!profiling->begun.loop_ns || !recording_can_go_on(&profiling->recording)))
		return false;
	if (!profiling->window_end_ns)
		profiling->window_end_ns = recording_end_window(&profiling->recording);
	else if (late_ns > WINDOW_SLACK_NS)
		next_window(profiling);
	return true;
}

void profiling_step(struct profiling *profiling)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool is_due = profiling->until_ns && now_ns >= profiling->until_ns, has_ended, is_last;
	BUF(unheard);

	step_prepared(profiling);
	server_step(&profiling->server);
	has_ended = recording_has_ended(&profiling->recording);
	if (!has_ended && !is_due)
		return begun_step(profiling);
	is_last = profiling->last_ns && now_ns >= profiling->last_ns;
	if (!has_ended && !is_last && step_window(profiling, now_ns - profiling->until_ns))
		return;
	end_recording(profiling);
	begun_write_unasked(profiling, 0, &unheard);
	if (!has_ended && !is_last && profiling->begun.loop_ns)
		restart(profiling);
}

void profiling_end(struct profiling *profiling, struct buf *log)
{
	server_close(&profiling->server); /* the next JVM needs the address */
	if (!profiling_is_running(profiling))
		return;
	end_recording(profiling);
	begun_write_unasked(profiling, 0, log);
}

void profiling_forget_program(struct profiling *profiling)
{
	profiling->is_program_forgotten = profiling_is_running(profiling) && profiling->is_of_library;
	if (profiling->is_program_forgotten)
		end_recording(profiling);
}

void profiling_init(struct profiling *profiling, pid_t pid, uint64_t start_ticks)
{
	*profiling = (struct profiling){
		.pid = pid,
		.start_ticks = start_ticks,
		.used_ns = clock_monotonic_ns(),
	};
	recording_init(&profiling->recording);
	buf_init(&profiling->begun_file);
	buf_init(&profiling->jfr_path);
	profiling->jfr = -1;
}

void profiling_release(struct profiling *profiling)
{
	recording_release(&profiling->recording);
	asprof_arguments_release(&profiling->begun);
	buf_release(&profiling->begun_file);
	buf_release(&profiling->jfr_path);
	io_close(&profiling->jfr);
}
