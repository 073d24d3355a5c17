/* SPDX-License-Identifier: MIT */
#include "writers/output_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "profile/profile.h"
#include "writers/shared/grouping.h"

#define STREAM_NS (2 * NS_PER_SEC) /* how often files of formats with stream_open() are appended to */
/* A sample in memory will take about so many bytes of a file; the least that it can take there is a few. */
#define SAMPLE_BYTES 4
#define SAMPLE_BYTES_MIN 2
#define RARER_MAX 8 /* the fewer samples are kept, the rarer they are appended: at most 2^8 times STREAM_NS apart */

void output_files_init(struct output_files *files, struct profile *profile, const struct writer_options *style,
		       const struct io_access *access)
{
	*files = (struct output_files){.profile = profile, .style = style, .access = access};
}

static const char *name_of(const struct output_file *file)
{
	return file->file ? file->file : "stdout";
}

/* Takes ownership of `file`. */
static int open_output(struct output_files *files, const struct writer *writer, uint32_t event, char *file)
{
	struct output_file opened = {.file = file, .writer = writer, .event = event};
	int err = io_output_open(&opened.io, file ? file : "-", files->access);

	if (!err && vec_push(&files->all, opened) < 0) {
		io_output_discard(&opened.io);
		err = -ENOMEM;
	}
	if (!err)
		return 0;
	/* for root, EACCES usually means a link or pipe of another user in a folder that everybody may write to */
	log_error("%s cannot be written: %s%s; choose another place with -f", name_of(&opened), strerror(-err),
		  err == -EACCES && !geteuid() ? " (a link or pipe of another user in a shared folder?)" : "");
	free(file);
	return err;
}

static int open_event(struct output_files *files, const struct writer *writer, const char *file, uint32_t event)
{
	BUF(path);

	if (file && event)
		writer_event_file(file, profile_event_name(files->profile, event), &path);
	else if (file)
		buf_add_str(&path, file);
	return path.failed ? -ENOMEM : open_output(files, writer, event, file ? buf_detach(&path) : NULL);
}

int output_files_add(struct output_files *files, const struct writer *writer, const char *file)
{
	size_t events = writer->has_all_events ? 1 : files->profile->events.len;
	int err = 0;

	for (uint32_t event = 0; !err && event < events; event++)
		err = open_event(files, writer, file, event);
	return err;
}

bool output_files_have_notes(const struct output_files *files)
{
	for (size_t i = 0; i < files->all.len; i++)
		if (files->all.items[i].writer->has_notes)
			return true;
	return false;
}

bool output_files_have_streams(const struct output_files *files)
{
	for (size_t i = 0; i < files->all.len; i++)
		if (files->all.items[i].writer->stream_open)
			return true;
	return false;
}

void output_files_release(struct output_files *files)
{
	for (size_t i = 0; i < files->all.len; i++) {
		struct output_file *written = &files->all.items[i];

		if (written->stream)
			written->writer->stream_close(written->stream);
		io_output_discard(&written->io);
		free(written->file);
	}
	vec_release(&files->all);
}

/*
 * The part of the file that was written stays readable. At the end of the recording, the whole file is written to
 * another folder.
 */
static void fail_stream(struct output_file *written, int err)
{
	int cause = io_output_error(&written->io);

	written->stream_error = cause ? cause : err;
	io_output_cut(&written->io);
	log_warn("%s: %s: nothing more is written to it; the recording continues", name_of(written),
		 strerror(-written->stream_error));
}

static int begin_stream(struct output_files *files, struct output_file *written)
{
	struct writer_options style = *files->style;
	int err;

	style.processes = writer_shows_processes(files->profile, &style);
	written->stream = written->writer->stream_open(files->profile, &style, written->io.file);
	err = written->stream ? written->writer->stream_append(written->stream, false) : -ENOMEM;
	return err ? err : io_output_publish(&written->io);
}

/* Appends to all files; the first call begins them. */
static void append_all(struct output_files *files, uint64_t now_ns, bool is_begin)
{
	files->streamed_ns = files->profile->end_ns = now_ns;
	for (size_t i = 0; i < files->all.len; i++) {
		struct output_file *written = &files->all.items[i];
		int err;

		if (!written->writer->stream_open || written->stream_error)
			continue;
		err = is_begin ? begin_stream(files, written) : written->writer->stream_append(written->stream, false);
		if (err < 0)
			fail_stream(written, err);
	}
	files->profile->samples.written = files->profile->samples.len;
}

