/* SPDX-License-Identifier: MIT */
/* The files of a session: all opened before it begins, all written at its end; what does not fit is put elsewhere. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "session_internal.h"

/* root is seldom denied anything else. */
static const char *trap_hint(int err)
{
	return err == -EACCES && !geteuid() ? " (a link or pipe of another user, where everybody may write?)" : "";
}

int session_open_outputs(struct session *session)
{
	const struct session_options *options = session->options;

	for (size_t i = 0; i < options->outputs.len; i++) {
		const char *file = options->outputs.items[i].file;
		struct io_output output;
		int err = io_output_open(&output, file ? file : "-", &options->folder.access);

		if (!err && vec_push(&session->outputs, output) < 0) {
			io_output_discard(&output);
			err = -ENOMEM;
		}
		if (err < 0) {
			log_error("%s cannot be written: %s%s; choose another place with -f", file ? file : "stdout",
				  strerror(-err), trap_hint(err));
			return err;
		}
	}
	return 0;
}

void session_discard_outputs(struct session *session)
{
	for (size_t i = 0; i < session->outputs.len; i++)
		io_output_discard(&session->outputs.items[i]);
	vec_release(&session->outputs);
}

/* A command may have started others: then each stack says whose it is. All windows of it say so alike. */
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

static int write_to(const struct session *session, const struct writer *writer, struct io_output *output)
{
	struct writer_options style = session_style(session);
	int err;

	err = writer->write(&session->profile, &style, output->file);
	if (err < 0 && io_output_error(output))
		err = io_output_error(output);
	return err ? err : io_output_commit(output);
}

/* Nothing recorded is lost: what the chosen place has no room for goes to the first that has. */
static void rescue(const struct session *session, const struct session_output *wanted)
{
	const char *const places[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm", getenv("HOME")};
	const char *name = strrchr(wanted->file, '/') ? strrchr(wanted->file, '/') + 1 : wanted->file;
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
		err = write_to(session, wanted->writer, &output);
		io_output_discard(&output);
	}
	if (!err)
		log_warn("the recording was written to %s instead", path.data);
	buf_release(&path);
}

static int write_one(const struct session *session, const struct session_output *wanted, struct io_output *output)
{
	int err = write_to(session, wanted->writer, output);

	if (err < 0) {
		log_error("%s could not be written: %s; free some space or choose another -f",
			  wanted->file ? wanted->file : "stdout", strerror(-err));
		if (wanted->file)
			rescue(session, wanted);
	} else if (wanted->file) {
		log_info("wrote %s", wanted->file);
	}
	return err;
}

int session_write_outputs(struct session *session)
{
	int result = 0;

	for (size_t i = 0; i < session->outputs.len; i++) {
		int err = write_one(session, &session->options->outputs.items[i], &session->outputs.items[i]);

		if (err < 0)
			result = err;
	}
	return result;
}
