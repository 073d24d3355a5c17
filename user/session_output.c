/* SPDX-License-Identifier: MIT */
/*
 * The output files of a session. All are opened before it begins and written at its end. A file that cannot be written
 * goes to another folder.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "session_internal.h"

/* For root, EACCES usually means a link or pipe of another user in a folder that everybody may write to. */
static const char *trap_hint(int err)
{
	return err == -EACCES && !geteuid() ? " (a link or pipe of another user in a shared folder?)" : "";
}

/*
 * With several events, the first one is written to the file as named; for each other event its name is inserted before
 * the extension.
 */
static int file_of_event(const char *file, const char *event, struct buf *ret)
{
	const char *slash = strrchr(file, '/'), *dot = strrchr(slash ? slash : file, '.');
	size_t stem = dot ? (size_t)(dot - file) : strlen(file);

	buf_printf(ret, "%.*s.%s%s", (int)stem, file, event, file + stem);
	return ret->failed ? -ENOMEM : 0;
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
	int err = 0;

	buf_init(&path);
	if (wanted->file && event)
		err = file_of_event(wanted->file, session->options->events.items[event].event->name, &path);
	else if (wanted->file)
		buf_add_str(&path, wanted->file);
	if (!err)
		err = open_output(session, wanted->writer, event, wanted->file ? buf_detach(&path) : NULL);
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
		io_output_discard(&session->outputs.items[i].output);
		free(session->outputs.items[i].file);
	}
	vec_release(&session->outputs);
}

/*
 * True if the command has started other processes: then each stack shows its process. With windows, all stacks do, so
 * that all windows look alike.
 */
static bool has_several_processes(const struct profile *profile)
{
	for (size_t i = 1; i < profile->threads.len; i++)
		if (profile->threads.items[i].pid != profile->threads.items[0].pid)
			return true;
	return false;
}

struct writer_options session_style(const struct session *session)
{
	struct writer_options style = session->options->style;

	if (session->options->command && style.by[0] == WRITER_BY_NONE)
		style.processes = session->options->window_ns || has_several_processes(&session->profile);
	return style;
}

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
	int err = write_to(session, written, &written->output);

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
