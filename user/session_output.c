/* SPDX-License-Identifier: MIT */
/*
 * The output files of a session. All are opened before it begins. They are written at its end, or during it if their
 * format allows. A file that cannot be written goes to another folder.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "session_internal.h"

#define STREAM_NS (2 * NS_PER_SEC) /* how often files of formats with stream_open() are appended to */

/* For root, EACCES usually means a link or pipe of another user in a folder that everybody may write to. */
static const char *trap_hint(int err)
{
	return err == -EACCES && !geteuid() ? " (a link or pipe of another user in a shared folder?)" : "";
}

/* Owns `file` from now on. */
static int open_output(struct session *session, const struct writer *writer, uint32_t event, char *file)
{
	struct session_written written = {.file = file, .writer = writer, .event = event};
	int err = io_output_open(&written.output, file ? file : "-", &session->options->folder.access);

	if (!err && vec_push(&session->outputs, written) < 0) {
		io_output_discard(&written.output);
		err = -ENOMEM;
	}
	if (!err)
		return 0;
	log_error("%s cannot be written: %s%s; choose another place with -f", file ? file : "stdout", strerror(-err),
		  trap_hint(err));
	free(file);
	return err;
}

static int open_event(struct session *session, const struct session_output *wanted, uint32_t event)
{
	struct buf path;
	int err;

	buf_init(&path);
	if (wanted->file && event)
		writer_event_file(wanted->file, session->options->events.items[event].event->name, &path);
	else if (wanted->file)
		buf_add_str(&path, wanted->file);
	err = path.failed ? -ENOMEM :
			    open_output(session, wanted->writer, event, wanted->file ? buf_detach(&path) : NULL);
	buf_release(&path);
	return err;
}

int session_open_outputs(struct session *session)
{
	const struct session_options *options = session->options;
	int err = 0;

	for (size_t i = 0; !err && i < options->outputs.len; i++) {
		const struct session_output *wanted = &options->outputs.items[i];
		size_t events = wanted->writer->has_all_events ? 1 : options->events.len;

		for (uint32_t event = 0; !err && event < events; event++)
			err = open_event(session, wanted, event);
	}
	return err;
}

void session_discard_outputs(struct session *session)
{
	for (size_t i = 0; i < session->outputs.len; i++) {
		struct session_written *written = &session->outputs.items[i];

		if (written->stream)
			written->writer->stream_close(written->stream);
		io_output_discard(&written->output);
		free(written->file);
	}
	vec_release(&session->outputs);
}

struct writer_options session_style(const struct session *session)
{
	struct writer_options style = session->options->style;

	style.processes = writer_shows_processes(&session->profile, &style);
	return style;
}

/* ---- files written during the recording ---- */

/* The file stays readable. At the end of the recording, all of it is written to another folder. */
static void fail_stream(struct session_written *written, int err)
{
	int cause = io_output_error(&written->output);

	written->stream_error = cause ? cause : err;
	log_warn("%s: %s: nothing more is written to it; the recording continues",
		 written->file ? written->file : "stdout", strerror(-written->stream_error));
}

static int begin_stream(struct session *session, struct session_written *written)
{
	int err;

	written->stream = written->writer->stream_open(&session->profile, written->output.file);
	err = written->stream ? written->writer->stream_append(written->stream, false) : -ENOMEM;
	return err ? err : io_output_publish(&written->output);
}

/* Appends to all of them; the first call begins them. */
static void append_all(struct session *session, bool is_begin)
{
	for (size_t i = 0; i < session->outputs.len; i++) {
		struct session_written *written = &session->outputs.items[i];
		int err = 0;

		if (!written->writer->stream_open || written->stream_error)
			continue;
		if (is_begin)
			err = begin_stream(session, written);
		else
			err = written->writer->stream_append(written->stream, false);
		if (err < 0)
			fail_stream(written, err);
	}
	session->profile.samples.written = session->profile.samples.len;
}

static bool has_streams(const struct session *session)
{
	for (size_t i = 0; i < session->outputs.len; i++)
		if (session->outputs.items[i].writer->stream_open)
			return true;
	return false;
}

void session_begin_streams(struct session *session)
{
	if (!has_streams(session))
		return;
	session->streamed_ns = session->profile.end_ns = clock_monotonic_ns();
	report_beginning(&session->report);
	append_all(session, true);
	vec_clear(&session->profile.facts);
}

void session_step_streams(struct session *session, uint64_t now_ns)
{
	if (!session->streamed_ns || now_ns - session->streamed_ns < STREAM_NS)
		return;
	session->streamed_ns = session->profile.end_ns = now_ns;
	append_all(session, false);
}

static int end_stream(struct session_written *written)
{
	int err = written->stream_error;

	if (!err)
		err = written->writer->stream_append(written->stream, true);
	if (err < 0 && io_output_error(&written->output))
		err = io_output_error(&written->output);
	return err ? err : io_output_commit(&written->output);
}

/* ---- the end ---- */

static int write_to(const struct session *session, const struct session_written *written, struct io_output *output)
{
	struct writer_options style = session_style(session);
	int err;

	style.event = written->event;
	err = written->writer->write(&session->profile, &style, output->file);
	if (err < 0 && io_output_error(output))
		err = io_output_error(output);
	return err ? err : io_output_commit(output);
}

/* Saves the recording if the chosen place failed, e.g. a full disk: writes it to the first other folder that works. */
static void rescue(const struct session *session, const struct session_written *written)
{
	const char *const places[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm", getenv("HOME")};
	const char *name = strrchr(written->file, '/') ? strrchr(written->file, '/') + 1 : written->file;
	struct io_output output;
	struct buf path;
	int err = -ENOENT;

	buf_init(&path);
	for (size_t i = 0; err < 0 && i < sizeof(places) / sizeof(*places); i++) {
		if (!places[i])
			continue;
		buf_clear(&path);
		buf_printf(&path, "%s/duet-%d-%s", places[i], getpid(), name);
		if (io_output_open(&output, path.data, &session->options->folder.access) < 0)
			continue;
		err = write_to(session, written, &output);
		io_output_discard(&output);
	}
	if (!err)
		log_warn("the recording was written to %s instead", path.data);
	buf_release(&path);
}

static int write_one(const struct session *session, struct session_written *written)
{
	int err = written->stream ? end_stream(written) : write_to(session, written, &written->output);

	if (err < 0) {
		log_error("%s could not be written: %s; free some space or choose another -f",
			  written->file ? written->file : "stdout", strerror(-err));
		if (written->file)
			rescue(session, written);
	} else if (written->file) {
		log_info("wrote %s", written->file);
	}
	return err;
}

int session_write_outputs(struct session *session)
{
	int result = 0;

	for (size_t i = 0; i < session->outputs.len; i++) {
		int err = write_one(session, &session->outputs.items[i]);

		if (err < 0)
			result = err;
	}
	return result;
}