void output_files_begin(struct output_files *files, uint64_t now_ns)
{
	append_all(files, now_ns, true);
}

void output_files_flush(struct output_files *files, uint64_t now_ns)
{
	if (files->streamed_ns)
		append_all(files, now_ns, false);
}

/* The bytes that count for the limit: of the files, and a part of those of the timeline's own file. */
static uint64_t used_bytes(const struct output_files *files)
{
	const struct timeline *samples = &files->profile->samples;
	uint64_t bytes = (samples->len - samples->written) * SAMPLE_BYTES;

	for (size_t i = 0; i < files->all.len; i++) {
		off_t at = files->all.items[i].stream ? ftello(files->all.items[i].io.file) : 0;

		bytes += at > 0 ? (uint64_t)at : 0;
	}
	return bytes > samples->len * SAMPLE_BYTES_MIN ? bytes : samples->len * SAMPLE_BYTES_MIN;
}

static void step_thinning(struct output_files *files)
{
	struct thinning *thinning = &files->profile->thinning;

	thinning_step(thinning, used_bytes(files));
	if (!thinning->shift || files->is_thin)
		return;
	files->is_thin = true;
	log_warn("half of " OUTPUT_FILES_LIMIT " %llu kB is used: fewer samples are kept, and each stands for several",
		 (unsigned long long)(thinning->max_bytes >> 10));
}

/* With a limit, rows without samples must not use it up. */
void output_files_step(struct output_files *files, uint64_t now_ns)
{
	const struct profile *profile = files->profile;
	uint32_t rarer;

	if (!files->streamed_ns)
		return;
	if (profile->thinning.max_bytes) {
		step_thinning(files);
		if (profile->samples.len == profile->samples.written)
			return;
	}
	rarer = profile->thinning.shift < RARER_MAX ? profile->thinning.shift : RARER_MAX;
	if (now_ns - files->streamed_ns >= STREAM_NS << rarer)
		output_files_flush(files, now_ns);
}

static int end_stream(struct output_file *written)
{
	int err = written->stream_error;

	if (!err)
		err = written->writer->stream_append(written->stream, true);
	if (err < 0 && io_output_error(&written->io))
		err = io_output_error(&written->io);
	if (err < 0)
		io_output_cut(&written->io);
	return err ? err : io_output_commit(&written->io);
}

static int write_to(const struct output_files *files, const struct output_file *written, struct io_output *output)
{
	struct writer_options style = *files->style;

	style.processes = writer_shows_processes(files->profile, &style);
	style.event = written->event;
	return io_output_end(output, grouping_write(written->writer, files->profile, &style, output->file));
}

/*
 * Saves the recording if the chosen place failed, for example because the disk is full: writes it to the first other
 * folder that works.
 */
static void rescue(const struct output_files *files, const struct output_file *written)
{
	const char *name = basename(written->file), *folder;
	struct io_output output;
	BUF(path);
	int err = -ENOENT;

	for (size_t i = 0; err < 0 && (folder = io_other_folder(i)) != NULL; i++) {
		buf_clear(&path);
		buf_printf(&path, "%s/duet-%d-%s", folder, getpid(), name);
		if (io_output_open(&output, path.data, files->access) < 0)
			continue;
		err = write_to(files, written, &output);
	}
	if (!err)
		log_warn("the recording was written to %s instead", path.data);
}

bool output_files_show_headline(const struct output_files *files)
{
	bool is_shown = false;

	for (size_t i = 0; i < files->all.len; i++)
		is_shown |= !files->all.items[i].file && files->all.items[i].writer == &writer_text;
	return is_shown && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
}

static int write_one(const struct output_files *files, struct output_file *written)
{
	int err = written->stream ? end_stream(written) : write_to(files, written, &written->io);

	if (err < 0) {
		log_error("%s could not be written: %s%s", name_of(written), strerror(-err), io_advice(err));
		if (written->file)
			rescue(files, written);
	}
	return err;
}

int output_files_write(struct output_files *files, struct buf *written)
{
	int result = 0;

	for (size_t i = 0; i < files->all.len; i++) {
		int err = write_one(files, &files->all.items[i]);

		if (err < 0)
			result = err;
		else if (files->all.items[i].file)
			buf_printf(written, "%s%s", written->len ? ", " : "", files->all.items[i].file);
	}
	return result;
}
